//! A rate limit that runs share: in order, by the minute, and stoppable while it is waited for.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, History, Model, RunHandle, StopRequest, Usage,
    event::EventKind,
    model::{
        Conversation, Delta, DeltaStream, Finish, ModelError, ModelErrorKind, ModelSpec, Parameters,
        WebSearch,
    },
    receipt::{Ending, ModelState},
};
use safepoint_models::{Failover, RateLimit, responses};
use tokio::time::Instant;

/// A model that answers at once, and notes when each try was sent, and of whom.
#[derive(Clone)]
struct Answers {
    began: Instant,
    sent: Arc<Mutex<Vec<(u64, String)>>>,
    /// What the provider counts of each call.
    tokens: u64,
    /// Before the first answer it asks to wait so long.
    retry_after: Arc<Mutex<Option<Duration>>>,
    /// It refuses its first call, and says to wait so long.
    refusal: Arc<Mutex<Option<Duration>>>,
}

impl Answers {
    fn new(tokens: u64) -> Self {
        Self {
            began: Instant::now(),
            sent: Arc::default(),
            tokens,
            retry_after: Arc::default(),
            refusal: Arc::default(),
        }
    }

    fn seconds(&self) -> Vec<u64> {
        self.sent.lock().unwrap().iter().map(|(at, _)| *at).collect()
    }

    fn order(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().map(|(_, who)| who.clone()).collect()
    }
}

impl Model for Answers {
    fn name(&self) -> &str {
        "answers"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
    fn check(&self, parameters: &Parameters) -> Result<(), ModelError> {
        match parameters.is_empty() {
            true => Ok(()),
            false => Err(ModelError::new(ModelErrorKind::Refused, "answers takes no parameters")),
        }
    }
}

impl Conversation for Answers {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let who = format!("{:?}", history.entries()[0]);
        let who = who.split('"').nth(1).unwrap_or_default().to_owned();
        let model = self.clone();
        let sent = move || {
            model.sent.lock().unwrap().push((model.began.elapsed().as_secs(), who.clone()));
            Ok(Delta::Sent)
        };
        if let Some(wait) = self.refusal.lock().unwrap().take() {
            let busy =
                ModelError::new(ModelErrorKind::RateLimited, "too many requests").with_retry_after(wait);
            return stream::once(async move { sent() }).chain(stream::iter([Err(busy)])).boxed();
        }
        let exact = Usage::new(self.tokens, 0);
        let wait = self.retry_after.lock().unwrap().take();
        let again = sent.clone();
        let retries = stream::iter(wait).flat_map(move |after| {
            let again = again.clone();
            let retrying = stream::iter([Ok(Delta::Retrying { failed: 1, after, error: "429".into() })]);
            retrying.chain(stream::once(async move {
                tokio::time::sleep(after).await;
                again()
            }))
        });
        stream::once(async move { sent() })
            .chain(retries)
            .chain(stream::iter([
                Ok(Delta::Usage(exact)),
                Ok(Delta::Text("ok".into())),
                Ok(Delta::Ended(Finish::Natural)),
            ]))
            .boxed()
    }
}

fn runs(agent: &Agent, count: usize) -> Vec<RunHandle> {
    (0..count).map(|at| agent.run(format!("run {at}")).detach()).collect()
}

async fn waited(handle: &RunHandle) -> bool {
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let EventKind::Waiting { what } = event.kind {
            assert_eq!(&*what, "the rate limit of test");
            return true;
        }
    }
    false
}

/// S12.10: all runs of all agents that share a limit have its requests together, in the order of their calls, and a run
/// that waits says so.
#[tokio::test(start_paused = true)]
async fn requests_are_let_through_in_order() {
    let model = Answers::new(1);
    let limit = RateLimit::new("test").requests_per_minute(4);
    let one = Agent::builder(limit.limit(model.clone())).build();
    let other = Agent::builder(limit.clone().limit(model.clone())).build();
    let mut handles = Vec::new();
    for at in 0..8 {
        let agent = if at % 2 == 0 { &one } else { &other };
        handles.push(agent.run(format!("run {at}")).detach());
        // Each has asked before the next does.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for handle in &handles {
        assert_eq!(handle.done().await.answer(), Some("ok"));
    }
    assert_eq!(model.order(), (0..8).map(|at| format!("run {at}")).collect::<Vec<_>>());
    assert_eq!(model.seconds()[..4], [0; 4], "a full bucket at the beginning");
    let after: Vec<u64> = model.seconds()[4..].iter().map(|at| at.div_ceil(15) * 15).collect();
    assert_eq!(after, [15, 30, 45, 60], "{:?}", model.seconds());
    let mut said = Vec::new();
    for handle in &handles {
        said.push(waited(handle).await);
    }
    assert_eq!(said, [false, false, false, false, true, true, true, true]);
}

/// S12.10: a small call for which there is room does not pass a large one that waits.
#[tokio::test(start_paused = true)]
async fn a_small_call_does_not_pass_a_large_one_that_waits() {
    let model = Answers::new(600);
    let agent = Agent::builder(RateLimit::new("test").tokens_per_minute(1000).limit(model.clone())).build();
    let large = "x".repeat(3600);
    assert_eq!(agent.run("first").await.answer(), Some("ok"));
    let waits = agent.run(large.as_str()).detach();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let small = agent.run("small").detach();
    for handle in [waits, small] {
        assert_eq!(handle.done().await.answer(), Some("ok"));
    }
    assert_eq!(model.order(), ["first", large.as_str(), "small"]);
}

