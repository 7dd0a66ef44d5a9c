//! The one place that writes to stdout and stderr; `cargo xtask tidy` keeps it so.
//!
//! **Invariants**
//! - Text is shown, never obeyed: a control character, or one that reverses the text, leaves here only as its
//!   name. On stderr so does every hidden character in the program's own text. Only [`Drawn`] moves a cursor.
//! - Output that stdout did not take is an [`Unwritten`], which rules out the exit code of a success.

use std::{
    borrow::Cow,
    fmt::{Display, Write as _},
    io::{self, BufWriter, IsTerminal as _, Write as _},
    os::fd::BorrowedFd,
    process::ExitCode,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use safepoint::secret::Secrets;
use serde_json::Value;

mod bulk;
mod cleaned;
mod line;
mod printer;
mod queue;
mod text;
mod usage;

pub(crate) use bulk::Bulk;
use cleaned::Cleaned;
pub(crate) use line::JsonLine;
pub(crate) use printer::{Order, Printer};
pub(crate) use queue::{Left, Put};
pub(crate) use text::Text;
pub(crate) use usage::of_clap;

use crate::{args::run::OnDisconnect, exit, visible::hides};

/// One of the two outputs. Exhaustive: there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Results.
    Out,
    /// For people.
    Err,
}

/// A piece of output. Exhaustive: each kind is made harmless in its own way.
#[derive(Clone)]
pub(crate) enum Piece {
    /// Text for people: made harmless wherever it goes.
    Words(String),
    /// A model's text: made harmless for a terminal, and unchanged for everything else.
    Said(Text),
    /// A line of JSON: a character that a terminal would obey is written as its number, which is the same
    /// JSON.
    Line(JsonLine),
    /// Our own drawing.
    Drawn(Drawn),
}

/// Our own marks, and harmless text between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drawn(String);

impl Drawn {
    /// Adds a mark that the terminal obeys: it contains no foreign text.
    pub(crate) fn mark(&mut self, mark: impl Display) {
        write!(self.0, "{mark}").expect("writing to a string cannot fail");
    }

    /// This, and then that.
    pub(crate) fn then(mut self, next: Self) -> Self {
        self.0.push_str(&next.0);
        self
    }

    /// Adds text on the cursor's row.
    pub(crate) fn words(&mut self, words: &str) {
        self.0.push_str(&plain(words).replace('\n', " "));
    }
}

/// Stdout did not take all of the output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unwritten {
    /// The reader closed its end.
    #[error("stdout was closed")]
    Closed,
    /// For example, a full disk.
    #[error("stdout cannot be written: {0}")]
    Failed(String),
}

impl Unwritten {
    /// The exit code of a command that this error has ended.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Closed => CLOSED,
            Self::Failed(_) => FAILED,
        }
    }

    /// The exit code of a command whose stdout may have failed; `code` is its code otherwise. A command that
    /// continues without a reader by its own option keeps `code`. A write that failed for any other reason is
    /// never a success.
    pub(crate) fn instead_of(&self, code: ExitCode, on_disconnect: OnDisconnect) -> ExitCode {
        match (self, on_disconnect) {
            (Self::Closed, OnDisconnect::Stop) if code == ExitCode::SUCCESS => exit::with(CLOSED),
            (Self::Failed(_), _) if code == ExitCode::SUCCESS || code == exit::with(CLOSED) => {
                exit::with(FAILED)
            }
            _ => code,
        }
    }
}

/// The exit codes: stopped by a lost reader, and failed.
const CLOSED: u8 = 10;
const FAILED: u8 = 1;

