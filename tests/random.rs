//! Ten thousand random runs: random scripts, random stops at random gates, every wire, sequential and
//! parallel; after each the closing invariants (I1-I6). The seed of a failure is printed and repeats it:
//! `SAFEPOINT_SEED=n`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

#[expect(dead_code, reason = "shared with the end-to-end tests, which use all of it")]
#[path = "e2e/world.rs"]
mod world;

use std::{sync::Arc, time::Duration};

use safepoint::{
    Grace, Limits, SafePoints, StopRequest, event::EventKind, receipt::Ending, tool::EffectClass,
};
use safepoint_testkit::script::{Reply, ReplyFault};
use serde_json::json;
use tokio::sync::Semaphore;
use world::{Ledger, WIRES, builder, close, gated, server};

const RUNS: u64 = 10_000;
const AT_ONCE: u64 = 16;

/// SplitMix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

fn reply(dice: &mut Dice) -> Reply {
    let calls = dice.below(5);
    let mut reply = Reply::text(if dice.below(3) == 0 { "" } else { "some words to be cut" });
    if dice.below(3) == 0 {
        reply = reply.reasoning("hm, let me think");
    }
    for _ in 0..calls {
        let tool = ["pay", "look", "none such"][dice.below(3) as usize];
        reply = reply.and_call(tool, json!({}));
    }
    if reply.calls.is_empty() && reply.text.is_empty() {
        reply.text = "done".into();
    }
    if dice.below(2) == 0 {
        reply = reply.paced(1 + dice.below(7) as usize, Duration::from_millis(dice.below(2)));
    }
    match dice.below(12) {
        0 => reply.fault(ReplyFault::StallAfter(dice.below(6) as usize)),
        1 => reply.fault(ReplyFault::CloseAfter(dice.below(6) as usize)),
        2 => reply.fault(ReplyFault::Silence),
        _ => reply,
    }
}

fn request(dice: &mut Dice) -> StopRequest {
    let points = [
        SafePoints::AFTER_MODEL,
        SafePoints::AFTER_STARTED_CALLS,
        SafePoints::AFTER_ALL_CALLS,
        SafePoints::ANY,
        SafePoints::AFTER_MODEL | SafePoints::AFTER_ALL_CALLS,
    ][dice.below(5) as usize];
    match dice.below(4) {
        0 => StopRequest::now(),
        1 => StopRequest::at_within(points, Grace::from_millis(1 + dice.below(4))),
        _ => StopRequest::at(points),
    }
}

async fn one(seed: u64) {
    let mut dice = Dice(seed);
    let wire = WIRES[dice.below(WIRES.len() as u64) as usize];
    let mut script: Vec<Reply> = (0..1 + dice.below(3)).map(|_| reply(&mut dice)).collect();
    script.push(Reply::text("the end"));
    let server = server(script).await;
    let (ledger, gate) = (Ledger::default(), Arc::new(Semaphore::new(dice.below(4) as usize)));
    let limits = Limits::default().with_parallel_calls(1 + dice.below(4) as usize).with_max_rounds(8);
    let agent = builder(&server, wire)
        .limits(limits)
        .tool(gated("pay", EffectClass::Unsafe, &ledger, &gate))
        .tool(gated("look", EffectClass::ReadOnly, &ledger, &gate))
        .build();
    let run = agent.run("go");
    let handle = run.handle();
    if dice.below(20) == 0 {
        handle.stop(request(&mut dice));
    }
    let _run = run.start();
    let mut events = handle.events();
    for _ in 0..dice.below(12) {
        // A run that hangs at a gate shows nothing more: the stop then comes there.
        let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(15), events.next()).await else {
            break;
        };
        if matches!(event.kind, EventKind::Progress { .. }) {
            break;
        }
        if dice.below(4) == 0 {
            gate.add_permits(1);
        }
    }
    for _ in 0..1 + dice.below(3) {
        handle.stop(request(&mut dice));
    }
    if dice.below(2) == 0 {
        gate.add_permits(99);
    }
    handle.stop(StopRequest::now());
    let (outcome, receipt) = close(&server, &handle, &ledger).await;
    let sent = server.requests().len();
    // The next message, on a server that refuses invalid histories: whatever its own fate, it is never a 400.
    let next = agent.run_on(outcome.history().clone(), "and now?").detach();
    if tokio::time::timeout(Duration::from_millis(20), next.done()).await.is_err() {
        next.stop(StopRequest::now());
    }
    let next = next.done().await;
    if let safepoint::Outcome::Failed(error) = &next {
        assert!(!error.to_string().contains("answered 400"), "I3: {error}\n{receipt}");
    }
    assert!(outcome.ending() != Ending::Suspended && sent <= server.requests().len());
}

/// I1-I6, S2.14, S1.4, S5.1: in every order of everything.
#[test]
fn ten_thousand_random_runs_keep_the_invariants() {
    let chosen: Option<u64> = std::env::var("SAFEPOINT_SEED").ok().and_then(|seed| seed.parse().ok());
    let (first, runs) = chosen.map_or((0, RUNS), |seed| (seed, 1));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let mut running = tokio::task::JoinSet::new();
        for seed in first..first + runs {
            running.spawn(async move {
                let outcome = tokio::spawn(tokio::time::timeout(Duration::from_secs(60), one(seed))).await;
                assert!(matches!(outcome, Ok(Ok(()))), "seed {seed}: {outcome:?}");
            });
            if running.len() as u64 >= AT_ONCE {
                running.join_next().await.unwrap().unwrap();
            }
        }
        while let Some(ended) = running.join_next().await {
            ended.unwrap();
        }
    });
}
