//! What a person reads of calls: how a command ended, what is shown of a plan, which key the footer offers.

use safepoint::{message::AssistantMessage, receipt::ProcessReport};
use serde_json::json;

use super::*;

impl World {
    /// A command that ended so, with these lines.
    fn command_ended(&mut self, ended: &str, lines: impl Iterator<Item = String>) {
        let process = ProcessReport::new(7, "sh", ended, "cgroup");
        let report = json!({"call_id": "call_1", "name": "shell", "round": 1, "status": "completed", "effect": "done",
            "processes": [process], "cleanups": [], "started_at": null, "ended_at": null, "reason": null,
            "stopped_by": null});
        let text = lines.collect::<Vec<_>>().join("\n");
        let result = json!({"call_id": "call_1", "name": "shell", "text": text, "verdict": "good"});
        let report: safepoint::receipt::CallReport = serde_json::from_value(report).unwrap();
        self.fact(Fact::CallEnded {
            report: report.into(),
            result: serde_json::from_value(result).unwrap(),
            extent: safepoint::raw::OutputExtent::All,
        });
    }
}

/// S12.64
#[test]
fn a_command_that_failed_says_its_exit_code_and_its_last_lines() {
    let mut world = World::running();
    let lines = (1..=30).map(|number| format!("line {number}"));
    world.command_ended("exit 101", lines.chain(["error: why".into(), "[exit 101]".into()]));
    world.shows("▪ shell: exit 101");
    world.hides("shell: completed");
    world.shows("  line 2");
    world.hides("line 3\n");
    world.shows("  … 27 more lines");
    world.shows("  error: why");
    let mut world = World::running();
    world.command_ended("exit 0", (1..=6).map(|number| format!("line {number}")));
    world.shows("▪ shell: completed");
    world.shows("  line 3");
    world.hides("more line");
}

/// S12.64
#[test]
fn a_call_that_writes_a_file_is_shown_by_its_path() {
    let mut world = World::running();
    let Fact::CallStarted { call_id, round, effect, key, work, at, .. } = started("write_file", "") else {
        panic!("it is a call that began")
    };
    let args = Arc::new(json!({"path": "docs/new.md", "content": "line of the file\n".repeat(300)}));
    let name = "write_file".to_owned();
    world.fact(Fact::CallStarted { call_id, name, round, args, effect, key, work, at });
    world.shows("▸ write_file docs/new.md");
    world.hides("line of the file");
}

/// S8.2
#[test]
fn beside_a_typed_text_the_footer_says_how_a_question_is_answered() {
    let mut world = World::running();
    world.type_in("wait");
    world.question();
    world.wait(CALM);
    world.shows("to answer the question, empty the input first");
    world.hides("when you pause typing");
    world.control('u');
    world.wait(CALM);
    world.shows("y yes · n no");
}

/// S8.2
#[test]
fn a_question_about_an_address_names_the_tool_and_the_address() {
    let mut world = World::running();
    let question = json!({
        "id": "apr_1", "call_id": "call_2", "tool": "http_get/reach", "digest": "", "question": "mid_call",
        "args": {"origin": "https://docs.rs"}, "holds": "session",
        "asked_at": Timestamp::UNIX_EPOCH, "expires_at": Timestamp::UNIX_EPOCH,
    });
    let question: ApprovalRequest = serde_json::from_value(question).unwrap();
    world.fact(Fact::ApprovalRequested(question));
    world.shows("Allow http_get to reach https://docs.rs?");
    world.shows("A yes allows exactly this for the rest of the session.");
    world.wait(CALM);
    world.shows("? may it reach: https://docs.rs");
    world.hides("http_get/reach");
}

/// Where nothing of an answer had come, no cut is shown.
#[test]
fn a_stop_before_the_first_word_shows_no_cut() {
    for (text, is_shown) in [("", false), ("It is", true)] {
        let mut world = World::running();
        let message = AssistantMessage::of_text(text);
        let report = json!({"model": "m", "round": 1, "state": "closed", "usage": Usage::new(1, 1),
            "started_at": Timestamp::UNIX_EPOCH, "ended_at": Timestamp::UNIX_EPOCH});
        let fact = json!({"fact": "model_ended", "message": message, "whole": "cut", "report": report});
        world.fact(serde_json::from_value(fact).unwrap());
        assert_eq!(world.screen().contains("(cut here)"), is_shown, "{text:?}");
    }
}

