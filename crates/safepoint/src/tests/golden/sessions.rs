//! What a session keeps beside its journal: items in their envelope, stops, outcomes of items, digests.

use std::time::Duration;

use safepoint_golden::each;
use safepoint_scope::{Actor, Code, Grace, Reach, Reason, SafePoints, StopRequest};
use serde_json::json;

use super::{golden, samples::at};
use crate::{
    ids::{SessionId, TurnId},
    message::UserMessage,
    raw::{
        StoredStop, decode_item, decode_row, digest, encode_item,
        store::{Chain, InboxRow, ItemState, Record},
    },
    session::{
        IfUndelivered, ItemOutcome, Policy, Preempt, PreemptOutcome, QueueAfterStop, RejectReason,
        SessionStop, StoppedTurn,
    },
    steer::SteerTiming,
};

fn refusals() -> Vec<RejectReason> {
    each!(RejectReason {
        RejectReason::Busy(_) => RejectReason::Busy(None), RejectReason::Busy(Some(TurnId::new(2)));
        RejectReason::TurnMismatch => RejectReason::TurnMismatch;
        RejectReason::NoActiveTurn => RejectReason::NoActiveTurn;
        RejectReason::NotDelivered => RejectReason::NotDelivered;
        RejectReason::Blank => RejectReason::Blank;
        RejectReason::Closed => RejectReason::Closed;
        RejectReason::Full => RejectReason::Full;
        RejectReason::Known => RejectReason::Known;
        RejectReason::OtherContent => RejectReason::OtherContent;
        RejectReason::NotRecorded => RejectReason::NotRecorded;
    })
}

fn fates() -> Vec<ItemOutcome> {
    let turn = TurnId::new(2);
    let mut fates = each!(ItemOutcome {
        ItemOutcome::Completed(_) => ItemOutcome::Completed(turn);
        ItemOutcome::Preempted(_) => ItemOutcome::Preempted(turn);
        ItemOutcome::Failed(_) => ItemOutcome::Failed(turn);
        ItemOutcome::Interrupted(_) => ItemOutcome::Interrupted(turn);
        ItemOutcome::Suspended(_) => ItemOutcome::Suspended(turn);
        ItemOutcome::RolledBack(_) => ItemOutcome::RolledBack(turn);
        ItemOutcome::Dropped => ItemOutcome::Dropped;
        ItemOutcome::Withdrawn => ItemOutcome::Withdrawn;
        ItemOutcome::Returned(_) => ItemOutcome::Returned(RejectReason::Blank);
        ItemOutcome::Unhandled => ItemOutcome::Unhandled;
    });
    fates.extend(refusals().into_iter().map(ItemOutcome::Returned));
    fates
}

fn ors() -> Vec<IfUndelivered> {
    each!(IfUndelivered {
        IfUndelivered::Queue => IfUndelivered::Queue;
        IfUndelivered::Return => IfUndelivered::Return;
    })
}

/// Each way to push, with what each can carry: `StoredPolicy` of the envelope, through `encode_item`.
fn policies() -> Vec<Policy> {
    let turn = TurnId::new(2);
    each!(Policy {
        Policy::Enqueue => Policy::Enqueue;
        Policy::Steer(..) =>
            Policy::Steer(SteerTiming::NextRequest, IfUndelivered::Queue), Policy::Steer(SteerTiming::AtOnce, IfUndelivered::Return);
        Policy::SteerTurn(..) => Policy::SteerTurn(turn, SteerTiming::NextRequest, IfUndelivered::Queue);
        Policy::Preempt(_) =>
            Preempt::now().into(),
            Preempt::at(SafePoints::AFTER_MODEL).into(),
            Preempt::at_within(SafePoints::ANY, Grace::from_millis(1500)).into(),
            Preempt::now().after(Duration::from_millis(20)).of(turn).into();
        Policy::Reject => Policy::Reject;
        Policy::Rollback => Policy::Rollback;
    })
}

/// What the store's inbox keeps: the bytes of the `Envelope` (read as `Sealed`) and the digest, both as they are read back.
#[test]
fn items_of_an_inbox() {
    let sealed = |policy| {
        let push = encode_item(&UserMessage::from("hello"), policy, Some("c1".into()), 100).unwrap();
        let (item, read) = decode_item::<UserMessage>(&push.bytes).unwrap();
        assert_eq!((item, read), ("hello".into(), policy));
        let row = InboxRow {
            number: 1,
            client_id: push.client_id,
            state: ItemState::Waiting,
            at: at(0),
            digest: push.digest,
            bytes: push.bytes,
        };
        assert!(decode_row::<UserMessage>(&row).is_ok());
        format!("{} {}", row.digest, String::from_utf8(row.bytes).unwrap())
    };
    golden("inbox").lines("item", policies().into_iter().map(sealed)).check();
}

