//! The screen's model without a terminal: keys and events in, acts and lines out.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use ratatui::{Terminal, backend::TestBackend, text::Line, widgets::Paragraph};
use safepoint::{
    Reason, Receipt, Usage,
    approval::{AllowScope, ApprovalKind, ApprovalRequest, Decision},
    event::{Event, EventKind, Fact, Resolution},
    ids::{CallId, ItemId, Path, TurnId},
    raw::{RecordedSteer, SteerSource},
    receipt::{CallKind, ReasonReport, RequestReport},
    session::{ItemOutcome, PreemptOutcome, SessionEvent},
    stop::Code,
    tool::EffectClass,
};

use super::{
    events::ChatEvent,
    keys::CALM,
    pane,
    queue::{Origin, PushKind, Pushed},
    state::{About, Action, Leave, State},
};
use crate::signals::StopLevel;

mod asked;
mod copying;
mod edits;
mod handed;
mod kept;
mod live;
mod looks;
mod meter;
mod modes;
mod provider;
mod reads;
mod resizes;
mod rewind;
mod streams;
mod tasks;
mod thoughts;
mod todo;
mod typing;

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

/// A screen, and what time it is there.
struct World {
    state: State,
    above: Vec<Line<'static>>,
    now: Instant,
    pushed: u64,
}