/// S12.10: tokens are counted by the provider's figures once they are known.
#[tokio::test(start_paused = true)]
async fn tokens_count_as_the_provider_counts_them() {
    let model = Answers::new(600);
    let agent = Agent::builder(RateLimit::new("test").tokens_per_minute(1000).limit(model.clone())).build();
    for _ in 0..3 {
        assert_eq!(agent.run("hi").await.answer(), Some("ok"));
    }
    // 600 of 1,000; 1,200 of 1,000; so the third waits until 200 and its own few are free again.
    assert_eq!(model.seconds()[..2], [0, 0]);
    let third = model.seconds()[2];
    assert!((12..=13).contains(&third), "{third}");
    // A call that needs more than a minute's tokens waits until all are free, and then passes.
    let small = Agent::builder(RateLimit::new("test").tokens_per_minute(1).limit(Answers::new(1))).build();
    assert_eq!(small.run("a longer question than four bytes").await.answer(), Some("ok"));
}

/// S12.10, S2.8, S2.12: a stop ends the wait at once; nothing was sent, and those behind it lose nothing.
#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait() {
    let model = Answers::new(1);
    let agent = Agent::builder(RateLimit::new("test").requests_per_minute(1).limit(model.clone())).build();
    assert_eq!(agent.run("first").await.answer(), Some("ok"));
    let handles = runs(&agent, 3);
    for handle in &handles {
        assert!(waited(handle).await);
    }
    let asked = Instant::now();
    handles[0].stop(StopRequest::now());
    handles[1].stop(StopRequest::now());
    for handle in &handles[..2] {
        let outcome = handle.done().await;
        assert_eq!((outcome.ending(), asked.elapsed()), (Ending::Stopped, Duration::ZERO));
        let state = outcome.receipt().model.as_ref().map(|model| model.state);
        assert!(matches!(state, None | Some(ModelState::NeverSent)), "{state:?}");
        assert!(handle.quiet().await.receipt().quiet_at.is_some());
    }
    assert_eq!(handles[2].done().await.answer(), Some("ok"));
    assert_eq!(model.order(), ["first", "run 2"]);
    assert_eq!(model.seconds(), [0, 60]);
}

/// S12.10: while the provider makes one call wait, no other begins; and its second try is a request as well.
#[tokio::test(start_paused = true)]
async fn what_the_provider_asks_for_holds_for_all() {
    let model = Answers::new(1);
    *model.retry_after.lock().unwrap() = Some(Duration::from_secs(7));
    let agent = Agent::builder(RateLimit::new("test").requests_per_minute(3).limit(model.clone())).build();
    let handles = runs(&agent, 3);
    for handle in &handles {
        assert_eq!(handle.done().await.answer(), Some("ok"));
    }
    let seconds = model.seconds();
    assert_eq!(seconds[..3], [0, 7, 7], "the try, and then the other try and the next call: {seconds:?}");
    assert!((20..=21).contains(&seconds[3]), "four requests of three a minute: {seconds:?}");
}

/// S12.10: a refusal that ends its call says how long to wait, and the next call waits that long.
#[tokio::test(start_paused = true)]
async fn a_final_refusal_holds_for_the_next_call() {
    let model = Answers::new(1);
    *model.refusal.lock().unwrap() = Some(Duration::from_secs(30));
    let agent = Agent::builder(RateLimit::new("test").requests_per_minute(60).limit(model.clone())).build();
    assert_eq!(agent.run("first").await.ending(), Ending::Failed);
    let second = agent.run("second").detach();
    assert_eq!(second.done().await.answer(), Some("ok"));
    assert_eq!(model.seconds(), [0, 30]);
    assert!(waited(&second).await);
}

/// S12.10: a model under a limit takes the parameters that it takes without one, and refuses the others in its own words.
#[test]
fn a_limit_changes_no_parameter() {
    let limited = RateLimit::new("test").limit(Answers::new(1));
    assert!(limited.check(&Parameters::new()).is_ok());
    let refused = limited.check(&Parameters::new().seed(7)).unwrap_err();
    assert_eq!(refused.to_string(), "answers takes no parameters");
}

/// S12.10, S4.24: a model under a limit has the provider tools that it has without one, and no others.
#[test]
fn a_limit_changes_no_provider_tool() {
    let has = |model: Box<dyn Model>| {
        let limited = RateLimit::new("test").limit(model);
        Agent::builder(limited).provider_tool(WebSearch::new()).try_build().is_ok()
    };
    assert!(has(Box::new(responses::model("gpt-5.2"))));
    assert!(!has(Box::new(Answers::new(1))));
}

/// S12.10: among several models in a row, a wait is not the beginning of an answer.
#[tokio::test(start_paused = true)]
async fn a_wait_is_no_beginning() {
    let (limited, other) = (Answers::new(1), Answers::new(1));
    let limit = RateLimit::new("test").requests_per_minute(1);
    let model = Failover::new(limit.limit(limited.clone())).or(other.clone());
    let agent = Agent::builder(model).build();
    for _ in 0..2 {
        assert_eq!(agent.run("hi").await.answer(), Some("ok"));
    }
    assert_eq!((limited.seconds(), other.seconds()), (vec![0, 60], vec![]));
}