fn reason() -> Reason {
    let root = Reason::user("the fire alarm").with_actor(Actor::Named("alice".into())).asked_at(at(0).into());
    Reason::new(Code::SHUTDOWN).with_text("deploy").asked_at(at(1).into()).caused_by(&root)
}

/// Each kind of stop, with each strength, extent and time: `StoredForm`, `To`, `Extent`, `Strength` and
/// `QueueAfterStop`.
fn intents() -> Vec<StoredStop> {
    let afters = each!(StoppedTurn {
        StoppedTurn::Resumable => StoppedTurn::Resumable;
        StoppedTurn::Abandoned => StoppedTurn::Abandoned;
    });
    let after = |after| match after {
        StoppedTurn::Resumable => SessionStop::now(),
        StoppedTurn::Abandoned => SessionStop::now().abandon(),
    };
    let grace = Grace::from_millis(1500);
    let named = StopRequest::at_within(SafePoints::AFTER_MODEL.or(SafePoints::AFTER_ALL_CALLS), grace)
        .with_reach(Reach::Root)
        .with_cleanup_cap(Duration::from_millis(250))
        .with_reason(reason());
    let mut intents = each!(StoredStop {
        StoredStop::Session(_) =>
            StoredStop::Session(SessionStop::at_turn_end()),
            StoredStop::Session(SessionStop::graceful()),
            StoredStop::Session(SessionStop::graceful_within(grace)),
            StoredStop::Session(SessionStop::when_idle_for(Duration::from_secs(3))),
            StoredStop::Session(SessionStop::now().with_reason(reason()).with_cause("a deploy"));
        StoredStop::Turn(..) =>
            StoredStop::Turn(None, StopRequest::now().with_reach(Reach::Tree)),
            StoredStop::Turn(None, StopRequest::graceful_unbounded()),
            StoredStop::Turn(Some(TurnId::new(2)), named.clone());
        StoredStop::Item(..) =>
            StoredStop::Item(7, StopRequest::now(), QueueAfterStop::Continues),
            StoredStop::Item(8, named, QueueAfterStop::Holds);
    });
    intents.extend(afters.into_iter().map(|one| StoredStop::Session(after(one))));
    intents
}

#[test]
fn stops_that_another_process_asks() {
    let written = |intent: StoredStop| {
        let bytes = intent.to_bytes();
        assert_eq!(StoredStop::from_bytes(&bytes).unwrap().to_bytes(), bytes);
        String::from_utf8(bytes).unwrap()
    };
    golden("stops").lines("stop", intents().into_iter().map(written)).check();
}

#[test]
fn what_becomes_of_items_and_preempts() {
    golden("outcomes")
        .json("fate", fates())
        .json("refusal", refusals())
        .lines("refusal code", refusals().into_iter().map(RejectReason::code))
        .json("or", ors())
        .json("after", [StoppedTurn::Resumable, StoppedTurn::Abandoned])
        .json(
            "preempted",
            each!(PreemptOutcome {
                PreemptOutcome::StoppedTurn(_) => PreemptOutcome::StoppedTurn(TurnId::new(2));
                PreemptOutcome::NoTurn => PreemptOutcome::NoTurn;
                PreemptOutcome::TurnEndedFirst => PreemptOutcome::TurnEndedFirst;
                PreemptOutcome::SupersededByStop => PreemptOutcome::SupersededByStop;
            }),
        )
        .check();
}

/// Digests that bind a decision to a call, and the checksums over a journal.
#[test]
fn digests() {
    let args = [json!({}), json!({"b": 1, "a": [true, null, 1.5, "ü"]}), json!("text")];
    let session = SessionId::from("ses_1");
    let record = |kind: &str, bytes: &[u8]| Record {
        path: "turn-1/root".into(),
        kind: kind.into(),
        version: 1,
        bytes: bytes.to_vec(),
    };
    let first = Chain::of(&session).then(0, &record("planned", b"{}"));
    let second = first.then(1, &record("fact", b"[]"));
    golden("digests")
        .lines("call", args.iter().map(|args| digest("pay", "sha256:00", args)))
        .lines("chain", [Chain::of(&session), first, second].map(|chain| chain.to_string()))
        .check();
}
