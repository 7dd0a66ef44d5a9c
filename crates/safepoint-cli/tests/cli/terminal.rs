//! The binary in a terminal: what a person sees at each moment, and what the keyboard does.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    num::NonZero,
    os::unix::ffi::OsStrExt as _,
    process::{Child, Command, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread::JoinHandle,
    time::Duration,
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use safepoint_testkit::wait::until;

use crate::{BIN, Practice};

pub(crate) const ROWS: u16 = 40;
const COLUMNS: u16 = 100;
const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const CTRL_C: &str = "\x03";

/// A `safepoint` in its own terminal, and what its screen shows.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    seen: Arc<(Mutex<Seen>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
}

impl Terminal {
    fn start(server: &Practice, args: &[&str]) -> Self {
        Self::start_with(server, args, &[("TERM", "xterm")])
    }

    fn start_with(server: &Practice, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let run = ["run", "--base-url", &server.url, "--model", "openai:x"];
        Self::spawn(&[&run[..], args].concat(), variables)
    }

    /// Any command of the program.
    pub(crate) fn spawn(args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::spawn_it(&[&[BIN], args].concat(), variables)
    }

    /// Any program.
    pub(crate) fn spawn_it(args: &[&str], variables: &[(&str, &str)]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keys, size).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap();
        let open = || {
            let name = std::ffi::OsStr::from_bytes(name.as_bytes());
            Stdio::from(File::options().read(true).write(true).open(name).unwrap())
        };
        // `setsid --ctty` makes the terminal the controlling one, so that keys are signals, and then is the program.
        let child = Command::new("setsid")
            .arg("--ctty")
            .args(args)
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .envs(variables.iter().copied())
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .spawn()
            .unwrap();
        let keys = File::from(keys);
        let [rows, columns] = [ROWS, COLUMNS].map(|size| NonZero::new(size).unwrap());
        let seen = Seen { screen: vt100::Parser::new(rows, columns, 0), raw: Vec::new() };
        let seen = Arc::new((Mutex::new(seen), Condvar::new()));
        let (mut shown, printed) = (keys.try_clone().unwrap(), Arc::clone(&seen));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                let mut seen = printed.0.lock().unwrap();
                seen.screen.process(&bytes[..count]);
                seen.raw.extend_from_slice(&bytes[..count]);
                printed.1.notify_all();
            }
        });
        Self { child, keys, seen, reader: Some(reader) }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn screen(&self) -> String {
        self.seen.0.lock().unwrap().screen.screen().contents()
    }

    /// Pauses the reader of the terminal until the returned guard is dropped.
    pub(crate) fn unread(&self) -> impl Drop {
        self.seen.0.lock().unwrap()
    }

    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.0.lock().unwrap().raw).into_owned()
    }

    /// Gives the terminal another width. What stands there is cut and not broken anew, as some terminals do it.
    pub(crate) fn resize(&mut self, columns: u16) {
        let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let [rows, columns] = [ROWS, columns].map(|size| NonZero::new(size).unwrap());
        // The screen first: what the program draws for the new size must find it.
        self.seen.0.lock().unwrap().screen.screen_mut().set_size(rows, columns);
        tcsetwinsize(&self.keys, size).unwrap();
    }

    /// Waits until the screen shows this.
    pub(crate) fn until(&self, text: &str) {
        self.until_it(text, |screen| screen.contains(text));
    }

    pub(crate) fn until_it(&self, what: &str, is_it: impl Fn(&str) -> bool) {
        let (seen, changed) = &*self.seen;
        let is_not_it = |seen: &mut Seen| !is_it(&seen.screen.screen().contents());
        let waited = changed.wait_timeout_while(seen.lock().unwrap(), PATIENCE, is_not_it).unwrap();
        let screen = waited.0.screen.screen().contents();
        assert!(!waited.1.timed_out(), "not seen: {what}; the screen:\n{screen}");
    }

    /// Whether the program survives an interrupt: it catches the signal, or blocks it for a thread that waits
    /// for it. A new thread blocks every signal for a moment, which means nothing.
    pub(crate) fn catches_interrupts(&self) -> bool {
        const INTERRUPT: u64 = 1 << 1;
        const FAULT: u64 = 1 << 10;
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let sets = status.lines().filter_map(|line| line.split_once(':'));
        let set =
            |named: &str| sets.clone().find(|(name, _)| *name == named).map_or("", |(_, set)| set.trim());
        let has = |named, bit| u64::from_str_radix(set(named), 16).is_ok_and(|set| set & bit != 0);
        has("SigCgt", INTERRUPT) || has("SigBlk", INTERRUPT) && !has("SigBlk", FAULT)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        crate::signal(&self.child, signal);
    }

    /// The processor time that the program has used; none once it has ended.
    pub(crate) fn spent(&self) -> Option<Duration> {
        spent(self.child.id())
    }

    /// Waits for the end: the exit code, and what the screen shows in the end.
    pub(crate) fn end(&mut self) -> (i32, String) {
        until("the end of the program", || self.child.try_wait().unwrap().is_some());
        let code = self.child.wait().unwrap().code().unwrap();
        // It ends when the last holder of the terminal is gone, and everything has been read.
        let reader = self.reader.take().unwrap();
        until("the last holder of the terminal is gone", || reader.is_finished());
        reader.join().unwrap();
        (code, self.screen())
    }
}