impl World {
    fn new() -> Self {
        let tools = vec!["shell       asks first".into()];
        let about = About { session: "ses_1".into(), tools, is_kept: false };
        let state = State::new(about, "practice".into(), COLUMNS.into());
        Self { state, above: Vec::new(), now: Instant::now(), pushed: 0 }
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    fn press(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Vec<Action> {
        self.state.key(KeyEvent::new(code, modifiers), self.now)
    }

    fn tap(&mut self, code: KeyCode) -> Vec<Action> {
        self.press(code, KeyModifiers::NONE)
    }

    fn control(&mut self, letter: char) -> Vec<Action> {
        self.press(KeyCode::Char(letter), KeyModifiers::CONTROL)
    }

    fn type_in(&mut self, text: &str) {
        for letter in text.chars() {
            assert_eq!(self.tap(KeyCode::Char(letter)), []);
        }
    }

    fn say(&mut self, text: &str) -> Vec<Action> {
        self.type_in(text);
        self.tap(KeyCode::Enter)
    }

    fn hear(&mut self, kind: SessionEvent) -> Vec<Action> {
        let event = Event::new(0, Timestamp::UNIX_EPOCH, kind);
        self.state.hear(ChatEvent::Event(event), self.now)
    }

    fn fact(&mut self, fact: Fact) -> Vec<Action> {
        self.run(EventKind::Fact(Arc::new(fact)))
    }

    fn run(&mut self, kind: EventKind) -> Vec<Action> {
        let event = Event::new(0, Timestamp::UNIX_EPOCH, kind);
        self.hear(SessionEvent::Run { turn: turn(1), event })
    }

    fn aside(&mut self, kind: EventKind) {
        let event = Event::new(0, Timestamp::UNIX_EPOCH, kind);
        assert_eq!(self.hear(SessionEvent::Background { turn: turn(1), event }), []);
    }

    fn accepted(&mut self, text: &str, how: PushKind) -> ItemId {
        let id = item(self.pushed);
        self.pushed += 1;
        let pushed = Pushed { text: text.into(), how, origin: Origin::Here };
        assert_eq!(self.state.hear(ChatEvent::Accepted { id, item: pushed }, self.now), []);
        id
    }

    /// A running turn on one message, with a call that runs.
    fn running() -> Self {
        let mut world = Self::new();
        let id = world.accepted("book a table", PushKind::Queue);
        assert_eq!(world.state.hear(ChatEvent::Started(vec![id]), world.now), []);
        world.fact(started("shell", "sleep 100"));
        world
    }

    fn asked(&mut self, mode: &str, within_ms: Option<u64>) {
        self.fact(Fact::StopRequested(request(mode, within_ms)));
    }

    fn question(&mut self) -> ApprovalRequest {
        let question = serde_json::json!({
            "id": "apr_1", "call_id": "call_2", "tool": "shell", "digest": "",
            "args": {"command": "rm \u{202e}x", "timeout": 5},
            "asked_at": Timestamp::UNIX_EPOCH, "expires_at": Timestamp::UNIX_EPOCH,
        });
        let question: ApprovalRequest = serde_json::from_value(question).unwrap();
        self.fact(Fact::ApprovalRequested(question.clone()));
        question
    }

    fn ended(&mut self, fate: ItemOutcome) -> Vec<Action> {
        self.hear(SessionEvent::TurnEnded { turn: turn(1), fate, receipt: Arc::new(receipt()) })
    }

    /// What a person sees: all the text above, and the pane below it.
    fn screen(&mut self) -> String {
        self.above.extend(self.state.take_above());
        let mut lines = self.above.clone();
        lines.extend(pane::pane(&self.state, usize::from(ROWS) - 1, self.now).lines);
        let over = lines.len().saturating_sub(ROWS.into());
        lines.drain(..over);
        let mut terminal = Terminal::new(TestBackend::new(COLUMNS, ROWS)).unwrap();
        terminal.draw(|frame| frame.render_widget(Paragraph::new(lines), frame.area())).unwrap();
        terminal.backend().to_string()
    }

    fn shows(&mut self, text: &str) {
        let screen = self.screen();
        assert!(screen.contains(text), "not seen: {text}\n{screen}");
    }

    fn hides(&mut self, text: &str) {
        let screen = self.screen();
        assert!(!screen.contains(text), "seen: {text}\n{screen}");
    }
}

fn item(number: u64) -> ItemId {
    number.to_string().parse().unwrap()
}

fn turn(number: u64) -> TurnId {
    number.to_string().parse().unwrap()
}

fn started(name: &str, command: &str) -> Fact {
    Fact::CallStarted {
        call_id: CallId::from(name),
        name: name.into(),
        round: 1,
        args: serde_json::json!({ "command": command }).into(),
        effect: EffectClass::ReadOnly,
        key: String::new(),
        work: CallKind::Tool,
        at: Timestamp::UNIX_EPOCH,
    }
}

fn reason() -> ReasonReport {
    (&Reason::user("at the terminal")).into()
}

fn request(mode: &str, within_ms: Option<u64>) -> RequestReport {
    let request = serde_json::json!({
        "seq": 0, "at": Timestamp::UNIX_EPOCH, "reason": reason(), "mode": mode, "reach": "tree",
        "within_ms": within_ms, "asked": "first",
    });
    serde_json::from_value(request).unwrap()
}

fn preempt() -> RequestReport {
    let reason = Reason::new(Code::PREEMPTED).with_text("a newer item came");
    let mut request = request("after-model", None);
    request.reason = ReasonReport::from(&reason);
    request
}

fn receipt() -> Receipt {
    let at = Timestamp::UNIX_EPOCH;
    let stop = serde_json::json!({
        "reason": reason(), "asked": "after-model", "fired": "after-model", "escalated": "no",
        "requested_at": at, "observed_at": at, "phase": "calls were running",
        "requests": [request("after-model", None)],
    });
    let receipt = serde_json::json!({
        "run": "run_1", "attempt": 1, "ending": "stopped", "stop": stop, "rounds": 1, "model": null, "calls": [],
        "approvals_cancelled": [], "usage": Usage::default(), "usage_total": Usage::default(), "worked_ms": 0,
        "started_at": at, "settled_at": at, "quiet_at": null, "survivors": [], "late": [],
    });
    serde_json::from_value(receipt).unwrap()
}

fn push(text: &str, how: PushKind) -> Vec<Action> {
    vec![Action::Push { text: text.into(), how }]
}

/// Enter sends, and steers a running turn; Alt-Enter queues, and Tab never does; a steer that comes too late for the turn
/// is a message.
#[test]
fn enter_steers_a_running_turn_and_alt_enter_queues() {
    let mut world = World::new();
    assert_eq!(world.say("hi"), push("hi", PushKind::Queue));
    let mut world = World::running();
    assert_eq!(world.say("use b"), push("use b", PushKind::Steer));
    world.type_in("later");
    assert_eq!(world.press(KeyCode::Enter, KeyModifiers::ALT), push("later", PushKind::Queue));
    world.type_in("later");
    assert_eq!(world.tap(KeyCode::Tab), [], "Tab never sends");
    assert_eq!(world.press(KeyCode::Enter, KeyModifiers::ALT), push("later", PushKind::Queue));
    assert_eq!(world.tap(KeyCode::Enter), [], "nothing typed, nothing sent");
    world.ended(ItemOutcome::Completed(turn(1)));
    assert_eq!(world.say("too late"), push("too late", PushKind::Queue));
}

/// S6.5: both lists are shown and labelled; what was steered in is shown where it was taken.
#[test]
fn both_lists_are_shown_until_a_turn_takes_them() {
    let mut world = World::running();
    let steer = world.accepted("use b", PushKind::Steer);
    world.accepted("and then c", PushKind::Queue);
    world.shows("steering the next request:");
    world.shows("1. use b");
    world.shows("queued for the next turns (Up withdraws the last one):");
    world.shows("1. and then c");
    let taken =
        RecordedSteer { id: steer.to_string().into(), message: "use b".into(), source: SteerSource::Item };
    world.fact(Fact::SteerTaken { round: 2, steers: vec![taken] });
    world.shows("› use b  (steered, in request 2)");
    world.hides("steering the next request:");
    // One that was not taken waits for a turn.
    let late = world.accepted("too late", PushKind::Steer);
    world.hear(SessionEvent::Requeued(late));
    world.shows("2. too late");
    world.hides("steers,");
}

/// S6.1, S6.3: items of a preempt stand before the queue. They are shown as replacing the running turn only
/// until the preempt is answered; what a turn has had waits again in its place.
#[test]
fn what_came_with_a_preempt_stands_before_the_queue() {
    let mut world = World::running();
    world.accepted("q1", PushKind::Queue);
    let (p1, p2) = (world.accepted("p1", PushKind::Preempt), world.accepted("p2", PushKind::Preempt));
    world.shows("1. p1 (instead of the running turn)");
    world.shows("2. p2 (instead of the running turn)");
    world.shows("3. q1 ");
    for id in [p1, p2] {
        world.hear(SessionEvent::Preempted { item: id, preempted: PreemptOutcome::StoppedTurn(turn(1)) });
    }
    world.ended(ItemOutcome::Preempted(turn(1)));
    world.state.hear(ChatEvent::Started(vec![p1]), world.now);
    world.shows("1. p2 (before the queue)");
    world.shows("2. q1 ");
    world.hides("instead of the running turn");
    world.hear(SessionEvent::Requeued(p1));
    world.shows("1. p2 (before the queue)");
    world.shows("3. p1 ");
}

/// S6.7: a stop of the session is shown once, and again only when there is something new to show.
#[test]
fn a_stop_that_is_asked_again_and_again_is_said_once() {
    let mut world = World::running();
    let mut said = Vec::new();
    for cause in [None, None, Some("enough"), Some("enough")] {
        world.hear(SessionEvent::StopRequested { cause: cause.map(str::to_owned), once_idle_for: None });
        said.extend(world.state.take_above().iter().map(ToString::to_string));
    }
    said.retain(|line| line.contains("asked to stop"));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].contains("enough"), "{said:?}");
    let minute = Some(Duration::from_secs(60));
    world.hear(SessionEvent::StopRequested { cause: None, once_idle_for: minute });
    world.shows("asked to stop once it is idle for 1m 00s");
}

