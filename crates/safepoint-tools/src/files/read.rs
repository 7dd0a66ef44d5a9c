//! `read_file`: lines of a text file, bounded however large the file is.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, Take},
    sync::Arc,
};

use safepoint::{
    Stop, ToolContext, ToolResult,
    stop::Failure,
    tool::{EffectClass, FnTool, OnStop, from_blocking_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{SecretFiles, cut, is_binary};
use crate::{
    Root, limits,
    root::{fault, refusal},
};

#[derive(Deserialize, JsonSchema)]
struct ReadArgs {
    /// The file, relative to the root directory.
    path: String,
    /// The first line wanted, counted from 1.
    offset: Option<usize>,
    /// How many lines are wanted.
    limit: Option<usize>,
}

/// Reads text files below `root`. One of the `secrets` is asked about first, as `read_file/secret`.
#[must_use]
pub fn read_file(root: Arc<Root>, secrets: Arc<SecretFiles>) -> FnTool {
    let about =
        "Reads a text file and returns its lines. Long files are returned in parts: go on with `offset`.";
    let place = root.place();
    from_blocking_fn("read_file", about, move |cx, args: ReadArgs| {
        let file = root.open_file(&args.path)?;
        secrets.ask(cx, &root, (&args.path, &file))?;
        read(file, cx, &args)
    })
    .with(|spec| spec.effect(EffectClass::ReadOnly).on_stop(OnStop::Drop).place(place))
}

fn read(mut file: File, cx: &ToolContext, args: &ReadArgs) -> ToolResult<String> {
    let first = args.offset.unwrap_or(1).max(1);
    refuse_binary(&mut file, &args.path)?;
    let mut lines = Lines::of(file, cx);
    for _ in 1..first {
        match lines.skip().map_err(|error| fault("read", &args.path, &error))? {
            Next::Line => {}
            Next::Stop(stop) => return Err(stop.into()),
            Next::Ended => {
                return Err(refusal(format!("{:?} has fewer than {first} lines", args.path)).into());
            }
            Next::TooFar => {
                let (path, bytes) = (&args.path, limits::READ_BYTES);
                return Err(refusal(format!(
                    "line {first} of {path:?} lies more than {bytes} bytes into it; use shell, with sed or tail"
                ))
                .into());
            }
        }
    }
    take(&mut lines, first, args)
}

fn take(lines: &mut Lines<'_>, first: usize, args: &ReadArgs) -> ToolResult<String> {
    let wanted = args.limit.unwrap_or(limits::READ_LINES);
    let mut text = String::new();
    let mut taken = 0;
    let mut next = Next::Line;
    while taken < wanted && text.len() < limits::TEXT_BYTES && matches!(next, Next::Line) {
        next = lines.next(&mut text).map_err(|error| fault("read", &args.path, &error))?;
        taken += usize::from(!matches!(next, Next::Ended));
    }
    if matches!(next, Next::Line) {
        next = lines.is_there_more().map_err(|error| fault("read", &args.path, &error))?;
    }
    match next {
        Next::Stop(stop) => return Err(stop.into()),
        Next::Ended => {}
        Next::Line => {
            let next = first + taken;
            let last = next - 1;
            text.push_str(&format!("\n[lines {first} to {last} are shown; more follow from offset {next}]"));
        }
        Next::TooFar => text.push_str(&format!(
            "\n[the file is longer, but only its first {} bytes are looked through; use shell for the rest]",
            limits::READ_BYTES
        )),
    }
    if lines.is_lossy {
        text.push_str("\n[some bytes are not UTF-8 and are shown as \u{fffd}]");
    }
    if text.is_empty() {
        text.push_str("[the file is empty]");
    }
    Ok(text)
}

fn refuse_binary(file: &mut File, path: &str) -> Result<(), Failure> {
    let mut sniff = Vec::new();
    let read =
        file.by_ref().take(limits::SNIFF_BYTES as u64).read_to_end(&mut sniff).and_then(|_| file.rewind());
    read.map_err(|error| fault("read", path, &error))?;
    if is_binary(&sniff) {
        let bytes = file.metadata().map_or(0, |found| found.len());
        return Err(refusal(format!("{path:?} is not a text file ({bytes} bytes)")));
    }
    Ok(())
}

/// What comes next in a file. Exhaustive: a line, its end, or nothing that is looked at.
enum Next {
    Line,
    Ended,
    /// The file is longer than the part that is read.
    TooFar,
    Stop(Stop),
}

/// Lines of bounded length, in a bounded part of a file. A stop ends the way to the next one.
struct Lines<'a> {
    reader: BufReader<Take<File>>,
    cx: &'a ToolContext,
    /// Whether bytes that are not UTF-8 were replaced.
    is_lossy: bool,
}

impl<'a> Lines<'a> {
    fn of(file: File, cx: &'a ToolContext) -> Self {
        let reader = BufReader::with_capacity(limits::CHUNK_BYTES, file.take(limits::READ_BYTES));
        Self { reader, cx, is_lossy: false }
    }

    /// Appends the next line, or as much of it as is shown.
    fn next(&mut self, text: &mut String) -> io::Result<Next> {
        let mut bytes = Vec::new();
        let bound = limits::LINE_BYTES as u64 + 1;
        self.reader.by_ref().take(bound).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return self.is_there_more();
        }
        if bytes.len() <= limits::LINE_BYTES || bytes.ends_with(b"\n") {
            text.push_str(&self.text(&bytes));
            return Ok(Next::Line);
        }
        let shown = self.text(cut_bytes(&bytes));
        text.push_str(&format!("{shown} [the line is cut after {} bytes]\n", shown.len()));
        // That a line ends with its file is said of the next one.
        Ok(match self.skip()? {
            Next::Ended => Next::Line,
            other => other,
        })
    }

    /// Passes over the rest of a line without keeping it.
    fn skip(&mut self) -> io::Result<Next> {
        let mut passed = Next::Ended;
        loop {
            if let Some(stop) = self.cx.scope().stopping() {
                return Ok(Next::Stop(stop));
            }
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok(match self.is_there_more()? {
                    Next::Ended => passed,
                    other => other,
                });
            }
            if let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
                self.reader.consume(end + 1);
                return Ok(Next::Line);
            }
            let length = chunk.len();
            self.reader.consume(length);
            passed = Next::Line;
        }
    }

    fn is_there_more(&mut self) -> io::Result<Next> {
        if !self.reader.fill_buf()?.is_empty() {
            return Ok(Next::Line);
        }
        let part = self.reader.get_mut();
        if part.limit() > 0 {
            return Ok(Next::Ended);
        }
        let beyond = part.get_mut().read(&mut [0])?;
        Ok(if beyond == 0 { Next::Ended } else { Next::TooFar })
    }

    fn text(&mut self, bytes: &[u8]) -> String {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                self.is_lossy = true;
                String::from_utf8_lossy(bytes).into_owned()
            }
        }
    }
}

/// The bytes of a line that is too long, cut at a character if it is text.
fn cut_bytes(bytes: &[u8]) -> &[u8] {
    let bytes = &bytes[..limits::LINE_BYTES];
    match std::str::from_utf8(bytes) {
        Ok(text) => cut(text, limits::LINE_BYTES).as_bytes(),
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Err(_) => bytes,
    }
}