/// The processor time that a process has used; none once it has ended.
pub(crate) fn spent(pid: u32) -> Option<Duration> {
    const STATE: usize = 0;
    const USER: usize = 11;
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let ticks = |field: usize| fields[field].parse::<u32>().ok();
    (fields[STATE] != "Z").then_some(TICK * (ticks(USER)? + ticks(USER + 1)?))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.child.kill().and_then(|()| self.child.wait()).is_err() {
            // It has ended.
        }
    }
}

fn shell(command: &str) -> String {
    let calls = serde_json::json!([{"name": "shell", "args": {"command": command}}]);
    serde_json::json!({"replies": [{"calls": calls}, {"text": "all done"}]}).to_string()
}

/// The seconds of the countdown; 0 where there is none any more.
fn seconds_left(screen: &str) -> u32 {
    let left = screen.split("; forced in ").nth(1).and_then(|rest| rest.split(' ').next());
    left.map_or(0, |seconds| seconds.parse().unwrap())
}

fn live_lines(screen: &str) -> Vec<&str> {
    screen.lines().filter(|line| line.starts_with("· ")).collect()
}

const SHELL: [&str; 3] = ["--tools", "shell", "go"];
const AUTO: [&str; 5] = ["--tools", "shell", "--approve", "auto", "go"];

/// S1.5, S1.7: a live line says what runs, for how long, what a stop waits for and when it becomes now; and is gone in the end.
#[test]
fn a_live_line_says_what_runs_and_what_a_stop_waits_for() {
    let server = Practice::start(&shell("trap '' INT TERM; sleep 1000"));
    let mut terminal = Terminal::start(&server, &AUTO);
    terminal.until("▸ shell");
    terminal.until_it("seconds", |screen| screen.contains("· shell ") && screen.trim_end().ends_with(" s"));
    terminal.press(CTRL_C);
    terminal.until("· Stopping: waiting for shell");
    terminal.until("s, or press Ctrl-C");
    let first = seconds_left(&terminal.screen());
    terminal.until_it("fewer seconds", |screen| seconds_left(screen) < first);
    assert_eq!(live_lines(&terminal.screen()).len(), 1, "{}", terminal.screen());
    terminal.press(CTRL_C);
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen}");
    assert!(screen.contains("Stopped by user (person): ctrl-c"), "{screen}");
    assert!(live_lines(&screen).is_empty(), "{screen}");
}

/// What streams is not broken by the live line, and nothing of that line stays.
#[test]
fn the_text_stands_as_it_was_said() {
    let server = Practice::start(
        r#"{"replies":[{"text":"one two three\nfour five\n six","chunk_chars":3,"delay_ms":5}]}"#,
    );
    let mut terminal = Terminal::start(&server, &["hi"]);
    let (code, screen) = terminal.end();
    assert_eq!((code, screen.trim_end()), (0, "one two three\nfour five\n six"));
}

/// A stop that waits for a model's message is shown below the text, which continues after it.
#[test]
fn a_stop_that_waits_for_the_message_is_shown_below_it() {
    let server = Practice::start(
        r#"{"replies":[{"text":"abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz","chunk_chars":1,"delay_ms":40}]}"#,
    );
    let mut terminal = Terminal::start(&server, &["hi"]);
    terminal.until("abcd");
    terminal.press(CTRL_C);
    terminal.until("· Stopping: waiting for the model");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "the message was the answer: {screen}");
    assert!(
        screen.replace('\n', "").replace("^C", "").ends_with("xyz abcdefghijklmnopqrstuvwxyz"),
        "{screen}"
    );
    assert!(live_lines(&screen).is_empty(), "{screen}");
}

