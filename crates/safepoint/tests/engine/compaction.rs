//! A run that compacts its conversation and does nothing else.

use std::sync::{Arc, Mutex};

use safepoint::{
    History, Model, Outcome, SafePoints, StopRequest,
    event::{EventKind, Fact},
    model::{Conversation, ModelSpec},
    receipt::Ending,
    window::Window,
};

use crate::{
    hook_changes::Spy,
    too_long::{Takes, long},
    world::{Scripted, agent, say, until},
};

const ASKED: &str = "[compact the conversation]";

/// Notes the instructions that it is opened with.
#[derive(Clone)]
struct Noting(Arc<Mutex<Vec<String>>>);

impl Model for Noting {
    fn name(&self) -> &str {
        "noting"
    }
    fn open(&self, spec: ModelSpec) -> Box<dyn Conversation> {
        self.0.lock().unwrap().extend(spec.system.map(|text| text.to_string()));
        Scripted::new([say("in short")]).open(ModelSpec::default())
    }
}

/// S12.60: what the person wants kept is in the instructions of the summary, whichever model writes it.
#[tokio::test]
async fn what_is_to_be_kept_is_in_the_instructions() {
    let noting = Noting(Arc::default());
    let window = Window::of(1_000_000).summarise_with(noting.clone()).compact("the colours");
    let outcome = agent([]).build().run_on(long(40), ASKED).window(window).await;
    assert_eq!(outcome.ending(), Ending::Done);
    let instructions = noting.0.lock().unwrap().concat();
    assert!(instructions.ends_with("keeps this in particular: the colours"), "{instructions}");
}

fn texts(history: &History) -> String {
    format!("{:?}", history.sent().entries())
}

/// S12.60: a conversation that fits is summarised too; the newest messages
/// stay, all entries are kept, no model is asked for an answer, and the next turn sends the summary.
#[tokio::test]
async fn a_conversation_that_fits_is_compacted() {
    let spy = Spy::new([say("they counted"), say("and on")]);
    let agent = spy.agent().build();
    let window = Window::of(1_000_000).compact("");
    let compacted = agent.run_on(long(40), ASKED).window(window).await;
    let Outcome::Done(answer) = &compacted else { panic!("{compacted:?}") };
    assert_eq!((answer.text(), compacted.receipt().rounds), ("", 0));
    assert_eq!(compacted.receipt().summaries.len(), 1);
    assert_eq!(compacted.history().entries().len(), 81);
    let sent = texts(compacted.history());
    assert!(sent.contains("was compacted. A summary of it:]") && sent.contains("they counted"), "{sent}");
    assert!(sent.contains("question 39") && !sent.contains("question 3\""), "{sent}");
    let asked = spy.sent();
    assert!(asked.len() == 1 && asked[0].contains("question 0"), "{asked:?}");
    let next = agent.run_on(compacted.history().clone(), "and?").await;
    assert_eq!(next.answer(), Some("and on"));
    let asked = spy.sent();
    assert!(asked[1].contains("they counted") && !asked[1].contains("question 0"), "{}", asked[1]);
}

/// S12.60, S1.3: a stop while the summary is written cuts it at once, whatever its safe points, and nothing is left out; a resume
/// tries again.
#[tokio::test]
async fn a_stop_leaves_out_nothing() {
    for stop in [StopRequest::now(), StopRequest::at(SafePoints::AFTER_ALL_CALLS)] {
        let agent = agent([]).build();
        let handle = agent.run_on(long(40), ASKED).window(Window::of(1_000_000).compact("")).detach();
        until(
            &handle,
            |kind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::SummaryStarted { .. })),
        )
        .await;
        handle.stop(stop);
        let stopped = handle.done().await;
        assert_eq!((stopped.ending(), stopped.history().omitted()), (Ending::Stopped, None));
        assert_eq!(stopped.receipt().summaries.len(), 1);
        let other = Scripted::new([say("in short")]);
        let again = agent.resume(&stopped).model(other).await;
        assert_eq!(again.ending(), Ending::Done);
        assert!(texts(again.history()).contains("in short"));
    }
}

/// S12.60: where nothing stands before the run's input, or all of it is summarised, nothing is sent and nothing changes.
#[tokio::test]
async fn nothing_is_sent_where_there_is_nothing_to_summarise() {
    let model = Takes::new(usize::MAX, [say("in short")]);
    let agent = model.agent().build();
    let compact = || Window::of(1_000_000).compact("");
    let first = agent.run(ASKED).window(compact()).await;
    assert_eq!((first.ending(), first.history().omitted()), (Ending::Done, None));
    assert_eq!(model.sent().len(), 0);
}

/// S12.60: a summary that fails fails the run, says so, and leaves out nothing.
#[tokio::test]
async fn a_summary_that_says_nothing_compacts_nothing() {
    let outcome =
        agent([say(" ")]).build().run_on(long(40), ASKED).window(Window::of(1_000_000).compact("")).await;
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("the conversation was not compacted: its summary failed"), "{error}");
    assert_eq!(outcome.history().omitted(), None);
}

/// S12.60: a message that comes while the conversation is compacted is no part of that run: it comes back to its sender.
#[tokio::test]
async fn a_steer_is_not_taken() {
    let agent = agent([]).build();
    let handle = agent.run_on(long(40), ASKED).window(Window::of(1_000_000).compact("")).detach();
    until(
        &handle,
        |kind| matches!(kind, EventKind::Fact(fact) if matches!(**fact, Fact::SummaryStarted { .. })),
    )
    .await;
    let steering = handle.steer(safepoint::Steer::new("in euros").unwrap());
    handle.stop(StopRequest::now());
    assert_eq!(handle.done().await.ending(), Ending::Stopped);
    assert!(matches!(steering.outcome().await, safepoint::steer::SteerOutcome::Returned(_)));
}
