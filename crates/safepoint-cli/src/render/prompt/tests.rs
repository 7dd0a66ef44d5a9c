//! What a line at a prompt means, and what the prompt says that it would do.

use jiff::Timestamp;

use super::*;

fn asked(question: ApprovalKind) -> ApprovalRequest {
    let asked = serde_json::json!({
        "id": "apr_1", "call_id": "call_1", "tool": "pay", "args": {"cents": 5}, "digest": "",
        "asked_at": Timestamp::UNIX_EPOCH, "expires_at": Timestamp::UNIX_EPOCH,
    });
    let mut asked: ApprovalRequest = serde_json::from_value(asked).unwrap();
    asked.question = question;
    asked
}

/// S8.6: the prompt says exactly what would be allowed and for how long, and each letter does what it says.
#[test]
fn a_prompt_says_what_always_would_allow() {
    let question = asked(ApprovalKind::BeforeCall);
    let kept = answers(&question, WithoutApprover::Suspend);
    assert!(kept.contains("in this session without asking: pay with exactly these arguments"), "{kept}");
    assert!(
        kept.contains("in this session without asking: every call of pay, whatever its arguments"),
        "{kept}"
    );
    assert!(answers(&question, WithoutApprover::Deny).contains("in this turn without asking"));
    for (typed, covers) in [("a", AllowScope::Call), ("always", AllowScope::Call), ("t", AllowScope::Tool)] {
        let decided = read(&question, WithoutApprover::Deny, typed);
        assert!(matches!(decided, Typed::Decided(Decision::ApproveAlways { covers: it }) if it == covers));
    }
}

/// S8.2: a user who leaves an approval of a stored session leaves it open; in a session without a store, it
/// is asked again.
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

/// S7.3: for a call that may have run, a plain yes repeats nothing, and "always" is not offered.
#[test]
fn what_may_have_happened_is_asked_in_its_own_words() {
    let question = asked(ApprovalKind::AfterUnknownEnd);
    let put = approval::put(&question);
    assert!(put.contains("side effects unknown") && put.contains("\"cents\": 5"), "{put}");
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