/// No colour where none is wanted, nothing that moves a cursor where it cannot be moved, and none beside JSON.
#[test]
fn a_plain_terminal_is_left_plain() {
    let server = Practice::start(&shell("sleep 1.5"));
    let dim = "\x1b[2m";
    let mut coloured = Terminal::start(&server, &AUTO);
    assert_eq!(coloured.end().0, 0);
    let raw = coloured.raw();
    assert!(raw.contains("· shell 1 s") && raw.contains(dim), "{raw:?}");
    let server = Practice::start(&shell("sleep 1.5"));
    let mut plain = Terminal::start_with(&server, &AUTO, &[("TERM", "xterm"), ("NO_COLOR", "1")]);
    assert_eq!(plain.end().0, 0);
    let raw = plain.raw();
    assert!(raw.contains("· shell 1 s") && !raw.contains(dim), "{raw:?}");
    for (variables, args) in
        [(("TERM", "dumb"), &AUTO[..]), (("TERM", "xterm"), &[&AUTO[..], &["--json"]].concat())]
    {
        let server = Practice::start(&shell("sleep 0.5"));
        let mut terminal = Terminal::start_with(&server, args, &[variables]);
        assert_eq!(terminal.end().0, 0);
        assert!(!terminal.raw().contains('\x1b'), "{variables:?}: {:?}", terminal.raw());
    }
}

/// S8.12: what would disguise a question is shown as what it is: invisible letters are named, and blanks push nothing off the
/// screen; of what is long the end is seen beside the answer.
#[test]
fn a_question_cannot_be_disguised() {
    let blanks = " ".repeat(6000);
    let hidden = "\u{200b}\u{2060}\u{ad}\u{3164}\u{2028}\u{e0041}";
    let server = Practice::start(&shell(&format!("true{blanks}; ec{hidden}ho payload")));
    let mut terminal = Terminal::start(&server, &SHELL);
    terminal.until("[y]es, [n]o, [a]lways, [t]ool, or no and why:");
    let shown: String = terminal.screen().lines().map(str::trim).collect();
    let named = r"true[6000 blanks]; ec\u{200b}\u{2060}\u{ad}\u{3164}\u{2028}\u{e0041}ho payload";
    assert!(shown.contains(named), "{shown}");
    terminal.press("n\n");
    assert_eq!(terminal.end().0, 0);

    let many: String = (0..4000).map(|number| format!("echo {number}\n")).collect();
    let server = Practice::start(&shell(&format!("{many}echo payload # {many}")));
    let mut terminal = Terminal::start(&server, &SHELL);
    terminal.until("[y]es, [n]o, [a]lways, [t]ool, or no and why:");
    let screen = terminal.screen();
    let shown: String = screen.lines().map(str::trim).collect();
    assert!(
        shown.contains("that is LONG") && shown.contains("$ echo 0 ⏎ echo 1") && shown.contains("echo 3999"),
        "{screen}"
    );
    terminal.press("n\n");
    assert_eq!(terminal.end().0, 0);
}

/// S8.2: the question shows exactly what would run; what was typed before it answers nothing, and what is neither a yes nor a no
/// is asked again; yes lets it run.
#[test]
fn a_question_shows_what_would_run_and_yes_lets_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made");
    let command = format!("touch {}; echo \u{202e}x", file.display());
    let server = Practice::start(&shell(&command));
    let in_folder = [&SHELL[..], &["--root", folder.path().to_str().unwrap()]].concat();
    let mut terminal = Terminal::start(&server, &in_folder);
    terminal.until("Allow shell to run?");
    terminal.until("every call of shell, whatever its arguments");
    terminal.until("[y]es, [n]o, [a]lways, [t]ool, or no and why:");
    let screen = terminal.screen();
    let shown: String = screen.lines().map(str::trim).collect();
    assert!(shown.contains(&format!("touch {}; echo \\u{{202e}}x", file.display())), "{screen}");
    assert!(!file.exists() && live_lines(&screen).is_empty(), "{screen}");
    for (asked, answer) in ["\n", "ok\n", "yes please\n"].into_iter().enumerate() {
        terminal.press(answer);
        let again = format!("it is asked again after {answer:?}");
        terminal.until_it(&again, |screen| screen.matches("[y]es").count() == asked + 2);
        assert!(!file.exists(), "{answer:?} is no yes");
    }
    assert!(!terminal.screen().contains("denied"), "and no no: {}", terminal.screen());
    terminal.press("y\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(
        file.exists() && screen.contains("▪ shell: completed") && screen.contains("all done"),
        "{screen}"
    );
}