/// S1.5: where only the model works, a key cuts its answer at once; a tool that runs has its grace.
#[test]
fn a_key_cuts_an_answer_at_once() {
    let mut world = World::new();
    let id = world.accepted("book a table", PushKind::Queue);
    assert_eq!(world.state.hear(ChatEvent::Started(vec![id]), world.now), []);
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::Now), Action::HandBack]);
    let mut world = World::running();
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::AtSafePoint), Action::HandBack]);
}

/// S1.5, S1.7: Esc stops a tool at the next safe point and a second Esc now; what it waits for is shown at once,
/// with a countdown.
#[test]
fn escape_stops_and_says_what_it_waits_for() {
    let mut world = World::running();
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::AtSafePoint), Action::HandBack]);
    world.asked("after-model", Some(5000));
    // A later request never makes it later.
    world.asked("after-model", Some(9000));
    world.shows("Stopping: waiting for shell; forced in 5 s, or press Esc");
    world.wait(Duration::from_millis(3500));
    world.shows("forced in 2 s");
    world.shows("● shell  3 s  sleep 100");
    assert_eq!(world.tap(KeyCode::Esc), [Action::Stop(StopLevel::Now)]);
    world.asked("now", None);
    world.shows("Stopping now: waiting for shell");
    world.ended(ItemOutcome::Interrupted(turn(1)));
    world.hides("Stopping");
    world.shows("Stopped by user (person): at the terminal");
    world.hides("running   nothing");
    world.hear(SessionEvent::TurnQuiet {
        turn: turn(1),
        survivors: Vec::new(),
        receipt: Arc::new(receipt()),
    });
    world.shows("  running   nothing, ");
    assert_eq!(world.tap(KeyCode::Esc), [], "nothing is running");
}

