//! What a line at a prompt means, and what the prompt says that it would do.

use jiff::Timestamp;
use safepoint::ids::{CallId, Path};

use super::*;

fn asked(question: ApprovalKind) -> ApprovalRequest {
    ApprovalRequest {
        id: "apr_1".into(),
        path: Path::default(),
        question,
        call_id: CallId::from("call_1"),
        tool: "pay".into(),
        args: serde_json::json!({"cents": 5}),
        definition: String::new(),
        holds: safepoint::approval::Holds::Once,
        digest: String::new(),
        asked_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::UNIX_EPOCH,
    }
}

/// S8.6: the prompt says exactly what would be allowed and for how long, and each letter does what it says.
#[test]
fn a_prompt_says_what_always_would_allow() {
    let question = asked(ApprovalKind::BeforeCall);
    let kept = answers(&question, WithoutApprover::Suspend);
    assert!(kept.contains("in this session, unasked, pay with exactly these arguments"), "{kept}");
    assert!(kept.contains("in this session, unasked, every call of pay, whatever its arguments"), "{kept}");
    assert!(answers(&question, WithoutApprover::Deny).contains("in this turn, unasked"));
    for (typed, covers) in [("a", AllowScope::Call), ("always", AllowScope::Call), ("t", AllowScope::Tool)] {
        let decided = read(&question, WithoutApprover::Deny, typed);
        assert!(matches!(decided, Typed::Decided(Decision::ApproveAlways { covers: it }) if it == covers));
    }
}

/// S8.2: who leaves a question of a kept session leaves it open; where nothing is kept, it is asked again.
#[test]
fn later_leaves_the_question_open_where_it_can_wait() {
    let question = asked(ApprovalKind::BeforeCall);
    assert!(matches!(read(&question, WithoutApprover::Suspend, "later"), Typed::Later));
    assert!(matches!(read(&question, WithoutApprover::Deny, "later"), Typed::Again));
}

/// S8.2: only what cannot be meant otherwise is an answer.
#[test]
fn what_is_neither_yes_nor_no_is_asked_again() {
    let question = asked(ApprovalKind::BeforeCall);
    let read = |typed| read(&question, WithoutApprover::Suspend, typed);
    for typed in
        ["", "ok", "yes please", "yes, but not twice", "sure", "y n", "use ls", "nope", "maybe", "always no"]
    {
        assert!(matches!(read(typed), Typed::Again), "{typed}");
    }
    for (typed, why) in
        [("no", None), ("N", None), ("no: use ls", Some("use ls")), ("n, not now", Some("not now"))]
    {
        let said = why.map_or(String::new(), |why| format!("[denied by the user: {why}]"));
        assert!(
            matches!(read(typed), Typed::Decided(Decision::Deny { message }) if message == said),
            "{typed}"
        );
    }
    assert!(matches!(read("Yes"), Typed::Decided(Decision::Approve)));
}

/// S7.3: of a call that may have happened, nothing is repeated by a yes of habit, and nobody is asked to allow it for
/// ever.
#[test]
fn what_may_have_happened_is_asked_in_its_own_words() {
    let question = asked(ApprovalKind::AfterUnknownEnd);
    let put = approval::put(&question);
    assert!(put.contains("NOBODY KNOWS WHETHER IT HAPPENED") && put.contains("\"cents\": 5"), "{put}");
    assert!(!answers(&question, WithoutApprover::Suspend).contains("always"));
    let read = |typed| read(&question, WithoutApprover::Suspend, typed);
    assert!(matches!(read("y"), Typed::Again), "a yes of habit");
    assert!(matches!(read("a"), Typed::Again));
    assert!(matches!(read("r"), Typed::Decided(Decision::Approve)));
    assert!(matches!(read("g"), Typed::Decided(Decision::Deny { .. })));
    for unclear in ["receipt 7", "ok", "done", "run it twice"] {
        assert!(matches!(read(unclear), Typed::Again), "{unclear}");
    }
    let done = read("done: receipt 7");
    assert!(matches!(done, Typed::Decided(Decision::Respond { result }) if result == "receipt 7"));
}