/// S8.2: no, and why not: nothing runs, and the model gets the reason.
#[test]
fn no_is_no_and_the_model_is_told_why() {
    for (answer, printed) in
        [("n\n", "denied"), ("no, use ls instead\n", "denied by the user: use ls instead")]
    {
        let server = Practice::start(&shell("echo ran"));
        let mut terminal = Terminal::start(&server, &SHELL);
        terminal.until("or no and why:");
        terminal.press(answer);
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        assert!(screen.contains("▪ shell: denied"), "{screen}");
        let log = server.logged().iter().map(ToString::to_string).collect::<String>();
        assert!(log.contains(printed), "{log}");
    }
}

/// What was typed before a question could be read answers nothing.
#[test]
fn what_was_typed_before_the_question_answers_nothing() {
    let script = shell("echo ran").replacen(
        r#""calls""#,
        r#""text":"let me think","chunk_chars":1,"delay_ms":60,"calls""#,
        1,
    );
    let server = Practice::start(&script);
    let mut terminal = Terminal::start(&server, &SHELL);
    terminal.until("let");
    terminal.press("y\n");
    terminal.until("or no and why:");
    terminal.press("n\n");
    let (_, screen) = terminal.end();
    assert!(screen.contains("▪ shell: denied"), "{screen}");
}