/// S3.6: what is still alive is named, and not called quiet.
#[test]
fn what_is_still_alive_is_named() {
    let mut world = World::running();
    world.ended(ItemOutcome::Interrupted(turn(1)));
    world.hear(SessionEvent::TurnQuiet {
        turn: turn(1),
        survivors: vec!["command (pid 7)".into()],
        receipt: Arc::new(receipt()),
    });
    world.shows("warning: still running: command (pid 7)");
    world.hides("running   nothing");
    world.say("/receipt");
    assert_eq!(world.screen().matches("warning: still running: command (pid 7)").count(), 2);
}

/// S8.2: a question shows exactly what would run, and is answered by one key.
#[test]
fn a_question_shows_what_would_run_and_one_key_answers() {
    for (letter, decision) in [('y', Decision::Approve), ('n', Decision::Deny { message: String::new() })] {
        let mut world = World::running();
        let question = world.question();
        world.shows("Allow shell to run?");
        world.shows("$ rm \\u{202e}x");
        world.shows("    timeout: 5");
        world.shows("shell  waits for your answer");
        world.wait(CALM);
        world.shows("? may shell run: rm \\u{202e}x  (timeout: 5)");
        world.shows("y yes · n no · m no, saying why");
        assert_eq!(world.tap(KeyCode::Char(letter)), [Action::Decide(question.id.clone(), decision.clone())]);
        let answer = Resolution::Decided(decision);
        world.fact(Fact::ApprovalResolved { id: question.id, call_id: CallId::from("call_2"), answer });
        world.hides("may shell run");
    }
}

/// S8.2: the chat asks who answered an approval that it showed, only where another process could have.
#[test]
fn who_answered_elsewhere_is_asked() {
    for (is_kept, here) in [(true, false), (true, true), (false, false)] {
        let mut world = World::running();
        world.state.about.is_kept = is_kept;
        let question = world.question();
        world.wait(CALM);
        if here {
            world.tap(KeyCode::Char('y'));
        }
        let (id, answer) = (question.id.clone(), Resolution::Decided(Decision::Approve));
        let acts = world.fact(Fact::ApprovalResolved { id, call_id: CallId::from("call_2"), answer });
        let asked = if is_kept && !here { vec![Action::WhoAnswered(question.id)] } else { Vec::new() };
        assert_eq!(acts, asked, "kept: {is_kept}, here: {here}");
    }
}

/// S8.6: the reach of a yes is shown before it is given, and a key that names no reach gives none.
#[test]
fn a_yes_for_always_says_what_it_allows() {
    for (letter, covers) in [('e', AllowScope::Call), ('t', AllowScope::Tool)] {
        let mut world = World::running();
        let question = world.question();
        world.wait(CALM);
        assert_eq!(world.tap(KeyCode::Char('a')), []);
        world.shows("from now on, in this session and in no other, without a question:");
        world.shows("e shell with exactly these arguments");
        world.shows("t every call of shell, whatever its arguments");
        assert_eq!(world.tap(KeyCode::Char('y')), []);
        assert_eq!(world.tap(KeyCode::Esc), []);
        world.hides("from now on");
        world.wait(CALM);
        assert_eq!(world.tap(KeyCode::Char('a')), []);
        let decision = Decision::ApproveAlways { covers };
        assert_eq!(world.tap(KeyCode::Char(letter)), [Action::Decide(question.id, decision)]);
        assert!(world.state.input.is_empty());
    }
}

