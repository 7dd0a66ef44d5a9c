//! The thin path, in process: a run with a tool, stopped in each phase.

use std::sync::{Arc, Mutex};

use futures_util::{FutureExt as _, StreamExt as _, stream};
use safepoint::{
    Agent, History, Model, Outcome, SafePoints, StopRequest,
    ids::CallId,
    message::ToolCall,
    model::{Conversation, Delta, DeltaStream, Finish, ModelSpec},
    tool,
};

type Script = Arc<Mutex<Vec<Vec<Delta>>>>;

struct Scripted(Script);
struct Talk(Script);

impl Model for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Talk(self.0.clone()))
    }
}

impl Conversation for Talk {
    fn stream(&mut self, _: &History) -> DeltaStream {
        let mut script = self.0.lock().unwrap();
        if script.is_empty() {
            return stream::iter([Ok(Delta::Sent), Ok(Delta::Text("par".into()))])
                .chain(stream::pending())
                .boxed();
        }
        let deltas = script.remove(0);
        stream::iter(deltas.into_iter().map(Ok)).boxed()
    }
}

fn call(id: &str, name: &str, args: &str) -> Delta {
    Delta::CallReady(ToolCall { id: CallId::from(id), name: name.into(), args: args.into() })
}

fn scripted(replies: Vec<Vec<Delta>>) -> Scripted {
    Scripted(Arc::new(Mutex::new(replies)))
}

fn say(text: &str) -> Vec<Delta> {
    vec![Delta::Sent, Delta::Opened, Delta::Text(text.into()), Delta::Ended(Finish::Natural)]
}

fn ask(calls: Vec<Delta>) -> Vec<Delta> {
    let mut all = vec![Delta::Sent, Delta::Opened];
    all.extend(calls);
    all.push(Delta::Ended(Finish::Natural));
    all
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_tool_is_done() {
    let model = scripted(vec![ask(vec![call("c1", "add", r#"{"a":1,"b":2}"#)]), say("three")]);
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Add {
        a: i64,
        b: i64,
    }
    let add = tool::from_fn("add", "Adds", |_cx, add: Add| async move { Ok((add.a + add.b).to_string()) });
    let agent = Agent::builder(model).tool(add).build();
    let run = agent.run("1+2?");
    let handle = run.handle();
    let outcome = run.await;
    assert_eq!(outcome.answer(), Some("three"), "{outcome:#?}");
    let quiet = handle.quiet().await;
    println!("{}", quiet.receipt());
    assert!(quiet.receipt().quiet_at.is_some());
    assert_eq!(outcome.history().entries().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn now_cuts_a_streaming_model() {
    let agent = Agent::builder(scripted(vec![])).build();
    let run = agent.run("go").start();
    let handle = run.handle();
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if matches!(event.kind, safepoint::event::EventKind::Text(_)) {
            break;
        }
    }
    handle.stop(StopRequest::now());
    let outcome = run.await;
    assert!(matches!(outcome, Outcome::Stopped(_)));
    assert_eq!(outcome.partial_text(), "par");
    println!("{}", handle.quiet().await.receipt());
}

#[tokio::test(start_paused = true)]
async fn a_swallower_changes_nothing() {
    let model = scripted(vec![ask(vec![call("c1", "deaf", "{}"), call("c2", "deaf", "{}")]), say("never")]);
    let deaf = tool::from_fn("deaf", "Swallows", |cx, (): ()| async move {
        loop {
            if cx.run(std::future::pending::<()>()).await.is_err() {
                tokio::task::yield_now().await;
            }
        }
        #[expect(unreachable_code, reason = "names the type")]
        Ok("")
    });
    let agent = Agent::builder(model).tool(deaf).build();
    let run = agent.run("go").start();
    let handle = run.handle();
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let safepoint::event::EventKind::Fact(fact) = &event.kind
            && matches!(**fact, safepoint::event::Fact::CallStarted { .. })
        {
            break;
        }
    }
    assert!(handle.done().now_or_never().is_none());
    handle.stop(StopRequest::at(SafePoints::AFTER_STARTED_CALLS));
    handle.stop(StopRequest::now());
    let outcome = run.await;
    assert!(matches!(outcome, Outcome::Stopped(_)));
    println!("{}", handle.quiet().await.receipt());
    let resumed = agent.resume(&outcome).start();
    let again = resumed.handle();
    again.stop(StopRequest::now());
    println!("{}", resumed.await.receipt());
}