impl From<io::Error> for Unwritten {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Writes a line for people to stdout.
///
/// # Errors
/// If stdout does not take it.
pub(crate) fn say(words: impl Display) -> Result<(), Unwritten> {
    put(Stream::Out, &Piece::Words(format!("{words}\n")))
}

/// Writes a line of JSON to stdout.
///
/// # Errors
/// If stdout does not take it.
pub(crate) fn say_json(line: Value) -> Result<(), Unwritten> {
    put(Stream::Out, &Piece::Line(line.into()))
}

/// Stdout as the wire of a protocol: what is written to it is not for people, and nothing else is written there.
#[cfg(feature = "serve")]
pub(crate) fn wire() -> tokio::io::Stdout {
    tokio::io::stdout()
}

/// Writes a line for people to stderr and shows every character of it. Without a reader of stderr the line is
/// lost.
pub(crate) fn tell(words: impl Display) {
    drop(put(Stream::Err, &Piece::Words(seen(&format!("{words}\n")).into_owned())));
}

/// The secrets that leave here only as their names, for commands with output before they have an engine
/// (S8.10).
static SECRETS: OnceLock<Secrets> = OnceLock::new();

/// Replaces these secrets by their names from now on.
pub(crate) fn hide(secrets: Secrets) {
    SECRETS.get_or_init(|| secrets);
}

fn without_secrets(text: &str) -> Cow<'_, str> {
    SECRETS.get().map_or(Cow::Borrowed(text), |secrets| secrets.clean(text))
}

/// Writes a piece: there is no other way out.
///
/// # Errors
/// If the stream does not take it.
pub(crate) fn put(stream: Stream, piece: &Piece) -> Result<(), Unwritten> {
    match stream {
        Stream::Out => {
            let mut out = io::stdout().lock();
            piece.write_to(&mut out, stream).and_then(|()| out.flush())?;
        }
        Stream::Err => piece.write_to(io::stderr().lock(), stream)?,
    }
    Ok(())
}

/// Writes bytes to stdout that are already harmless.
///
/// # Errors
/// If stdout does not take it.
fn put_made(bytes: &[u8]) -> Result<(), Unwritten> {
    let mut out = io::stdout().lock();
    Ok(out.write_all(bytes).and_then(|()| out.flush())?)
}

/// Writes to stdout without a buffer, and counts the bytes as stdout takes them.
///
/// # Errors
/// If stdout does not take it.
fn put_counted(piece: &Piece, taken: &AtomicU64) -> Result<(), Unwritten> {
    Ok(piece.write_to(Counted(taken), Stream::Out)?)
}

/// Stdout, in parts that a pipe takes whole or not at all.
struct Counted<'a>(&'a AtomicU64);

/// `PIPE_BUF`: what a pipe takes whole or not at all.
const WHOLE: usize = 4 << 10;

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(WHOLE)];
        let written = rustix::io::write(rustix::stdio::stdout(), part)?;
        // Relaxed: a count that only grows. A reader that misses these bytes takes them for not yet written.
        self.0.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts what would be written, as far as to `most`.
struct Measured {
    bytes: u64,
    most: u64,
}

impl io::Write for Measured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.most {
            return Err(io::Error::other("there is more"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Piece {
    /// How many bytes stdout gets of it, if they are no more than `most`: a long text is not gone through for that. Else none.
    fn written_bytes(&self, most: u64) -> Option<u64> {
        let mut measured = Measured { bytes: 0, most };
        match self.write_to(&mut measured, Stream::Out) {
            Ok(()) => Some(measured.bytes),
            // A line that is none is not written either.
            Err(_) => (measured.bytes <= most).then_some(0),
        }
    }

    /// Appends a piece that continues this one's text. Returns the piece if the sum would be too large.
    fn join(&mut self, more: Self) -> Option<Self> {
        /// A slow terminal takes this much per write, so a caller that hurries waits for no more (S12.5).
        const MOST: usize = 4 << 10;
        match (self, more) {
            (Self::Said(text), Self::Said(more)) => {
                (!text.join(more.as_str(), MOST)).then_some(Self::Said(more))
            }
            (Self::Line(line), Self::Line(more)) => line.join(more).map(Self::Line),
            (_, more) => Some(more),
        }
    }

    /// The memory of a waiting piece, without the parts that other code shares.
    fn bytes(&self) -> usize {
        match self {
            Self::Words(text) | Self::Drawn(Drawn(text)) => text.len(),
            Self::Said(text) => text.as_str().len(),
            Self::Line(line) => line.bytes(),
        }
    }

    fn write_to(&self, mut out: impl io::Write, stream: Stream) -> io::Result<()> {
        match self {
            Self::Said(text) if !stream.is_terminal() => out.write_all(text.as_str().as_bytes()),
            Self::Said(text) => out.write_all(plain(text.as_str()).as_bytes()),
            Self::Words(text) => out.write_all(plain(&without_secrets(text)).as_bytes()),
            Self::Line(line) => {
                // A line that fits is taken whole, or nothing of it.
                let mut out = BufWriter::with_capacity(WHOLE, out);
                let Some(secrets) = SECRETS.get() else {
                    return line.write_to(&mut out).and_then(|()| out.flush());
                };
                let mut out = Cleaned::new(secrets, out);
                line.write_to(&mut out)?;
                out.finish()
            }
            Self::Drawn(Drawn(text)) => out.write_all(text.as_bytes()),
        }
    }
}

impl Stream {
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        }
    }

    /// The columns of the terminal that this is; none where it is none.
    pub(crate) fn columns(self) -> Option<usize> {
        let of: BorrowedFd<'static> = match self {
            Self::Out => rustix::stdio::stdout(),
            Self::Err => rustix::stdio::stderr(),
        };
        rustix::termios::tcgetwinsize(of).ok().map(|size| usize::from(size.ws_col))
    }
}