/// S7.3: of a call that may have happened the screen says so, and its three answers are others than yes and no.
#[test]
fn what_may_have_happened_has_answers_of_its_own() {
    let ask = |world: &mut World| {
        let mut question = world.question();
        world.fact(closed(&question, Resolution::Withdrawn));
        question.question = ApprovalKind::AfterUnknownEnd;
        world.fact(Fact::ApprovalRequested(question.clone()));
        world.wait(CALM);
        question.id
    };
    for (letter, decision) in [('r', Decision::Approve), ('g', Decision::Deny { message: String::new() })] {
        let mut world = World::running();
        let id = ask(&mut world);
        world.shows("side effects unknown");
        world.shows("r run it again · d it is done… · g give it up");
        assert_eq!(world.tap(KeyCode::Char(letter)), [Action::Decide(id, decision)]);
    }
    let mut world = World::running();
    let id = ask(&mut world);
    assert_eq!(world.tap(KeyCode::Char('y')), [], "a yes of habit is no answer");
    world.state.input.clear();
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('d')), []);
    assert_eq!(world.tap(KeyCode::Enter), [], "no result, no answer");
    assert_eq!(
        world.say("receipt 7"),
        [Action::Decide(id, Decision::Respond { result: "receipt 7".into() })]
    );
}

fn closed(question: &ApprovalRequest, answer: Resolution) -> Fact {
    Fact::ApprovalResolved { id: question.id.clone(), call_id: question.call_id.clone(), answer }
}

/// S8.2: of several questions one is put at a time, and it is the one that is answered; a key in a hurry answers none.
#[test]
fn questions_are_put_one_at_a_time() {
    let mut world = World::running();
    let first = world.question();
    let mut second = first.clone();
    (second.id, second.args) = ("apr_2".into(), serde_json::json!({"command": "two"}));
    world.fact(Fact::ApprovalRequested(second.clone()));
    world.shows("    timeout: 5");
    world.hides("\"two\"");
    world.wait(CALM);
    world.shows("1 more after it");
    assert_eq!(world.tap(KeyCode::Char('y')), [Action::Decide(first.id.clone(), Decision::Approve)]);
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('y')), [], "the second was not put yet");
    let answer = Resolution::Decided(Decision::Approve);
    world.fact(Fact::ApprovalResolved { id: first.id, call_id: first.call_id, answer });
    world.shows(r"  shell rm \u{202e}x  (timeout: 5): allowed");
    world.shows("? may shell run: two");
    world.shows("waits its turn");
    assert_eq!(world.tap(KeyCode::Char('y')), [], "nor could it be read yet");
    world.type_in("so");
    world.state.input.clear();
    world.wait(CALM / 2);
    assert_eq!(world.tap(KeyCode::Char('n')), [], "nor does a letter of what is being written");
    world.state.input.clear();
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('n')).len(), 1);
}

