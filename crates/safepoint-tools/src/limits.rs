//! Every bound of the tools in one place, each with its default.

use std::time::Duration;

/// How long a tree may take to end after SIGINT before it gets SIGTERM.
pub const INTERRUPT: Duration = Duration::from_millis(2000);
/// How long a tree may take to end after SIGTERM before it gets SIGKILL.
pub const TERMINATE: Duration = Duration::from_millis(2000);
/// How long a tree may take to be gone after SIGKILL before its survivors are named.
pub const KILL: Duration = Duration::from_millis(1000);
/// How long what a command left behind may run after the command ended: enough for a `tee` to write its last line.
pub const LEFT_BEHIND: Duration = Duration::from_millis(50);
/// Bytes of a command's output that are kept in memory, half of them its head and half its tail.
pub const OUTPUT_BYTES: usize = 64 << 10;
/// Bytes of a command's output that are written to a file once the memory budget is passed.
pub const SPILL_BYTES: u64 = 1 << 30;
/// Processes that a text or a receipt names; further ones are counted.
pub const NAMED_PROCESSES: usize = 64;
/// Processes that one report holds: as many as fit into a message several times over.
pub(crate) const REPORTED_PROCESSES: usize = 1 << 15;

/// Bytes of the end of an output that a message quotes.
pub(crate) const QUOTED_BYTES: usize = 1000;
/// The share of a stop's cap that is kept for SIGKILL to do its work: one part in this many.
pub(crate) const KILL_SHARE: u32 = 4;
/// How much of a pipe is read at once.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;
/// How much is still read of a pipe whose tree is gone, in case a process outside the tree writes to it.
pub(crate) const DRAIN_BYTES: usize = 1 << 20;
/// The largest message between a runtime and its guard.
pub(crate) const FRAME_BYTES: usize = 16 << 20;
/// The pause before a tree that got SIGKILL is looked at again, at first; it doubles up to [`SWEEP_SLOW`].
pub(crate) const SWEEP: Duration = Duration::from_millis(1);
/// The longest such pause.
pub(crate) const SWEEP_SLOW: Duration = Duration::from_millis(100);
/// How often the runtime looks, while a command is being stopped, whether its keeper can do its work.
pub(crate) const PULSE: Duration = Duration::from_millis(100);
/// A time without end: thirty years, which every clock can still add.
pub(crate) const NEVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
/// How long a guard whose runtime is gone waits for its keepers before it kills everything below it itself.
pub(crate) const KEEPERS: Duration = Duration::from_millis(250);

/// Bytes of a tool's text before its own notices, so that the engine's budget does not cut it a second time.
pub const TEXT_BYTES: usize = 48 << 10;
/// How long a stopped command may take in all, SIGKILL included: a little less than the engine's own clean-up time,
/// so that its end is reported and not cut.
pub const SHELL_CLEANUP: Duration = Duration::from_millis(4700);
/// Bytes of output that are shown while a command runs.
pub const PROGRESS_BYTES: usize = 256 << 10;
/// Lines that `read_file` returns without a `limit`.
pub const READ_LINES: usize = 2000;
/// The longest line that is shown whole.
pub const LINE_BYTES: usize = 4000;
/// How far into a file `read_file` looks for the lines that are wanted.
pub const READ_BYTES: u64 = 256 << 20;
/// The largest file that `edit_file` takes, and that `search` looks into.
pub const EDIT_BYTES: u64 = 16 << 20;
/// The largest file whose content is compared with what a person saw before they approved its replacement.
pub const COMPARED_BYTES: u64 = 256 << 20;
/// Bytes of the diff that a tool reports after an edit.
pub const DIFF_BYTES: usize = 32 << 10;
/// Bytes of one line of such a diff.
pub const DIFF_LINE_BYTES: usize = 2 << 10;
/// Entries that `list_dir` gives.
pub const LISTED: usize = 1000;
/// Matches that `search` gives.
pub const MATCHES: usize = 200;
/// The longest line that `search` shows whole.
pub const MATCH_BYTES: usize = 300;
/// The largest body that `http_get` reads.
pub const HTTP_BYTES: usize = 2 << 20;
/// How long one `http_get` may take.
pub const HTTP_TIME: Duration = Duration::from_secs(30);
/// How long it may take to connect.
pub const HTTP_CONNECT: Duration = Duration::from_secs(10);
/// How many redirects it follows.
pub const HTTP_REDIRECTS: usize = 5;
/// The longest nap.
pub const SLEEP_SECONDS: f64 = 24.0 * 60.0 * 60.0;
/// How much of a file is looked at to tell text from other things.
pub(crate) const SNIFF_BYTES: usize = 8 << 10;
/// How often opening a path is tried again when another process renames parts of it meanwhile.
pub(crate) const OPEN_TRIES: usize = 16;

