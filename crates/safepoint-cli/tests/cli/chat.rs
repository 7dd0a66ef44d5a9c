//! The chat in a real terminal: streaming, stop and receipt, steer while busy, the queue, and its ends.

use safepoint_testkit::wait::until;
use std::{
    fs,
    io::{Read as _, Write as _},
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use super::terminal::{CTRL_C, Terminal};
use crate::{Practice, safepoint};

const ESC: &str = "\x1b";
const ALT_ENTER: &str = "\x1b\r";
const UP: &str = "\x1b[A";
const IDLE: &str = "Enter sends";

/// A chat with its own directory.
struct Chat {
    terminal: Terminal,
    folder: tempfile::TempDir,
}

impl Chat {
    fn start(server: &Practice, args: &[&str]) -> Self {
        Self::start_with(server, args, &[])
    }

    fn start_with(server: &Practice, args: &[&str], more: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let chat = ["chat", "--base-url", &server.url, "--model", "openai:x"];
        let home = folder.path().to_str().unwrap();
        let variables = [("TERM", "xterm"), ("HOME", home), ("XDG_RUNTIME_DIR", home)];
        let terminal = Terminal::spawn(&[&chat[..], args].concat(), &[&variables[..], more].concat());
        terminal.until(IDLE);
        Self { terminal, folder }
    }

    fn say(&mut self, text: &str) {
        self.terminal.press(text);
        // What is typed is seen before it is sent: no key is taken for another's.
        self.terminal.until(text);
        self.terminal.press("\r");
    }
}

/// Whether a process with this word in its command line lives.
fn lives(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok()).any(|line| {
        String::from_utf8_lossy(&line).contains(word) && !String::from_utf8_lossy(&line).contains("safepoint")
    })
}

fn calling(command: &str, then: &[&str]) -> String {
    let calls = serde_json::json!([{"name": "shell", "args": {"command": command}}]);
    let mut replies = vec![serde_json::json!({ "calls": calls })];
    replies.extend(then.iter().map(|text| serde_json::json!({ "text": text })));
    serde_json::json!({ "replies": replies }).to_string()
}

/// The text stands as it was said, the input line below it; Ctrl-D ends, and leaves the text in the scrollback.
#[test]
fn text_streams_above_the_input_and_stays() {
    let script = r#"{"replies":[{"text":"one **two** three\nfour","chunk_chars":3,"delay_ms":20}]}"#;
    let server = Practice::start(script);
    let mut chat = Chat::start(&server, &[]);
    chat.say("hello");
    chat.terminal.until("● the model");
    chat.terminal.until("four");
    chat.terminal.until(IDLE);
    chat.terminal.press("\x04");
    let (code, screen) = chat.terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("› hello\n\none two three\nfour"), "{screen}");
    assert!(!screen.contains(IDLE) && !screen.contains("●"), "{screen}");
}

/// S4.7: of an output that is longer than what is kept of it, the file that has all of it is named, and has it.
#[test]
fn the_file_with_the_rest_of_an_output_is_named() {
    const LINES: usize = 199_995;
    let server = Practice::start(&calling(&format!("seq {LINES}"), &["counted"]));
    let mut chat = Chat::start(&server, &["--tools", "shell", "--approve", "auto"]);
    chat.say("count");
    chat.terminal.until("counted");
    chat.terminal.until(IDLE);
    // A path may be longer than a line of the terminal.
    let shown: String = chat.terminal.screen().lines().map(str::trim).collect();
    let named = shown.split_once(" bytes in all:").unwrap_or_else(|| panic!("no file is named: {shown}")).1;
    let file =
        (1..=named.len()).rev().filter_map(|end| named.get(..end)).find(|path| Path::new(path).is_file());
    let file = file.unwrap_or_else(|| panic!("there is no such file: {named}"));
    assert_eq!(fs::read_to_string(file).unwrap().lines().count(), LINES);
    chat.terminal.press("\x04");
    assert_eq!(chat.terminal.end().0, 0);
}

