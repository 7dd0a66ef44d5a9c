//! Commands that begin with a slash: what there is, and what each does.

use super::{
    kept::KeptAsk,
    queue::PushKind,
    rewind::RewindAsk,
    state::{Action, Leave, State, Tone},
};
use crate::signals::StopLevel;

/// Each with what it does, as `/help` tells it.
const COMMANDS: [(&str, &str); 32] = [
    ("help", "show this help"),
    ("keys", "show the keys, as ? with an empty input does"),
    ("status", "show what holds here: model, root, mode, sandbox, approvals, store, context and servers"),
    ("init", "ask the agent to write an AGENTS.md for this project, or to correct the one that is there"),
    (
        "stop",
        "stop the turn at the next safe point; `/stop now` at once; `/stop N` the call of this number alone",
    ),
    (
        "resume",
        "resume the turn that was stopped or failed, else list the stored conversations; `/resume all` lists them in any case; \
         `/resume N` or an id opens one",
    ),
    ("new", "begin a new conversation; this one stays, and you can come back to it"),
    ("clear", "the same as /new"),
    ("rename", "`/rename TITLE` gives this conversation a title"),
    ("fork", "continue in a copy of this conversation; `/fork N` copies it up to the end of turn N"),
    (
        "export",
        "write this conversation to a Markdown file; `/export FILE.html` writes its timeline as a page",
    ),
    ("sessions", "list stored and running sessions with their last state"),
    (
        "rewind",
        "list the turns to go back to; `/rewind N` shows what going back to before turn N does, and asks",
    ),
    ("undo", "take the last `/rewind` back"),
    ("retry", "send your last message again"),
    ("diff", "show all of the last edit in the pager ($PAGER, or less)"),
    ("copy", "copy the last answer to the clipboard of the terminal (OSC 52)"),
    ("receipt", "show the full receipt of the last turn"),
    (
        "review",
        "ask for a review of the uncommitted changes, with tools that read only; `/review WHAT` names a commit, a range, or \
         what you like",
    ),
    ("cost", "show what each turn has used: tokens, time and money where the price is known"),
    ("context", "show what fills the window, by part"),
    (
        "compact",
        "put a summary in the place of the conversation so far; `/compact WHAT` says what it must keep",
    ),
    ("trace", "show what the last turn recorded, step by step"),
    ("thoughts", "show the reasoning of the last turn in the pager, as Ctrl-T does"),
    ("todo", "show the to-do list of the agent"),
    (
        "tasks",
        "list the commands that run in the background; `/tasks N` shows the output of one, `/tasks end N` ends it",
    ),
    ("tools", "list the tools, and which ones need approval"),
    (
        "mode",
        "show the mode; `/mode ask`, `edits` or `plan` changes it from the next call on, as Shift-Tab does",
    ),
    ("plan", "show the last plan again, and ask whether to carry it out"),
    ("model", "list the models to choose from; `/model PROVIDER:NAME` changes it from the next turn on"),
    ("session", "show the session id, for `safepoint steer`, `push` and `stop` from another terminal"),
    ("quit", "exit"),
];

const KEYS: &str = "\
Enter       send; during a turn: steer it (the model reads the message with its next request)
Alt-Enter   during a turn: queue the message for the next turn
Tab         complete a command, a file behind @, or a pasted path of an image; it never sends
Ctrl-J      a new line
Shift-Tab   the next mode: ask, edits (inside the root and the sandbox unasked), plan (only tools that read)
Up          edit the last queued message, else an earlier one; in a message of several lines: the line above
Ctrl-R      search in what you entered before, also in other chats
Ctrl-G      edit the message in $VISUAL or $EDITOR
Ctrl-_      undo; Alt-_: redo; Ctrl-W, Ctrl-U, Ctrl-K, Alt-D cut, and Ctrl-Y puts back
!command    run a command yourself; its output goes with your next message
Esc         stop the turn: an answer at once, a tool at the next safe point; again: now; twice in an idle chat: list the turns to go back to
Alt-1…9     stop the call of this number alone, a sub-agent at its next safe point (again: now); the turn continues
Ctrl-O      unfold and fold the output of running commands; else show all of the last one in the pager
Ctrl-T      show the model's reasoning in the pager; its last line is shown while it comes
Ctrl-B      let a running command continue in the background, and the model too; /tasks lists those
Ctrl-C      stop the turn, or clear the input; twice: exit within a second
Ctrl-Z      back to the shell; `fg` returns
Ctrl-D      quit
?           with an empty input: show these keys, as /keys does
In a question about an edit: h decides hunk by hunk, v shows the whole diff in the pager
In a question about a call: e changes its arguments, and asks again with them";

/// Whether the program has a command of this name.
pub(crate) fn is_built_in(name: &str) -> bool {
    COMMANDS.iter().any(|(own, _)| *own == name) || matches!(name, "?" | "exit" | "q")
}