/// S9.1: what a background run asks is put also after the turn that began it, and answered; what the turn itself asked is
/// not asked any more.
#[test]
fn a_background_run_asks_after_its_turn_has_ended() {
    let mut world = World::running();
    let own = world.question();
    let mut behind = own.clone();
    (behind.id, behind.args) = ("apr_2".into(), serde_json::json!({"command": "two"}));
    behind.path = Path::default().of(&CallId::from("call_7"));
    let asked = EventKind::Fact(Arc::new(Fact::ApprovalRequested(behind.clone())));
    world.run(EventKind::Child { path: behind.path.clone(), event: Arc::new(asked) });
    let look = world.ended(ItemOutcome::Completed(turn(1)));
    assert_eq!(look, [Action::LookAt(vec![own.id.clone(), behind.id.clone()])]);
    world.state.gone(&[own.id], world.now);
    world.shows("Allow shell (of the agent at root/call_7) to run?");
    let mut third = behind.clone();
    (third.id, third.args) = ("apr_3".into(), serde_json::json!({"command": "three"}));
    let asked = EventKind::Fact(Arc::new(Fact::ApprovalRequested(third.clone())));
    world.aside(EventKind::Child { path: third.path.clone(), event: Arc::new(asked) });
    world.wait(CALM);
    world.shows("1 more after it");
    assert_eq!(world.tap(KeyCode::Char('y')), [Action::Decide(behind.id.clone(), Decision::Approve)]);
    let answer = Resolution::Decided(Decision::Approve);
    let closed = Fact::ApprovalResolved { id: behind.id, call_id: behind.call_id, answer };
    world.aside(EventKind::Child { path: behind.path, event: Arc::new(EventKind::Fact(Arc::new(closed))) });
    world.shows("may shell run: three");
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('n')).len(), 1);
}

/// A user who is typing when an approval appears has not answered it.
#[test]
fn what_is_being_typed_answers_nothing() {
    let mut world = World::running();
    world.type_in("wh");
    world.question();
    world.type_in("y not");
    assert_eq!(world.state.input.text(), "why not");
    world.wait(CALM / 2);
    world.type_in("y");
    world.wait(CALM / 2);
    world.type_in("y");
    assert_eq!(world.state.input.text(), "why notyy");
    world.wait(CALM);
    world.state.paste("y", world.now);
    assert_eq!(world.state.questions.len(), 1, "nor does what is pasted");
}

/// A denial may say why.
#[test]
fn a_denial_may_say_why() {
    let mut world = World::running();
    let question = world.question();
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('m')), []);
    world.shows("say why not · Enter denies with this message · Esc back");
    let denied = world.say("use ls");
    let message = "[denied by the user: use ls]".to_owned();
    assert_eq!(denied, [Action::Decide(question.id, Decision::Deny { message })]);
    assert_eq!(world.state.input.text(), "");
}

/// S11.6: Ctrl-C stops what runs, and a second one ends the chat; idle it clears the input, and only then says what ends the chat.
#[test]
fn ctrl_c_stops_clears_and_quits() {
    let mut world = World::running();
    assert_eq!(world.control('c'), [Action::Stop(StopLevel::AtSafePoint), Action::HandBack]);
    assert_eq!(world.control('c'), [Action::Quit(Leave::AtOnce)]);
    let mut world = World::new();
    world.type_in("x");
    assert_eq!(world.control('c'), []);
    assert!(world.state.input.is_empty());
    assert_eq!(world.control('c'), [], "the one that cleared the input is no first of two");
    world.shows("Ctrl-C again ends this chat");
    assert_eq!(world.control('c'), [Action::Quit(Leave::AtOnce)]);
}

/// A turn that ended before the chat was opened here, as after `/undo`, can be resumed; the foot says so until another begins.
#[test]
fn the_foot_says_that_an_earlier_turn_can_be_resumed() {
    let mut world = World::new();
    world.hides("/resume resumes");
    world.state.kept.is_open = true;
    world.shows("Enter sends · /resume resumes");
    world.state.hear(ChatEvent::Started(Vec::new()), world.now);
    assert!(!world.state.kept.is_open);
}

/// S11.6: one Ctrl-C of an idle chat ends nothing, says what would, and is forgotten.
#[test]
fn one_ctrl_c_ends_no_idle_chat() {
    let mut world = World::new();
    assert_eq!(world.control('c'), []);
    world.shows("Ctrl-C again ends this chat");
    world.wait(Duration::from_secs(2));
    assert_eq!(world.control('c'), [Action::Quit(Leave::Tidily)]);
    let mut world = World::new();
    assert_eq!(world.control('c'), []);
    world.wait(Duration::from_secs(60));
    assert_eq!(world.control('c'), []);
    world.type_in("x");
    world.tap(KeyCode::Backspace);
    assert_eq!(world.control('c'), [], "what was typed since says that it was meant otherwise");
}