/// S1.5, S5.3: Esc stops at a safe point and says at once what it waits for; a second Esc stops now; then
/// comes the receipt, and the session continues.
#[test]
fn escape_stops_the_turn_shows_its_receipt_and_the_session_goes_on() {
    let server = Practice::start(&calling("sleep 1000", &["and on"]));
    let mut chat = Chat::start(&server, &["--approve", "auto"]);
    chat.say("go");
    chat.terminal.until("● shell");
    chat.terminal.press(ESC);
    chat.terminal.until("Stopping: waiting for shell; forced in");
    chat.terminal.press(ESC);
    chat.terminal.until("Stopped by user (person): at the terminal");
    chat.terminal.until("call      shell");
    chat.terminal.until("  running   nothing, ");
    chat.say("next");
    chat.terminal.until("and on");
    chat.terminal.until(IDLE);
    chat.terminal.press(CTRL_C);
    chat.terminal.press(CTRL_C);
    chat.terminal.end();
}

/// S6.5, S6.12: Enter steers a running turn, Alt-Enter queues for the next; Up withdraws the last; both are
/// shown.
#[test]
fn enter_steers_and_alt_enter_queues() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let wait = format!("until [ -e {} ]; do sleep 0.05; done", gate.display());
    let server = Practice::start(&calling(&wait, &["steered", "third answer"]));
    let mut chat = Chat::start(&server, &["--approve", "auto"]);
    chat.say("go");
    chat.terminal.until("● shell");
    chat.say("use b instead");
    chat.terminal.until("steering the next request:");
    chat.terminal.until("1. use b instead");
    for text in ["queued one", "queued two"] {
        chat.terminal.press(text);
        chat.terminal.until(text);
        chat.terminal.press(ALT_ENTER);
        chat.terminal.until(&format!(". {text}"));
    }
    chat.terminal.press(UP);
    chat.terminal.until("› queued two");
    chat.terminal.until_it("it waits no more", |screen| !screen.contains("2. queued two"));
    std::fs::write(&gate, "").unwrap();
    chat.terminal.until("› use b instead  (steered, in request 2)");
    chat.terminal.until("third answer");
    chat.terminal.until(IDLE);
    let screen = chat.terminal.screen();
    assert!(screen.contains("› queued one\n\nthird answer"), "{screen}");
    assert!(screen.contains("\n› queued two"), "it is in the input: {screen}");
    let log = server.logged().iter().map(ToString::to_string).collect::<String>();
    assert!(log.contains("use b instead") && !log.contains("queued two"), "{log}");
}

/// The queue is handed back to the input by a stop: nothing is sent that was not seen.
#[test]
fn a_stop_hands_the_queue_back() {
    let server = Practice::start(&calling("sleep 1000", &["never asked"]));
    let mut chat = Chat::start(&server, &["--approve", "auto"]);
    chat.say("go");
    chat.terminal.until("● shell");
    chat.terminal.press("later");
    chat.terminal.until("› later");
    chat.terminal.press(ALT_ENTER);
    chat.terminal.until("1. later");
    chat.terminal.press(ESC);
    chat.terminal.until("Stopping");
    chat.terminal.press(ESC);
    chat.terminal.until("  running   nothing, ");
    chat.terminal.until("› later");
    chat.terminal.until("/resume resumes");
    assert!(!chat.terminal.screen().contains("never asked"));
}

/// S5.3: what was queued before a stop does not run because something is said while it stops; that is sent as it is.
#[test]
fn what_is_said_while_it_stops_does_not_let_the_queue_run() {
    let server = Practice::start(&calling("trap '' INT TERM; sleep 1000", &["an answer", "never asked"]));
    let mut chat = Chat::start(&server, &["--approve", "auto"]);
    chat.say("go");
    chat.terminal.until("● shell");
    chat.terminal.press("stale plan");
    chat.terminal.until("› stale plan");
    chat.terminal.press(ALT_ENTER);
    chat.terminal.until("1. stale plan");
    chat.terminal.press(ESC);
    chat.terminal.until("not sent, yours again when the turn has ended:");
    chat.say("wait, I mean b");
    chat.terminal.until("1. wait, I mean b");
    chat.terminal.press(ESC);
    chat.terminal.until("an answer");
    chat.terminal.until(IDLE);
    let screen = chat.terminal.screen();
    assert!(screen.contains("not sent (Up brings it back): stale plan"), "{screen}");
    chat.terminal.press(UP);
    chat.terminal.until("› stale plan");
    let log = server.logged().iter().map(ToString::to_string).collect::<String>();
    assert!(log.contains("wait, I mean b") && !log.contains("stale plan"), "{log}");
}