/// What a library logs, and what a panic says, go the same way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        drop(put(Stream::Err, &Piece::Words(String::from_utf8_lossy(bytes).into_owned())));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Has a panic tell of itself here, in the words that it usually has.
pub(crate) fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        tell(format_args!("thread '{}' {panic}", thread.name().unwrap_or("without a name")));
        let trace = std::backtrace::Backtrace::capture();
        if trace.status() == std::backtrace::BacktraceStatus::Captured {
            tell(trace);
        }
    }));
}

/// Whether a terminal would do something with it, or show something else than stands there.
fn is_obeyed(letter: char) -> bool {
    const REVERSING: [char; 12] = [
        '\u{061c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
        '\u{2066}', '\u{2067}', '\u{2068}', '\u{2069}',
    ];
    letter.is_control() || REVERSING.contains(&letter) || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// Text without what would move a cursor, ring a bell or reverse what is read; lines and tabs stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    named(text, is_obeyed)
}

/// The same, without anything that hides: of our own words, which repeat names and arguments.
fn seen(text: &str) -> Cow<'_, str> {
    named(text, hides)
}

/// With the names of such letters in their places; lines and tabs stay.
fn named(text: &str, which: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_named = |letter: char| which(letter) && !matches!(letter, '\n' | '\t');
    if !text.contains(is_named) {
        return Cow::Borrowed(text);
    }
    // A carriage return before a line's end only ends the line.
    let text = text.replace("\r\n", "\n");
    let shown = |c: char| if is_named(c) { c.escape_unicode().to_string() } else { c.to_string() };
    Cow::Owned(text.chars().map(shown).collect())
}

#[cfg(test)]
impl Display for Drawn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_would_move_the_cursor_are_shown_as_what_they_are() {
        assert_eq!(plain("a\tb\r\nc"), "a\tb\nc");
        assert_eq!((&*plain("a\u{200d}b"), &*seen("a\u{200d}b\n")), ("a\u{200d}b", "a\\u{200d}b\n"));
        assert_eq!(plain("\x1b[2Jrm\u{202e}x\u{7f}\u{9b}1m"), "\\u{1b}[2Jrm\\u{202e}x\\u{7f}\\u{9b}1m");
        assert!(matches!(plain("as it is\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn what_was_not_written_is_no_success() {
        let full = Unwritten::from(io::Error::from(io::ErrorKind::StorageFull));
        let closed = Unwritten::from(io::Error::from(io::ErrorKind::BrokenPipe));
        let (stop, detach) = (OnDisconnect::Stop, OnDisconnect::Detach);
        let (good, interrupted) = (ExitCode::SUCCESS, exit::with(130));
        assert_eq!(full.instead_of(good, detach), exit::with(1));
        assert_eq!(full.instead_of(exit::with(10), stop), exit::with(1));
        assert_eq!(closed.instead_of(good, stop), exit::with(10));
        assert_eq!(closed.instead_of(good, detach), good);
        assert_eq!(closed.instead_of(interrupted, stop), interrupted);
    }
}
