//! What a session keeps beside its journal: items in their envelope, stops, outcomes of items, digests.

use std::time::Duration;

use safepoint_golden::each;
use safepoint_scope::{Actor, Code, Grace, Reach, Reason, SafePoints, StopRequest};
use serde_json::json;

use super::{golden, samples::at};
use crate::{
    approval::digest,
    ids::{SessionId, TurnId},
    message::UserMessage,
    session::{
        After, Fate, Intent, Or, Policy, Preempt, Preempted, Refusal, SessionStop, seal, unseal, unseal_row,
    },
    steer::When,
    store::{Chain, Item, ItemState, Record},
};

fn refusals() -> Vec<Refusal> {
    each!(Refusal {
        Refusal::Busy(_) => Refusal::Busy(None), Refusal::Busy(Some(TurnId::new(2)));
        Refusal::TurnMismatch => Refusal::TurnMismatch;
        Refusal::NoActiveTurn => Refusal::NoActiveTurn;
        Refusal::NotDelivered => Refusal::NotDelivered;
        Refusal::Blank => Refusal::Blank;
        Refusal::Closed => Refusal::Closed;
        Refusal::Full => Refusal::Full;
        Refusal::Known => Refusal::Known;
        Refusal::OtherContent => Refusal::OtherContent;
        Refusal::NotRecorded => Refusal::NotRecorded;
    })
}

fn fates() -> Vec<Fate> {
    let turn = TurnId::new(2);
    let mut fates = each!(Fate {
        Fate::Completed(_) => Fate::Completed(turn);
        Fate::Preempted(_) => Fate::Preempted(turn);
        Fate::Failed(_) => Fate::Failed(turn);
        Fate::Interrupted(_) => Fate::Interrupted(turn);
        Fate::Suspended(_) => Fate::Suspended(turn);
        Fate::RolledBack(_) => Fate::RolledBack(turn);
        Fate::Dropped => Fate::Dropped;
        Fate::Withdrawn => Fate::Withdrawn;
        Fate::Returned(_) => Fate::Returned(Refusal::Blank);
        Fate::Unhandled => Fate::Unhandled;
    });
    fates.extend(refusals().into_iter().map(Fate::Returned));
    fates
}

fn ors() -> Vec<Or> {
    each!(Or {
        Or::Queue => Or::Queue;
        Or::Return => Or::Return;
    })
}

/// Each way to push, with what each can carry: `How` of the envelope, through `seal`.
fn policies() -> Vec<Policy> {
    let turn = TurnId::new(2);
    each!(Policy {
        Policy::Enqueue => Policy::Enqueue;
        Policy::Steer(..) =>
            Policy::Steer(When::NextRequest, Or::Queue), Policy::Steer(When::AtOnce, Or::Return);
        Policy::Preempt(_) =>
            Preempt::now().into(),
            Preempt::at(SafePoints::AFTER_MODEL).into(),
            Preempt::at_within(SafePoints::ANY, Grace::from_millis(1500)).into(),
            Preempt::now().after(Duration::from_millis(20)).of(turn).into();
        Policy::Reject => Policy::Reject;
        Policy::Rollback => Policy::Rollback;
    })
}

/// What the store's inbox keeps: the bytes of the `Envelope` and the digest, both as they are read back.
#[test]
fn items_of_an_inbox() {
    let sealed = |policy| {
        let push = seal(&UserMessage::from("hello"), policy, Some("c1".into()), 100).unwrap();
        let (item, read) = unseal::<UserMessage>(&push.bytes).unwrap();
        assert_eq!((item, read), ("hello".into(), policy));
        let row = Item {
            number: 1,
            client_id: push.client_id,
            state: ItemState::Waiting,
            at: at(0),
            digest: push.digest,
            bytes: push.bytes,
        };
        assert!(unseal_row::<UserMessage>(&row).is_ok());
        format!("{} {}", row.digest, String::from_utf8(row.bytes).unwrap())
    };
    golden("inbox").lines("item", policies().into_iter().map(sealed)).check();
}

fn reason() -> Reason {
    let root = Reason::user("the fire alarm").by(Actor::Named("alice".into())).asked_at(at(0).into());
    Reason::new(Code::SHUTDOWN).saying("deploy").asked_at(at(1).into()).caused_by(&root)
}

/// Each kind of stop, with each strength, extent and time: `Wire`, `To`, `Extent` and `Strength`.
fn intents() -> Vec<Intent> {
    let afters = each!(After {
        After::Resumable => After::Resumable;
        After::Abandoned => After::Abandoned;
    });
    let after = |after| match after {
        After::Resumable => SessionStop::now(),
        After::Abandoned => SessionStop::now().abandon(),
    };
    let grace = Grace::from_millis(1500);
    let named = StopRequest::at_within(SafePoints::AFTER_MODEL.or(SafePoints::AFTER_ALL_CALLS), grace)
        .reach(Reach::Root)
        .cleanup_cap(Duration::from_millis(250))
        .because(reason());
    let mut intents = each!(Intent {
        Intent::Session(_) =>
            Intent::Session(SessionStop::at_turn_end()),
            Intent::Session(SessionStop::graceful()),
            Intent::Session(SessionStop::graceful_within(grace)),
            Intent::Session(SessionStop::when_idle_for(Duration::from_secs(3))),
            Intent::Session(SessionStop::now().reason(reason()).because("a deploy"));
        Intent::Turn(..) =>
            Intent::Turn(None, StopRequest::now().reach(Reach::Tree)),
            Intent::Turn(None, StopRequest::graceful_unbounded()),
            Intent::Turn(Some(TurnId::new(2)), named);
    });
    intents.extend(afters.into_iter().map(|one| Intent::Session(after(one))));
    intents
}

#[test]
fn stops_that_another_process_asks() {
    let written = |intent: Intent| {
        let bytes = intent.to_bytes();
        assert_eq!(Intent::from_bytes(&bytes).unwrap().to_bytes(), bytes);
        String::from_utf8(bytes).unwrap()
    };
    golden("stops").lines("stop", intents().into_iter().map(written)).check();
}

#[test]
fn what_becomes_of_items_and_preempts() {
    golden("outcomes")
        .json("fate", fates())
        .json("refusal", refusals())
        .lines("refusal code", refusals().into_iter().map(Refusal::code))
        .json("or", ors())
        .json("after", [After::Resumable, After::Abandoned])
        .json(
            "preempted",
            each!(Preempted {
                Preempted::StoppedTurn(_) => Preempted::StoppedTurn(TurnId::new(2));
                Preempted::NoTarget => Preempted::NoTarget;
                Preempted::TurnEndedFirst => Preempted::TurnEndedFirst;
                Preempted::SupersededByStop => Preempted::SupersededByStop;
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