/// S8.2: a question shows exactly what would run; nothing ran before it; yes lets it.
#[test]
fn a_question_is_asked_inline() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made");
    let server = Practice::start(&calling(&format!("touch {}", file.display()), &["all done"]));
    let mut chat = Chat::start(&server, &["--root", folder.path().to_str().unwrap()]);
    chat.say("go");
    chat.terminal.until("Allow shell to run?");
    chat.terminal.until("y yes · n no");
    assert!(!file.exists());
    chat.terminal.press("y");
    chat.terminal.until("all done");
    assert!(file.exists() && chat.terminal.screen().contains("allowed"), "{}", chat.terminal.screen());
}

/// Twice Ctrl-C ends within a second, whatever runs and however deaf it is; nothing stays behind.
#[test]
fn ctrl_c_twice_ends_within_a_second_and_leaves_nothing() {
    let deaf = "trap '' INT TERM; setsid sh -c \"trap '' INT TERM; sleep 87651\" & sleep 87651";
    let server = Practice::start(&calling(deaf, &[]));
    let mut chat = Chat::start(&server, &["--approve", "auto"]);
    chat.say("go");
    chat.terminal.until("● shell");
    until("it runs", || lives("sleep\x0087651"));
    chat.terminal.press(CTRL_C);
    chat.terminal.until("Stopping");
    let pressed = Instant::now();
    chat.terminal.press(CTRL_C);
    let (code, screen) = chat.terminal.end();
    let took = pressed.elapsed();
    assert_eq!(code, 130, "{screen}");
    // A second on a machine that does nothing else.
    assert!(took < Duration::from_secs(3), "{took:?}");
    until("nothing of it lives", || !lives("sleep\x0087651"));
    assert_eq!(
        std::fs::read_dir(chat.folder.path().join("safepoint")).unwrap().count(),
        0,
        "the socket is gone"
    );
}

/// A width that changes several times at once leaves one pane, drawn for the last one, and all of what was said.
#[test]
fn a_width_that_changes_leaves_one_pane() {
    let server = Practice::start(&calling("sleep 300; echo and more words", &["fine"]));
    let mut chat = Chat::start(&server, &["--approve", "auto"]);
    chat.say("hello");
    chat.terminal.until("● shell");
    for columns in [90, 60, 80, 50, 100, 40] {
        chat.terminal.resize(columns);
    }
    // The hint is longer than the new width, so it is in two rows only once the pane is drawn for it.
    chat.terminal.until("auto · Enter steers · Alt-Enter queues\nEsc stops · /help");
    let screen = chat.terminal.screen();
    assert_eq!(
        (screen.matches("Enter steers").count(), screen.matches("● shell").count()),
        (1, 1),
        "{screen}"
    );
    assert!(screen.contains("› hello"), "{screen}");
    chat.terminal.press(ESC);
    chat.terminal.until("Stopping");
    chat.terminal.press(ESC);
    chat.terminal.until("  running   nothing, ");
    assert_eq!(chat.terminal.screen().matches("Stopping").count(), 0, "{}", chat.terminal.screen());
}

/// S12.55: without colours nothing is coloured, the marks stay, and the mode of the terminal is given back.
#[test]
fn without_colours_nothing_is_coloured() {
    let server = Practice::start(r#"{"replies":[{"text":"**bold** `code`"}]}"#);
    let mut chat = Chat::start_with(&server, &[], &[("NO_COLOR", "1")]);
    chat.say("hi");
    chat.terminal.until("**bold** `code`");
    chat.terminal.press("\x04");
    assert_eq!(chat.terminal.end().0, 0);
    let raw = chat.terminal.raw();
    let is_style = |part: &str| {
        part.split(['H', 'J', 'K', 'A', 'B', 'C', 'h', 'l']).next().is_some_and(|code| code.contains('m'))
    };
    assert!(!raw.split("\x1b[").skip(1).any(is_style), "{raw:?}");
    assert!(raw.ends_with("\x1b[?2004l\x1b[?25h"), "{raw:?}");
}

/// Where there is no terminal: one turn for each line, text to stdout, the rest to stderr.
#[test]
fn without_a_terminal_each_line_is_a_turn() {
    let server = Practice::start(r#"{"replies":[{"text":"one"},{"text":"two"}]}"#);
    let folder = tempfile::tempdir().unwrap();
    let mut child = safepoint(&["chat", "--base-url", &server.url, "--model", "openai:x"])
        .env("XDG_RUNTIME_DIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a\n\nb\n").unwrap();
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), "one\ntwo\n"));
}

