//! The golden file of the control socket: requests, replies, and the replies about an item.

use safepoint::session::ItemOutcome;
use safepoint_golden::each;

use super::{
    super::{
        item_reply::{accepted, rested},
        state::State,
    },
    *,
};
use crate::{
    exit::code,
    tests::golden::{golden, of_the_engine},
};

fn policies() -> Vec<PolicyArg> {
    each!(PolicyArg {
        PolicyArg::Enqueue => PolicyArg::Enqueue;
        PolicyArg::Steer => PolicyArg::Steer;
        PolicyArg::Preempt => PolicyArg::Preempt;
        PolicyArg::Reject => PolicyArg::Reject;
        PolicyArg::Rollback => PolicyArg::Rollback;
    })
}

fn ors() -> Vec<OrArg> {
    each!(OrArg {
        OrArg::Queue => OrArg::Queue;
        OrArg::Return => OrArg::Return;
    })
}

fn waits() -> Vec<Wait> {
    each!(Wait {
        Wait::No => Wait::No;
        Wait::Settled => Wait::Settled;
        Wait::Quiet => Wait::Quiet;
    })
}

fn modes() -> Vec<ModeArg> {
    each!(ModeArg {
        ModeArg::Now => ModeArg::Now;
        ModeArg::TurnEnd => ModeArg::TurnEnd;
        ModeArg::Points(_) => ModeArg::Points("after-model".into());
        ModeArg::WhenIdle { .. } => ModeArg::WhenIdle { ms: 3000 };
    })
}

fn scopes() -> Vec<ScopeArg> {
    each!(ScopeArg {
        ScopeArg::Root => ScopeArg::Root;
        ScopeArg::Tree => ScopeArg::Tree;
    })
}

fn afterwards() -> Vec<Afterwards> {
    each!(Afterwards {
        Afterwards::Resumable => Afterwards::Resumable;
        Afterwards::Abandoned => Afterwards::Abandoned;
    })
}

fn push(policy: PolicyArg, or: OrArg, wait: Wait) -> Ask {
    Ask::Push(PushAsk {
        text: "hello".into(),
        policy,
        at: None,
        within_ms: None,
        delay_ms: None,
        turn: None,
        client_id: None,
        or,
        wait,
    })
}

fn stop(mode: ModeArg, scope: ScopeArg, afterwards: Afterwards) -> Ask {
    Ask::Stop(StopAsk {
        mode,
        within_ms: None,
        scope,
        run: None,
        call: None,
        cleanup_cap_ms: None,
        afterwards,
        because: None,
        wait: Wait::No,
    })
}

/// Each request with each word that it can carry, and with every field set.
fn asks() -> Vec<Ask> {
    let full_push = PushAsk {
        text: "hello".into(),
        policy: PolicyArg::Preempt,
        at: Some("after-model".into()),
        within_ms: Some(1500),
        delay_ms: Some(20),
        turn: Some("turn-2".into()),
        client_id: Some("c1".into()),
        or: OrArg::Return,
        wait: Wait::Quiet,
    };
    let full_stop = StopAsk {
        mode: ModeArg::Points("after-model".into()),
        within_ms: Some(1500),
        scope: ScopeArg::Root,
        run: Some("root/call_1".into()),
        call: Some("call_1".into()),
        cleanup_cap_ms: Some(250),
        afterwards: Afterwards::Abandoned,
        because: Some("enough".into()),
        wait: Wait::Settled,
    };
    let mut asks = each!(Ask {
        Ask::Show => Ask::Show;
        Ask::Look => Ask::Look;
        Ask::Push(_) => Ask::Push(full_push);
        Ask::Withdraw { .. } => Ask::Withdraw { item: "item-3".into() };
        Ask::Stop(_) => Ask::Stop(full_stop);
    });
    asks.extend(policies().into_iter().map(|policy| push(policy, OrArg::Queue, Wait::No)));
    asks.extend(ors().into_iter().map(|or| push(PolicyArg::Steer, or, Wait::No)));
    asks.extend(waits().into_iter().map(|wait| push(PolicyArg::Enqueue, OrArg::Queue, wait)));
    asks.extend(modes().into_iter().map(|mode| stop(mode, ScopeArg::Tree, Afterwards::Resumable)));
    asks.extend(scopes().into_iter().map(|scope| stop(ModeArg::Now, scope, Afterwards::Resumable)));
    asks.extend(afterwards().into_iter().map(|after| stop(ModeArg::Now, ScopeArg::Tree, after)));
    asks
}

fn replies() -> Vec<Reply> {
    let full = Reply {
        v: VERSION,
        code: code::CONFLICT,
        status: "busy".into(),
        session: "ses_1".into(),
        message: "a turn is running".into(),
        detail: json!({"run": "run_1", "item": "item-3"}),
        last: false,
    };
    vec![full, Reply::new(code::ACCEPTED, "accepted", "in")]
}

/// Replies about an item, by what became of it.
fn of_items() -> Vec<Reply> {
    let fates: Vec<ItemOutcome> = of_the_engine("outcomes", "fate");
    let rest =
        fates.into_iter().flat_map(|fate| [false, true].map(|is_stored| rested("item-3", fate, is_stored)));
    [accepted("item-3")].into_iter().chain(rest).collect()
}

/// A reply without what it says to people.
fn silent(reply: Reply) -> Reply {
    Reply { message: String::new(), ..reply }
}

#[test]
fn what_goes_over_the_socket() {
    let requests = asks().into_iter().map(|ask| Request { v: VERSION, ask });
    golden("control")
        .json("request", requests)
        .json("reply", replies())
        .json_out("line of a reply", replies().iter().map(Reply::fields))
        .json("reply about an item", of_items().into_iter().map(silent))
        .check();
}

/// The wording may change, and then this file alone.
#[test]
fn what_is_said_of_an_item() {
    golden("control.people").lines("item", of_items().into_iter().map(|reply| reply.message)).check();
}

#[tokio::test]
async fn a_line_over_the_socket() {
    let mut line = Vec::new();
    write(&mut line, &Request { v: VERSION, ask: Ask::Show }).await.unwrap();
    assert_eq!(line, b"{\"v\":1,\"ask\":{\"do\":\"show\"}}\n");
}

/// How a session stands, by its word in JSON and by the one for people.
#[test]
fn each_state_of_a_session_has_its_words() {
    let states = each!(State {
        State::NotAnswering => State::NotAnswering;
        State::Running => State::Running;
        State::Open => State::Open;
        State::Crashed => State::Crashed;
        State::Suspended => State::Suspended;
        State::Stopped => State::Stopped;
        State::Failed => State::Failed;
        State::Idle => State::Idle;
    });
    assert_eq!(
        json!(states),
        json!(["not answering", "running", "open", "crashed", "suspended", "stopped", "failed", "idle"])
    );
    let shown: Vec<String> = states.into_iter().map(State::shown).collect();
    assert_eq!(
        shown,
        ["not answering", "running", "idle", "interrupted", "suspended", "stopped", "failed", "idle"]
    );
}