/// A Ctrl-C that was meant for a turn that has just ended does not end the program.
#[test]
fn a_late_ctrl_c_does_not_quit() {
    let mut world = World::running();
    world.ended(ItemOutcome::Completed(turn(1)));
    world.hear(SessionEvent::TurnQuiet {
        turn: turn(1),
        survivors: Vec::new(),
        receipt: Arc::new(receipt()),
    });
    assert_eq!(world.control('c'), []);
    assert_eq!(world.control('d'), [Action::Quit(Leave::Tidily)]);
}

/// S4.7: for a truncated output the chat shows its full length and where all of it is.
#[test]
fn what_is_not_shown_of_an_output_is_told() {
    use safepoint::{message::CallResult, raw::OutputExtent, receipt::CallReport};
    let called = |world: &mut World, lines: usize, extent: OutputExtent| {
        let report: CallReport =
            serde_json::from_value(serde_json::json!({"call_id": "call_1", "name": "shell",
            "round": 1, "status": "completed", "effect": "done", "processes": [], "cleanups": [],
            "started_at": null, "ended_at": null, "reason": null, "stopped_by": null}))
            .unwrap();
        let text = "line\n".repeat(lines);
        let result: CallResult =
            serde_json::from_value(serde_json::json!({"call_id": "call_1", "name": "shell",
            "text": text, "verdict": "good"}))
            .unwrap();
        world.fact(Fact::CallEnded { report: report.into(), result, extent });
    };
    let mut world = World::running();
    called(&mut world, 7, OutputExtent::All);
    world.shows("… 2 more lines");
    let file = Some("/somewhere/spilled".to_owned());
    called(&mut world, 8_649, OutputExtent::Truncated { bytes: 1_288_890, file });
    world.shows("… 1288890 bytes in all: /somewhere/spilled");
    called(&mut world, 2, OutputExtent::Truncated { bytes: 1_000, file: None });
    world.shows("… 1000 bytes in all, of which the beginning and the end are kept");
}

/// Nothing is wider than the terminal, however much there is of everything.
#[test]
fn everything_fits_into_a_small_terminal() {
    let mut world = World::running();
    for number in 0..30 {
        world.accepted(&format!("{number} {}", "long ".repeat(50)), PushKind::Queue);
        world.accepted(&"steer ".repeat(50), PushKind::Steer);
        world.fact(started(&format!("tool{number}"), "x"));
    }
    world.type_in(&"typed ".repeat(100));
    let pane = pane::pane(&world.state, usize::from(ROWS) - 1, world.now);
    assert!(pane.lines.len() < usize::from(ROWS), "{}", pane.lines.len());
    let cursor = &pane.lines[pane.cursor.1];
    assert!(cursor.to_string().contains("typed"), "the cursor is in the input: {cursor}");
    world.shows("and 28 more calls");
    world.shows("30. 29 long");
}

/// Commands: completed with Tab, unknown ones are said to be so, and each tells what it should.
#[test]
fn commands_do_what_they_say() {
    let mut world = World::new();
    world.type_in("/rec");
    assert_eq!(world.tap(KeyCode::Tab), []);
    assert_eq!(world.tap(KeyCode::Enter), []);
    world.shows("no turn has ended yet");
    world.say("/nonsense");
    world.shows("command /nonsense not found; /help lists the commands");
    world.say("/tools");
    world.shows("asks first");
    world.say("/session");
    world.shows("ses_1");
    assert_eq!(world.say("/resume"), [Action::Resume]);
    assert_eq!(world.say("/model openai:x"), [Action::Model("openai:x".into())]);
    assert_eq!(world.say("/stop"), []);
    world.shows("no turn is running");
    let mut world = World::running();
    assert_eq!(world.say("/stop now"), [Action::Stop(StopLevel::Now), Action::HandBack]);
    assert_eq!(world.say("/retry"), push("book a table", PushKind::Queue));
    world.say("/trace");
    world.shows("shell shell begins: sleep 100");
    world.say("/help");
    world.shows("show the session id");
    assert_eq!(world.say("/quit"), [Action::Quit(Leave::Tidily)]);
}