/// An attempt that follows an answer is not announced.
#[test]
fn a_turn_that_continues_after_an_answer_announces_nothing() {
    let mut world = World::running();
    world.state.hear(ChatEvent::Started(Vec::new()), world.now);
    let before = world.screen();
    let opened = json!({"fact": "attempt_opened", "run": "run_1", "attempt": 2, "history": null, "at": Timestamp::UNIX_EPOCH});
    world.fact(serde_json::from_value(opened).unwrap());
    assert_eq!(world.screen(), before);
}

/// S8.2: who answers one question after the other types nothing: a key before the next question can be read answers nothing and is no
/// text, and the first letters of a message are there.
#[test]
fn keys_right_after_an_answer_are_no_text() {
    let mut world = World::running();
    let first = world.question();
    let mut second = first.clone();
    (second.id, second.args) = ("apr_2".into(), serde_json::json!({"command": "two"}));
    world.fact(Fact::ApprovalRequested(second.clone()));
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('y')), [Action::Decide(first.id.clone(), Decision::Approve)]);
    assert_eq!(world.tap(KeyCode::Char('y')), [], "the second is not put yet");
    world.fact(super::closed(&first, Resolution::Decided(Decision::Approve)));
    world.wait(CALM / 2);
    assert_eq!(world.tap(KeyCode::Char('y')), [], "nor could it be read");
    assert_eq!(world.state.input.text(), "");
    world.wait(CALM / 2);
    assert_eq!(world.tap(KeyCode::Char('y')), [Action::Decide(second.id.clone(), Decision::Approve)]);
    world.type_in("yes, and then");
    assert_eq!(world.state.input.text(), "yes, and then");
}

/// S12.51: while the next question is not there yet, a letter that answers a question of any kind is no text.
#[test]
fn a_letter_of_any_question_is_no_text_before_the_next_one() {
    let mut world = World::running();
    let first = world.question();
    world.wait(CALM);
    assert_eq!(world.tap(KeyCode::Char('y')), [Action::Decide(first.id.clone(), Decision::Approve)]);
    assert_eq!(
        world.tap(KeyCode::Char('r')),
        [],
        "the next may ask whether a call that may have run runs again"
    );
    assert_eq!(world.state.input.text(), "");
}

/// S12.51: at a question the first Esc takes back what was typed, and stops nothing.
#[test]
fn esc_empties_the_input_before_it_stops_a_turn_that_asks() {
    let mut world = World::running();
    world.question();
    world.type_in("2");
    world.shows("empty the input first (Esc)");
    assert_eq!((world.tap(KeyCode::Esc), world.state.input.text()), (Vec::new(), ""));
    assert!(!world.tap(KeyCode::Esc).is_empty(), "another one stops");
    world.tap(KeyCode::Up);
    assert_eq!(world.state.input.text(), "2", "nothing that was typed is lost");
}

/// S1.5, S12.51: a turn that only waits for an answer is stopped by each key and command that stops one.
#[test]
fn whatever_stops_a_turn_stops_one_that_waits_for_an_answer() {
    const STOPS: [fn(&mut World) -> Vec<Action>; 3] =
        [|world| world.tap(KeyCode::Esc), |world| world.control('c'), |world| world.say("/stop")];
    for (which, stop) in STOPS.iter().enumerate() {
        let mut world = World::running();
        world.question();
        world.ended(ItemOutcome::Suspended(turn(1)));
        let (survivors, receipt) = (Vec::new(), Arc::new(receipt()));
        world.hear(SessionEvent::TurnQuiet { turn: turn(1), survivors, receipt });
        let actions = stop(&mut world);
        assert!(actions.contains(&Action::Stop(StopLevel::Now)), "{which}: {actions:?}");
    }
}

/// S12.51: what Esc takes back at a question is recalled as a message is: blanks alone are nothing.
#[test]
fn what_esc_takes_back_at_a_question_is_kept_as_a_sent_message_is() {
    let mut world = World::running();
    world.type_in("said before");
    world.tap(KeyCode::Enter);
    world.question();
    world.type_in("  ");
    world.tap(KeyCode::Esc);
    world.tap(KeyCode::Up);
    assert_eq!(world.state.input.text(), "said before");
}

#[test]
fn a_command_that_there_is_not_names_the_one_that_was_meant() {
    let mut world = World::running();
    for (typed, said) in [
        ("/stat", "command /stat not found; did you mean /status?"),
        ("/reveiw", "command /reveiw not found; did you mean /review?"),
        ("/nonsense", "command /nonsense not found; /help lists the commands"),
    ] {
        world.say(typed);
        world.shows(said);
    }
}
