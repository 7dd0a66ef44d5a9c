//! A run as streams: of events, of events and the outcome, of lines, and of lines for a reader that comes back.

use std::{pin::pin, time::Duration};

use futures_util::{StreamExt, future::poll_immediate};
use safepoint::{
    Limits, Outcome, RunHandle, StopRequest,
    event::{Event, EventEncoder, EventKind, Fact, RunItem},
    message::ToolCall,
    model::{Delta, Finish},
    receipt::Ending,
    stop::Code,
};
use serde_json::Value;
use tokio::{join, time::timeout};

use crate::world::{Reply, agent, ask, does, say};

/// On the paused clock: longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// S11.1: a stream of events gives what its reader would get one by one, to a reader that waits and to one that comes late.
#[tokio::test(start_paused = true)]
async fn events_are_a_stream() {
    let handle = agent([say("hi")]).build().run("go").detach();
    let seqs = |events: Vec<Event>| events.iter().map(|event| event.seq).collect::<Vec<_>>();
    let waiting = handle.events().collect::<Vec<_>>();
    let (waiting, _) = join!(waiting, handle.done());
    let mut events = handle.events();
    let mut one_by_one = Vec::new();
    while let Some(event) = events.next().await {
        one_by_one.push(event);
    }
    let expected: Vec<u64> = (0..one_by_one.len() as u64).collect();
    assert_eq!(seqs(one_by_one), expected);
    assert_eq!(seqs(waiting), expected);
    assert_eq!(seqs(handle.events().collect().await), expected);
}

/// S11.1: a place in a stream that waits can be copied, and both wake.
#[tokio::test(start_paused = true)]
async fn two_readers_that_wait_both_wake() {
    let run = agent([say("hi")]).build().run("go");
    let mut one = run.handle().events();
    assert!(
        poll_immediate(StreamExt::next(&mut one)).await.is_none(),
        "nothing is there before the run starts"
    );
    let two = one.clone();
    let (outcome, one, two) = join!(run, one.count(), two.count());
    assert_eq!((outcome.ending(), one), (Ending::Done, two));
}

/// S11.9: a run's stream starts it, and its last item is the outcome.
#[tokio::test(start_paused = true)]
async fn a_runs_stream_ends_with_its_outcome() {
    let mut items = agent([say("hi")]).build().run("go").into_stream();
    let (mut settled, mut outcomes) = (0, Vec::new());
    while let Some(item) = items.next().await {
        match item {
            RunItem::Event(event) => {
                assert!(outcomes.is_empty(), "nothing follows the outcome");
                settled += usize::from(
                    matches!(&event.kind, EventKind::Fact(fact) if matches!(**fact, Fact::Settled { .. })),
                );
            }
            RunItem::Outcome(outcome) => outcomes.push(outcome),
        }
    }
    assert_eq!((settled, outcomes.len()), (1, 1));
    assert_eq!(outcomes[0].answer(), Some("hi"));
    assert!(items.next().await.is_none(), "an ended stream stays ended");
}

