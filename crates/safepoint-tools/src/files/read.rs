//! `read_file`: lines of a text file, bounded however large the file is.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek},
    sync::Arc,
};

use safepoint::{
    Cx, Failure, ToolResult,
    tool::{EffectClass, FnTool, OnStop, from_blocking_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{cut, is_binary};
use crate::{
    Root, limits,
    root::{fault, refusal},
};

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The file, relative to the root directory.
    path: String,
    /// The first line wanted, counted from 1.
    offset: Option<usize>,
    /// How many lines are wanted.
    limit: Option<usize>,
}

/// Reads text files below `root`.
#[must_use]
pub fn read_file(root: Arc<Root>) -> FnTool {
    let about =
        "Reads a text file and returns its lines. Long files are returned in parts: go on with `offset`.";
    from_blocking_fn("read_file", about, move |cx, args: Args| read(&root, cx, &args))
        .with(|spec| spec.effect(EffectClass::ReadOnly).on_stop(OnStop::Drop))
}

fn read(root: &Root, cx: &Cx, args: &Args) -> ToolResult<String> {
    let mut file = root.open_file(&args.path)?;
    let first = args.offset.unwrap_or(1).max(1);
    refuse_binary(&mut file, &args.path)?;
    let mut lines = Lines { reader: BufReader::new(file), lossy: Lossy::No };
    for _ in 1..first {
        if let Some(stop) = cx.scope().stopping() {
            return Err(stop.into());
        }
        if lines.skip().map_err(|error| fault("read", &args.path, &error))? == Ended::Yes {
            return Err(refusal(format!("{:?} has fewer than {first} lines", args.path)).into());
        }
    }
    Ok(take(&mut lines, first, args)?)
}

fn take(lines: &mut Lines, first: usize, args: &Args) -> Result<String, Failure> {
    let wanted = args.limit.unwrap_or(limits::READ_LINES);
    let mut text = String::new();
    let mut taken = 0;
    let mut ended = Ended::No;
    while taken < wanted && text.len() < limits::TEXT_BYTES {
        match lines.next().map_err(|error| fault("read", &args.path, &error))? {
            Some(line) => text.push_str(&line),
            None => {
                ended = Ended::Yes;
                break;
            }
        }
        taken += 1;
    }
    if ended == Ended::No && lines.is_at_end().map_err(|error| fault("read", &args.path, &error))? {
        ended = Ended::Yes;
    }
    if ended == Ended::No {
        let next = first + taken;
        text.push_str(&format!(
            "\n[lines {first} to {} are shown; more follow from offset {next}]",
            next - 1
        ));
    }
    if lines.lossy == Lossy::Yes {
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

#[derive(PartialEq)]
enum Ended {
    Yes,
    No,
}

#[derive(PartialEq)]
enum Lossy {
    Yes,
    No,
}

/// Lines of bounded length.
struct Lines {
    reader: BufReader<File>,
    lossy: Lossy,
}

impl Lines {
    fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        let bound = limits::LINE_BYTES as u64 + 1;
        self.reader.by_ref().take(bound).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if bytes.len() <= limits::LINE_BYTES || bytes.ends_with(b"\n") {
            return Ok(Some(self.text(&bytes)));
        }
        let mut text = self.text(cut_bytes(&bytes));
        self.skip()?;
        text.push_str(&format!(" [the line is cut after {} bytes]\n", text.len()));
        Ok(Some(text))
    }

    /// Passes over the rest of a line without keeping it.
    fn skip(&mut self) -> io::Result<Ended> {
        let passed = self.reader.skip_until(b'\n')?;
        Ok(if passed == 0 { Ended::Yes } else { Ended::No })
    }

    fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }

    fn text(&mut self, bytes: &[u8]) -> String {
        match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                self.lossy = Lossy::Yes;
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