/// How long an MCP server may take to start and to tell its tools.
pub const MCP_START: Duration = Duration::from_secs(30);
/// The largest message of an MCP server that is read; a larger one is a failed call.
pub const MCP_MESSAGE_BYTES: usize = 16 << 20;
/// The largest refusal of an MCP server over HTTP that is read; of a larger one the status alone counts.
pub const MCP_REFUSAL_BYTES: usize = 64 << 10;
/// Bytes of an answer that is no message that an error quotes.
pub const MCP_UNREAD_BYTES: usize = 256;
/// Bytes of an MCP server's standard error that are kept, half of them its head and half its tail.
pub const MCP_ERROR_BYTES: usize = 16 << 10;
/// How long an MCP server may take to end by itself after its input was closed, before it gets SIGINT.
pub const MCP_EXIT: Duration = Duration::from_millis(500);
/// How long the ladder of an MCP server that did not end by itself may take in all.
pub const MCP_LADDER: Duration = Duration::from_secs(2);
/// How long what an MCP server wrote before it ended may still be read, and how long the last message to it may take.
pub const MCP_LAST_WORDS: Duration = Duration::from_millis(200);
/// How often a lost MCP server is started or reached again for one call.
pub const MCP_TRIES: u32 = 4;
/// The pause before the first such try; it doubles up to [`MCP_PAUSE_LONG`].
pub const MCP_PAUSE: Duration = Duration::from_millis(100);
/// The longest such pause.
pub const MCP_PAUSE_LONG: Duration = Duration::from_secs(5);
/// The longest pause before a server that ended the stream on which it tells its changes is asked for another.
pub const MCP_HEAR_PAUSE_LONG: Duration = Duration::from_secs(60);
/// An MCP server that lived this long is well: when it is lost, it is started again without a pause.
pub const MCP_WELL: Duration = Duration::from_secs(5);
/// Tools that one MCP server may have; further ones are not offered.
pub const MCP_TOOLS: usize = 512;
/// Pages in which an MCP server may tell its tools.
pub const MCP_PAGES: usize = 64;
/// Bytes of a tool's description that a model is shown.
pub const MCP_DESCRIPTION_BYTES: usize = 4 << 10;
/// The largest schema of one tool's arguments.
pub const MCP_SCHEMA_BYTES: usize = 64 << 10;
/// How deeply a message may be nested; what is deeper is cut out. A reader of JSON refuses the whole from 128 on.
pub const MCP_DEPTH: usize = 100;
/// How many patterns of a schema may be left to the server to check.
pub const MCP_UNCHECKED_PATTERNS: usize = 64;
/// The longest name of a tool that every provider takes.
pub const MCP_NAME_BYTES: usize = 64;
/// Abandoned calls whose late answers are still reported.
pub const MCP_LATE: usize = 256;
/// Progress notices of one call that are passed on.
pub const MCP_NOTICES: usize = 1000;
/// Bytes of one progress notice that are passed on.
pub const MCP_NOTICE_BYTES: usize = 1000;
