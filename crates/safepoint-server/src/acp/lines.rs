//! The bytes of both directions: lines that are read within a bound, and lines that are written in the order in which they were said.

use std::io;

use serde_json::Value;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncWrite, AsyncWriteExt as _},
    sync::mpsc,
};

/// The longest line: a prompt with what it embeds.
const LONGEST: usize = 16 << 20;

/// A line that was read. Exhaustive: a whole one, one that is longer than may be, or the end.
pub(super) enum ReadLine {
    Whole(Vec<u8>),
    TooLong,
    End,
}

/// The next line.
///
/// # Errors
/// The reader's.
///
/// # Cancel safety
/// What was read of the line is lost: nothing is read after that.
pub(super) async fn next(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<ReadLine> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            let is_last = !line.is_empty() && !is_too_long;
            return Ok(if is_last { ReadLine::Whole(line) } else { ReadLine::End });
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(buffer.len());
        is_too_long |= line.len() + taken > LONGEST;
        if !is_too_long {
            line.extend_from_slice(&buffer[..taken]);
        }
        input.consume(taken + usize::from(end.is_some()));
        match end {
            Some(_) if is_too_long => return Ok(ReadLine::TooLong),
            Some(_) => return Ok(ReadLine::Whole(line)),
            None => {}
        }
    }
}

/// Writes each line as it comes, until all that may say something are gone.
///
/// # Errors
/// The writer's: nothing is written after that.
///
/// # Cancel safety
/// A line may be cut.
pub(super) async fn write(
    mut said: mpsc::Receiver<Value>,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    while let Some(message) = said.recv().await {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        output.write_all(&line).await?;
        if said.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}