/// S3.6, S6.11: where there is no terminal, a turn that a limit stops has its whole receipt, down to what of it is alive; the
/// exit code is that of the last turn.
#[test]
fn without_a_terminal_a_receipt_ends_with_quiet() {
    for (lines, code) in [("a\n", 10), ("a\nb\n", 0)] {
        let server = Practice::start(&calling("echo hi", &["two"]));
        let folder = tempfile::tempdir().unwrap();
        let mut child =
            safepoint(&["chat", "--base-url", &server.url, "--model", "openai:x", "--max-rounds", "1"])
                .args(["--tools", "shell", "--approve", "auto"])
                .env("XDG_RUNTIME_DIR", folder.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{said}");
        let quiet = said.matches("  running   nothing, ").count();
        assert_eq!((quiet, said.contains("running   not known yet")), (1, false), "{said}");
    }
}

/// S11.6: one Ctrl-C of an idle chat loses no conversation; a second one, meant so, ends it.
#[test]
fn one_ctrl_c_of_an_idle_chat_ends_nothing() {
    let server = Practice::start(r#"{"replies":[{"text":"first answer"},{"text":"second answer"}]}"#);
    let mut chat = Chat::start(&server, &["--tools", "none"]);
    chat.say("hello");
    chat.terminal.until("first answer");
    chat.terminal.until(IDLE);
    // A Ctrl-C that may have been meant for the turn says nothing yet. No key is pressed before the last was acted on: a key
    // that the input shows, and the one that takes it back.
    until("the warning", || {
        for (keys, input) in [("\x03x", "\n› x\n"), ("\x7f", "\n› \n")] {
            chat.terminal.press(keys);
            chat.terminal.until_it(input, |screen| screen.contains(input));
        }
        chat.terminal.screen().contains("Ctrl-C again ends this chat, stored as ses_")
    });
    chat.say("and more");
    chat.terminal.until("second answer");
    chat.terminal.press("\x04");
    assert_eq!(chat.terminal.end().0, 0);
}

/// S11.6: the same where lines are typed into a terminal that cannot be drawn on.
#[test]
fn one_ctrl_c_of_a_plain_chat_ends_nothing() {
    let server = Practice::start(r#"{"replies":[{"text":"first answer"}]}"#);
    let args = ["chat", "--base-url", &server.url, "--model", "openai:x", "--tools", "none"];
    let mut terminal = Terminal::spawn(&args, &[("TERM", "dumb")]);
    until("it hears signals", || terminal.catches_interrupts());
    terminal.press(CTRL_C);
    terminal.until("Ctrl-C again ends this chat");
    terminal.press("hello\n");
    terminal.until("first answer");
    terminal.press("\x04");
    assert_eq!(terminal.end().0, 0);
}

/// S12.65: where lines are typed into a terminal that cannot be drawn on, a mark says so, and a command is no message.
#[test]
fn a_plain_chat_at_a_keyboard_has_a_prompt_and_a_few_commands() {
    let server = Practice::start(r#"{"replies":[{"text":"first answer"}]}"#);
    let args = ["chat", "--base-url", &server.url, "--model", "openai:x", "--tools", "none"];
    let mut terminal = Terminal::spawn(&args, &[("TERM", "dumb")]);
    terminal.until("› ");
    terminal.press("/help\n");
    terminal.until("/quit or Ctrl-D ends the chat");
    terminal.press("/rewind 2\n");
    terminal.until("/rewind needs a terminal that can be drawn on");
    terminal.press("/etc/hosts is what?\n");
    terminal.until("first answer");
    terminal.press("/quit\n");
    assert_eq!(terminal.end().0, 0);
}

/// S12.65: lines of a pipe are turns also where no command is named; nothing is taken for a wish to see the help.
#[test]
fn the_program_alone_reads_the_lines_of_a_pipe() {
    let output = safepoint(&[]).stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && printed.is_empty(), "{printed}");
}

/// S11.6: Ctrl-Z gives the terminal back to the shell; a job that the shell continues resumes where it was.
#[test]
fn ctrl_z_goes_to_the_shell_and_fg_comes_back() {
    let server = Practice::start(r#"{"replies":[{"text":"first answer"},{"text":"second answer"}]}"#);
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let script = "set -m; \"$@\"; echo \"back with $?\"; read -r line; echo \"said $line\"; fg >/dev/null; echo \"over with $?\"";
    let chat = [crate::BIN, "chat", "--base-url", &server.url, "--model", "openai:x", "--tools", "none"];
    let args = [&["bash", "-c", script, "bash"], &chat[..]].concat();
    let variables = [("TERM", "xterm"), ("HOME", home), ("XDG_RUNTIME_DIR", home)];
    let mut terminal = Terminal::spawn_it(&args, &variables);
    terminal.until(IDLE);
    terminal.press("hello\r");
    terminal.until("first answer");
    terminal.until(IDLE);
    terminal.press("half a line");
    terminal.until("› half a line");
    terminal.press("\x1a");
    terminal.until("back with 148");
    assert!(!terminal.screen().contains(IDLE), "the pane is gone: {}", terminal.screen());
    // The shell's own mode is there again: it shows what is typed, and a line ends with its newline.
    terminal.press("to the shell\n");
    terminal.until("said to the shell");
    terminal.until("› half a line");
    terminal.press(" and the rest\r");
    terminal.until("second answer");
    terminal.until(IDLE);
    terminal.press("\x04");
    let (code, screen) = terminal.end();
    assert!(code == 0 && screen.contains("over with 0"), "{screen}");
}

/// S8.2: on a terminal that cannot be drawn on, the chat asks as a run does; without a user to answer, it
/// says so before it denies a call.
#[test]
fn a_chat_asks_where_somebody_is_and_says_so_where_nobody_is() {
    let server = Practice::start(&calling("echo ran", &["all done"]));
    let args = ["chat", "--base-url", &server.url, "--model", "openai:x", "--tools", "shell"];
    let mut terminal = Terminal::spawn(&args, &[("TERM", "dumb")]);
    terminal.press("go\n");
    terminal.until("Allow shell to run?");
    terminal.until("or no and why:");
    terminal.press("y\n");
    terminal.until("▪ shell: completed");
    terminal.until("all done");
    terminal.press("\x04");
    assert_eq!(terminal.end().0, 0);
    let server = Practice::start(&calling("echo ran", &["all done"]));
    let args = ["chat", "--base-url", &server.url, "--model", "openai:x", "--tools", "shell"];
    let mut child =
        safepoint(&args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut printed = String::new();
    child.stderr.take().unwrap().read_to_string(&mut printed).unwrap();
    let word = printed
        .find("no terminal for approvals: calls of shell, shell_outside are denied")
        .unwrap_or(usize::MAX);
    assert!(word < printed.find("shell: denied").unwrap(), "{printed}");
    child.wait().unwrap();
}

/// S12.56: in tmux a conversation begins in the last rows of the screen, where no change of its size moves the pane into the history; a
/// later one of the same chat begins where that one ended.
#[test]
fn in_tmux_a_conversation_begins_at_the_bottom_of_the_screen() {
    let place = super::place::Place::new(&serde_json::json!([{"text": "noted"}, {"text": "noted"}]));
    for (tmux, is_below) in [("/tmp/tmux-0/default,1,0", true), ("", false)] {
        let mut chat = place.chat(&[], &[("TMUX", tmux)]);
        let rows = chat.screen().lines().count();
        assert_eq!(rows == usize::from(super::terminal::ROWS), is_below, "{rows} rows");
        chat.press("hello\r");
        chat.until("noted");
        chat.until(super::place::IDLE);
        let before = chat.raw().matches("\r\n").count();
        chat.press("/new\r");
        chat.until("A new conversation");
        chat.until(super::place::IDLE);
        let more = chat.raw().matches("\r\n").count() - before;
        assert!(more < usize::from(super::terminal::ROWS), "{more} more rows");
        chat.press("\x04");
        assert_eq!(chat.end().0, 0);
    }
}