/// Whether something may stand behind the command: a command of the user's always takes it.
pub(crate) fn takes_more(name: &str) -> bool {
    let takes = [
        "stop", "resume", "rename", "fork", "export", "rewind", "compact", "mode", "model", "init", "review",
        "tasks",
    ];
    takes.contains(&name) || !is_built_in(name)
}

/// Each command, with what it does.
pub(crate) fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    COMMANDS.into_iter()
}

/// The command that these letters begin, or have in another order.
pub(crate) fn meant(name: &str) -> Option<&'static str> {
    let sorted = |name: &str| {
        let mut letters: Vec<char> = name.chars().collect();
        letters.sort_unstable();
        letters
    };
    let begins = COMMANDS.iter().find(|(own, _)| !name.is_empty() && own.starts_with(name));
    let has = || COMMANDS.iter().find(|(own, _)| sorted(own) == sorted(name));
    begins.or_else(has).map(|(own, _)| *own)
}

impl State {
    pub(crate) fn command(&mut self, command: &str) {
        self.gap();
        self.tell(Tone::Aside, &format!("/{command}"));
        let (name, rest) = command.split_once(' ').map_or((command, ""), |(name, rest)| (name, rest.trim()));
        match (name, rest) {
            ("help" | "?", _) => self.help(),
            ("keys", _) => self.tell_keys(),
            ("status", _) => self.actions.push(Action::Status),
            ("init", more) => self.ask_init(more),
            ("review", what) => self.ask_review(what),
            ("stop", "now") => self.noted_stop(StopLevel::Now),
            ("stop", number) if self.stop_command(number) => {}
            ("stop", _) => self.noted_stop(StopLevel::AtSafePoint),
            ("resume", named) => self.resume(named),
            ("sessions", _) => self.actions.push(Action::List),
            ("rewind", named) => self.rewind(named),
            ("undo", _) if self.work.is_some() => self.tell(Tone::Aside, "a turn is running; /stop first"),
            ("undo", _) => self.actions.push(Action::Rewind(RewindAsk::Undo)),
            ("retry", _) => self.retry(),
            ("diff", _) => self.page_diff(),
            ("copy", _) => self.copy(),
            ("receipt", _) => match self.last.clone() {
                Some(receipt) => self.tell(Tone::Plain, &receipt.to_string()),
                None => self.tell(Tone::Aside, "no turn has ended yet"),
            },
            ("trace", _) => self.tell_trace(),
            ("thoughts", _) => self.page_thoughts(),
            ("todo", _) => self.tell_todos(),
            ("tasks", rest) => self.tasks_command(rest),
            ("tools", _) => self.tell_tools(),
            ("mode", named) => self.mode_command(named),
            ("plan", _) => self.plan_command(),
            ("model", "") => self.ask_models(),
            ("model", named) => self.actions.push(Action::Model(named.to_owned())),
            ("session", _) => self.tell(Tone::Plain, &self.about.session.clone()),
            ("compact", keep) => self.compact(keep),
            (name, _) if self.meter_command(name) => {}
            (kept, rest) if self.kept_command(kept, rest) => {}
            ("quit" | "exit" | "q", _) => self.quit(Leave::Tidily),
            (custom, rest) => self.custom_command(custom, rest),
        }
    }

    /// What each key does.
    pub(super) fn tell_keys(&mut self) {
        self.tell_columns(KEYS);
    }

    fn help(&mut self) {
        let all = COMMANDS.into_iter().chain(self.custom.list());
        let commands: Vec<String> = all.map(|(name, what)| format!("/{name:<10} {what}")).collect();
        self.tell_columns(&format!("{KEYS}\n{}", commands.join("\n")));
    }

    fn noted_stop(&mut self, level: StopLevel) {
        if !self.stop_turn(level) {
            self.tell(Tone::Aside, "no turn is running");
        }
    }

    fn resume(&mut self, named: &str) {
        match named {
            _ if self.work.is_some() => self.tell(Tone::Aside, "a turn is running; /stop first"),
            "" => self.actions.push(Action::Resume),
            "all" => self.actions.push(Action::Kept(KeptAsk::Pick)),
            named => self.actions.push(Action::GoTo(named.to_owned())),
        }
    }

    fn retry(&mut self) {
        match self.last_message.clone() {
            Some(text) => self.actions.push(Action::Push { text, how: PushKind::Queue }),
            None => self.tell(Tone::Aside, "nothing was sent yet"),
        }
    }

    fn tell_trace(&mut self) {
        let Some(&(first, _)) = self.trace.first() else {
            return self.tell(Tone::Aside, "no turn has begun yet");
        };
        let lines: Vec<String> = self
            .trace
            .iter()
            .map(|(at, what)| format!("{:>9.3} s  {what}", at.duration_since(first).as_secs_f64()))
            .collect();
        self.tell_columns(&lines.join("\n"));
    }

    fn tell_tools(&mut self) {
        if self.about.tools.is_empty() {
            return self.tell(Tone::Plain, "no tools (start with --tools all, or name some)");
        }
        self.tell_columns(&self.about.tools.join("\n"));
    }
}