/// S11.9: who drops the stream of a run stops the run, as who drops the run does.
#[tokio::test(start_paused = true)]
async fn a_dropped_stream_stops_its_run() {
    // Its model streams a little and hangs.
    let run = agent([]).build().run("go");
    let (handle, mut items) = (run.handle(), run.into_stream());
    loop {
        match items.next().await {
            Some(RunItem::Event(Event { kind: EventKind::Text(_), .. })) => break,
            Some(RunItem::Event(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    drop(items);
    let outcome = timeout(LONG, handle.done()).await.expect("the run continues");
    let Outcome::Stopped(stopped) = outcome else { panic!("not stopped") };
    assert_eq!(stopped.receipt().stop.as_ref().unwrap().reason.code, Code::DISCONNECT.as_str());
}

/// S11.8: the arguments of a call are shown as they stream, with its id and its name, and never more than a message may hold.
#[tokio::test(start_paused = true)]
async fn arguments_are_shown_as_they_stream() {
    let piece = |text: &str| Delta::CallArguments { id: "c0".into(), name: "pay".into(), text: text.into() };
    let call = ToolCall { id: "c0".into(), name: "pay".into(), args: "{\"a\":1}".into() };
    let reply = || -> Reply {
        [
            Delta::Sent,
            piece("{\"a\""),
            piece(":1}"),
            Delta::CallReady(call.clone()),
            Delta::Ended(Finish::Natural),
        ]
        .map(Ok)
        .into()
    };
    let shown = |limits: Limits| {
        let run =
            agent([reply(), say("paid")]).tool(does("pay", |_| async { Ok("ok".into()) })).limits(limits);
        async move {
            let handle = run.build().run("go").detach();
            let events = handle.events().filter_map(|event| async move {
                match event.kind {
                    EventKind::CallDelta { call_id, name, arguments } => {
                        Some(format!("{call_id} {name} {arguments}"))
                    }
                    _ => None,
                }
            });
            (pin!(events).collect::<Vec<_>>().await, handle.done().await.ending())
        }
    };
    let (all, ending) = shown(Limits::default()).await;
    assert_eq!(
        (all.as_slice(), ending),
        (&["c0 pay {\"a\"".to_owned(), "c0 pay :1}".to_owned()][..], Ending::Done)
    );
    let small = Limits::default().with_model_output_bytes(5);
    let (first, ending) = shown(small).await;
    assert_eq!((first.as_slice(), ending), (&["c0 pay {\"a\"".to_owned()][..], Ending::Stopped));
}

/// Two rounds of many deltas each, with a call between them.
fn long() -> [Reply; 2] {
    const PIECES: usize = 40;
    let text = |round: usize| (0..PIECES).map(move |piece| Ok(Delta::Text(format!("{round}.{piece} "))));
    let mut first = ask(&["look"]);
    let rest = first.split_off(2);
    first.extend(text(1));
    first.extend(rest);
    let second = [Ok(Delta::Sent)].into_iter().chain(text(2)).chain([Ok(Delta::Ended(Finish::Natural))]);
    [first, second.collect()]
}

/// A line without its place among the lines of its reader.
fn said(line: &impl serde::Serialize) -> Value {
    let mut line = serde_json::to_value(line).unwrap();
    line["seq"].take();
    line
}

/// The id of the event with this number, which may have been dropped since.
fn id_of(run: &RunHandle, seq: u64) -> String {
    let first = run.events().now().unwrap().id();
    format!("{}-{seq}", first.split('-').next().unwrap())
}

/// S11.10: an id belongs to one stream: that of a run that is resumed is another, and what is no id belongs to none.
#[tokio::test(start_paused = true)]
async fn an_id_belongs_to_one_stream() {
    let built = agent([ask(&["look"]), say("fine")]).tool(does("look", |cx| async move {
        cx.stop_run(StopRequest::now());
        Ok(String::new())
    }));
    let built = built.build();
    let run = built.run("go");
    let first = run.handle();
    let outcome = run.await;
    assert_eq!(outcome.ending(), Ending::Stopped);
    let again = built.resume(&outcome).detach();
    drop(again.done().await);
    let last = first.events().collect::<Vec<_>>().await.last().unwrap().id();
    for (id, is_of_it) in [(last.as_str(), false), ("3", false), ("x-3", false), ("-", false), ("", true)] {
        let (mut encoder, mut events) = (EventEncoder::of_run(&again), again.events());
        let line = encoder.catch_up(&mut events, id);
        let kind = line.as_ref().map(|line| (line.kind().to_owned(), line.seq()));
        assert_eq!(kind, (!is_of_it).then(|| ("stream_restarted".to_owned(), 0)), "{id}");
        assert_eq!(events.now().unwrap().seq, 0);
    }
}

/// S11.8: a reader that goes away at any event and comes back sees no gap without a marker, whatever is kept for readers that
/// lag, and its lines are those of a reader that was always there.
#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_back_sees_no_gap_without_a_marker() {
    for (retained, leaves) in
        [1, 7, 4096].into_iter().flat_map(|kept| (0..100_u64).map(move |left| (kept, left)))
    {
        let limits = Limits::default().with_retained_deltas(retained);
        let looks = does("look", |_| async { Ok("fine".into()) });
        let run = agent(long()).tool(looks).limits(limits).build().run("go");
        let handle = run.handle();
        let (all, _) = join!(handle.events().collect::<Vec<_>>(), run);
        let mut always = EventEncoder::of_run(&handle);
        let mut lines: Vec<Option<Value>> = Vec::new();
        for event in &all {
            let line = always.event(event).as_ref().map(said);
            lines.resize_with(usize::try_from(event.seq).unwrap(), || None);
            lines.push(line);
        }

        let (mut encoder, mut events) = (EventEncoder::of_run(&handle), handle.events());
        let leaves = u64::min(leaves, all.last().unwrap().seq + 1);
        let last = leaves.checked_sub(1).map(|seen| id_of(&handle, seen)).unwrap_or_default();
        assert!(encoder.catch_up(&mut events, &last).is_none(), "it is the same stream");
        let (mut next, mut marked) = (leaves, 0);
        for event in events.collect::<Vec<_>>().await {
            assert_eq!(event.seq, next, "an event is missing and nothing says so");
            let line = encoder.event(&event).as_ref().map(said);
            match event.kind {
                EventKind::Lagged { count } => {
                    (next, marked) = (next + count, marked + count);
                    assert_eq!(line.unwrap()["count"], count);
                }
                _ => {
                    next += 1;
                    let seen = &lines[usize::try_from(event.seq).unwrap()];
                    assert!(seen.is_none() || *seen == line, "{seen:?} is not {line:?}");
                }
            }
        }
        assert!(next > all.last().unwrap().seq, "the end is missing");
        assert!(marked == 0 || retained < 4096, "nothing was dropped");
    }
}