/// S8.3: a stop takes the question back, and the next turn's question gets its own answer.
#[test]
fn a_stop_takes_the_question_back_and_the_next_one_has_its_own_answer() {
    let call = r#"{"calls":[{"name":"shell","args":{"command":"echo ran"}}]}"#;
    let server = Practice::start(&format!(r#"{{"replies":[{call},{call},{{"text":"all done"}}]}}"#));
    let mut terminal = Terminal::start(&server, &["--tools", "shell", "go", "--then", "again"]);
    terminal.until("or no and why:");
    terminal.press(CTRL_C);
    terminal.until("(the question is withdrawn)");
    terminal.until("Stopped by user (person): ctrl-c");
    terminal.until_it("the second question", |screen| screen.matches("or no and why:").count() == 2);
    terminal.press("y\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("withdrawn, call not run"), "{screen}");
    assert!(screen.contains("▪ shell: completed") && screen.contains("all done"), "{screen}");
}

/// S8.2, S8.4: a turn that waits is resumed at a terminal and asks there. It shows exactly what would run; a
/// blank line is no answer, later leaves it open, and a yes continues the turn, also with a new prompt.
#[test]
fn a_question_that_was_left_open_is_put_at_the_terminal_that_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let (file, store) = (folder.path().join("made"), folder.path().join("store.db"));
    let store = store.to_str().unwrap();
    let script = shell(&format!("touch {}", file.display()));
    let script = script.replace(r#"{"text":"all done"}"#, r#"{"text":"all done"},{"text":"and more"}"#);
    let server = Practice::start(&script);
    let root = folder.path().to_str().unwrap();
    let usual = ["--base-url", &server.url, "--model", "openai:x", "--tools", "shell", "--store", store];
    let usual = [&usual[..], &["--root", root]].concat();
    let left = crate::run(&[&["run", "go", "--session", "s"], &usual[..]].concat());
    assert_eq!(left.status.code(), Some(11));
    let open = || {
        let listed = crate::run(&["approvals", "s", "--store", store, "--json"]);
        crate::lines(&listed.stdout).iter().filter(|line| line["open"] == true).count()
    };
    for (args, is_last) in [(&["resume", "s"][..], false), (&["run", "--session", "s", "more"], true)] {
        let mut terminal = Terminal::spawn(&[args, &usual[..]].concat(), &[("TERM", "xterm")]);
        terminal.until("Allow shell to run?");
        terminal.until("[y]es, [n]o, [a]lways, [t]ool, [l]ater, or no and why:");
        assert!(terminal.screen().lines().map(str::trim).collect::<String>().contains("touch "));
        assert!(!file.exists(), "nothing ran");
        terminal.press("\n");
        terminal.until_it("it is asked again", |screen| screen.matches("[y]es").count() == 2);
        terminal.press(if is_last { "y\n" } else { "l\n" });
        let (code, screen) = terminal.end();
        assert_eq!((code, open()), if is_last { (0, 0) } else { (11, 1) }, "{screen}");
        assert_eq!((file.exists(), screen.contains("and more")), (is_last, is_last), "{screen}");
    }
}

/// S8.4, S7.2: a run is killed with its approval open, decided from another process, and resumed without a
/// user. The decision is applied once, and the turn ends.
#[test]
fn a_question_of_a_killed_owner_is_decided_and_its_turn_goes_on() {
    for (verb, more, runs) in
        [("approve", &[][..], true), ("deny", &[], false), ("respond", &["--message", "done"], false)]
    {
        let folder = tempfile::tempdir().unwrap();
        let (file, store) = (folder.path().join("made"), folder.path().join("store.db"));
        let store = store.to_str().unwrap();
        let server = Practice::start(&shell(&format!("echo made >> {}", file.display())));
        let root = folder.path().to_str().unwrap();
        let usual = ["--base-url", &server.url, "--model", "openai:x", "--tools", "shell", "--store", store];
        let usual = [&usual[..], &["--root", root]].concat();
        let mut terminal =
            Terminal::spawn(&[&["run", "go", "--session", "s"], &usual[..]].concat(), &[("TERM", "xterm")]);
        terminal.until("or no and why:");
        terminal.signal(rustix::process::Signal::KILL);
        terminal.child.wait().unwrap();
        let decided = crate::run(&[&[verb, "s", "--store", store], more].concat());
        assert_eq!(decided.status.code(), Some(0), "{verb}");
        let done = crate::run(&[&["resume", "s"], &usual[..]].concat());
        let printed = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.code() == Some(0) && printed.contains("all done"), "{verb}: {printed}");
        assert_eq!(file.exists(), runs, "{verb}");
        // It is complete: a resume finds no work, and nothing waits.
        let again = crate::run(&[&["resume", "s"], &usual[..]].concat());
        assert!(
            again.status.code().is_some() && !String::from_utf8_lossy(&again.stdout).contains("all done")
        );
        if runs {
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "made\n", "once");
        }
    }
}

/// S8.2: an approval that another process answers is withdrawn here, and the screen says who answered what.
#[test]
fn a_question_that_is_answered_elsewhere_says_by_whom() {
    let folder = tempfile::tempdir().unwrap();
    let (gate, store) = (folder.path().join("gate"), folder.path().join("store.db"));
    let home = folder.path().to_str().unwrap();
    let store = store.to_str().unwrap();
    let server = Practice::start(&shell(&format!("until [ -e {} ]; do sleep 0.05; done", gate.display())));
    let args =
        ["run", "go", "--session", "s", "--base-url", &server.url, "--model", "openai:x", "--tools", "shell"];
    let variables = [("TERM", "xterm"), ("HOME", home), ("XDG_RUNTIME_DIR", home)];
    let mut terminal = Terminal::spawn(&[&args[..], &["--store", store]].concat(), &variables);
    terminal.until("or no and why:");
    let mut approve = crate::safepoint(&["approve", "s", "--store", store]);
    let done = approve.env("USER", "alice").env("HOME", home).env("XDG_RUNTIME_DIR", home).status().unwrap();
    assert_eq!(done.code(), Some(0));
    terminal.until("(the question is withdrawn)");
    terminal.until("answered elsewhere: approved by ");
    std::fs::write(gate, "").unwrap();
    let (code, screen) = terminal.end();
    assert!(code == 0 && screen.contains("all done"), "{screen}");
}

/// What the README shows of a run is what a run shows: line by line, as far as no number or place stands in it.
#[test]
fn the_transcript_of_the_readme_is_what_a_run_shows() {
    let readme = include_str!("../../../../README.md");
    let shown = readme.split_once("$ safepoint run --tools shell \"run: sleep 100\"").unwrap().1;
    let shown = shown.split_once("```").unwrap().0;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let variables = [("TERM", "xterm"), ("HOME", home), ("XDG_RUNTIME_DIR", home)];
    let args = ["run", "--tools", "shell", "--model", "practice", "--grace", "1s", "run: sleep 100"];
    let mut terminal = Terminal::spawn(&args, &variables);
    terminal.until("or no and why:");
    terminal.press("y\n");
    terminal.until("· shell ");
    terminal.press(CTRL_C);
    terminal.until("· Stopping: waiting for shell");
    let (code, _) = terminal.end();
    assert_eq!(code, 130);
    let raw = terminal.raw().replace("\x1b[2m", "").replace("\x1b[0m", "").replace("\r\n", "\n");
    let seen: Vec<&str> = raw.split(['\n', '\r']).map(|line| line.trim_start_matches("\x1b[2K")).collect();
    for line in shown.lines().skip(1).filter(|line| !line.is_empty()) {
        let begins = line.split(|c: char| c.is_ascii_digit()).next().unwrap();
        assert!(seen.iter().any(|seen| seen.contains(begins)), "stale: {line}\n{seen:#?}");
    }
}
