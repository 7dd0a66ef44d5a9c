//! A provider refuses a conversation as too long: the window's policy is applied once more, and the call is repeated.

use std::sync::{Arc, Mutex};

use futures_util::{StreamExt as _, stream};
use safepoint::{
    Agent, AgentBuilder, History, Limits, Model, Outcome, RunHandle, StopRequest,
    event::{EventKind, Fact},
    history::Message,
    hook::{self, ModelVerdict},
    log::{Log, LogError, MemoryLog, RunRecord},
    message::AssistantMessage,
    model::{Conversation, Delta, DeltaStream, ModelError, ModelErrorKind, ModelSpec},
    outcome::ErrorKind,
    receipt::Ending,
    window::Window,
};

use crate::world::{Reply, say};

/// A model that takes conversations of `most` messages, and gives its replies in order.
#[derive(Clone)]
pub(crate) struct Takes {
    most: usize,
    replies: Arc<Mutex<Vec<Reply>>>,
    sent: Arc<Mutex<Vec<usize>>>,
    begins: bool,
}

impl Takes {
    pub(crate) fn new(most: usize, replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        Self { most, replies, sent: Arc::default(), begins: false }
    }

    pub(crate) fn sent(&self) -> Vec<usize> {
        self.sent.lock().unwrap().clone()
    }

    pub(crate) fn agent(&self) -> AgentBuilder {
        Agent::builder(self.clone())
    }
}

impl Model for Takes {
    fn name(&self) -> &str {
        "takes"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Takes {
    fn stream(&mut self, history: &History) -> DeltaStream {
        let messages = history.entries().len();
        self.sent.lock().unwrap().push(messages);
        if messages > self.most {
            let error = ModelError::new(ModelErrorKind::ContextWindow, "prompt is too long").with_status(400);
            let begun = self.begins.then(|| Ok(Delta::Text("well".into())));
            return stream::iter([Ok(Delta::Sent)].into_iter().chain(begun).chain([Err(error)])).boxed();
        }
        stream::iter(self.replies.lock().unwrap().remove(0)).boxed()
    }
}

/// A conversation of `rounds` rounds.
pub(crate) fn long(rounds: usize) -> History {
    let mut history = History::new();
    for round in 0..rounds {
        history.push(Message::User(format!("question {round} {}", "x".repeat(60)).into()));
        history.push(Message::Assistant(AssistantMessage::of_text(format!("answer {round}")).into()));
    }
    history
}

async fn facts(handle: &RunHandle) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut events = handle.events();
    while let Some(event) = events.next().await {
        if let EventKind::Fact(fact) = event.kind {
            found.push(match &*fact {
                Fact::ModelStarted { .. } => "started",
                Fact::ModelTooLong { .. } => "too long",
                Fact::HistoryShortened(_) => "shortened",
                Fact::SummaryStarted { .. } => "summary",
                Fact::SummaryEnded { .. } => "summed up",
                Fact::ModelEnded { .. } => "ended",
                _ => continue,
            });
        }
    }
    found
}

fn failed(outcome: &Outcome) -> (String, String) {
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    (error.code().to_owned(), error.hint().unwrap_or_default().to_owned())
}

/// S12.11: what is refused as too long is shortened by the policy, and sent once more, in the same round.
#[tokio::test(start_paused = true)]
async fn a_refused_conversation_is_shortened_and_sent_again() {
    let dropped: &[&str] = &["started", "too long", "shortened", "started", "ended"];
    let summed: &[&str] = &["started", "too long", "summary", "summed up", "started", "ended"];
    let drops: fn(Window) -> Window = Window::drop_oldest;
    for (policy, expected) in [(drops, dropped), (Window::summarise as fn(Window) -> Window, summed)] {
        // The window that is named is far larger than the model's.
        let replies = if expected == summed { vec![say("a summary"), say("end")] } else { vec![say("end")] };
        let model = Takes::new(16, replies);
        let limits = Limits::default().with_max_rounds(1);
        let agent = model.agent().window(policy(Window::of(1_000_000))).limits(limits).build();
        let handle = agent.run_on(long(15), "now?").detach();
        assert_eq!(facts(&handle).await, expected);
        let outcome = handle.done().await;
        assert_eq!((outcome.answer(), outcome.receipt().rounds), (Some("end"), 1), "{:?}", outcome.receipt());
        assert_eq!(model.sent()[0], 31);
        assert_eq!(outcome.history().entries().len(), 32, "nothing is lost");
    }
}

/// S12.11, S3.11: once: a second refusal fails the run.
#[tokio::test(start_paused = true)]
async fn a_second_refusal_fails_the_run() {
    let model = Takes::new(1, []);
    let agent = model.agent().window(Window::of(1_000_000).drop_oldest()).build();
    let handle = agent.run_on(long(15), "now?").detach();
    assert_eq!(facts(&handle).await, ["started", "too long", "shortened", "started", "ended"]);
    let outcome = handle.done().await;
    let (code, hint) = failed(&outcome);
    assert_eq!((code.as_str(), model.sent().len()), ("context_window", 2));
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (error.kind(), error.status()),
        (ErrorKind::TooLong, Some(400)),
        "what the provider said is kept"
    );
    assert!(hint.contains("smaller one"), "{hint}");
}

/// S12.11: where nothing can be left out, the error says so, and nothing is sent again.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_shortened_fails_the_run() {
    let model = Takes::new(0, []);
    let agent = model.agent().window(Window::of(1_000_000).drop_oldest()).build();
    let outcome = agent.run("one question").await;
    assert_eq!((failed(&outcome).0.as_str(), model.sent().len()), ("context_window", 1));
    let Outcome::Failed(error) = &outcome else { panic!("{outcome:?}") };
    assert!(error.to_string().contains("refused the conversation as too long"), "{error}");
}

/// S12.11: without a window, or with one that refuses, nothing is repeated, and the error says what to do.
#[tokio::test(start_paused = true)]
async fn without_a_policy_the_error_says_what_to_do() {
    for (window, says) in [(None, "AgentBuilder::window"), (Some(Window::of(1_000_000)), "smaller one")] {
        let model = Takes::new(3, []);
        let builder = model.agent();
        let builder = if let Some(window) = window { builder.window(window) } else { builder };
        let outcome = builder.build().run_on(long(15), "now?").await;
        let (code, hint) = failed(&outcome);
        assert_eq!((code.as_str(), model.sent().len()), ("context_window", 1));
        assert!(hint.contains(says), "{hint}");
    }
}

/// S12.11: nothing is repeated after anything of the reply has come.
#[tokio::test(start_paused = true)]
async fn a_reply_that_has_begun_is_not_asked_for_again() {
    let model = Takes { begins: true, ..Takes::new(3, [say("end")]) };
    let agent = model.agent().window(Window::of(1_000_000).drop_oldest()).build();
    let outcome = agent.run_on(long(15), "now?").await;
    assert_eq!((failed(&outcome).0.as_str(), model.sent().len()), ("context_window", 1));
}

/// S12.11, S2.12: a stop at that boundary wins: nothing is sent again, and a resume shortens it first.
#[tokio::test(start_paused = true)]
async fn a_stop_before_the_second_call_wins() {
    let model = Takes::new(16, [say("end")]);
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    // The second time that it is asked about the round, the request is shorter already.
    let stops = hook::before_model("stops", move |_, _| {
        let mut count = count.lock().unwrap();
        *count += 1;
        if *count == 2 { ModelVerdict::Stop(StopRequest::now()) } else { ModelVerdict::Proceed }
    });
    let agent = model.agent().window(Window::of(1_000_000).drop_oldest()).hooks(stops).build();
    let outcome = agent.run_on(long(15), "now?").await;
    assert_eq!((outcome.ending(), model.sent().len()), (Ending::Stopped, 1));
    let resumed = agent.resume(&outcome).await;
    assert_eq!((resumed.answer(), resumed.receipt().rounds), (Some("end"), 1));
    assert_eq!(*asked.lock().unwrap(), 3);
}

/// A log that takes this number of facts and then none.
struct Full(MemoryLog, Mutex<usize>);

impl Log for Full {
    fn append(&self, record: RunRecord) -> futures_util::future::BoxFuture<'_, Result<u64, LogError>> {
        let mut left = self.1.lock().unwrap();
        if *left == 0 {
            return Box::pin(async { Err(LogError::new("full")) });
        }
        *left -= 1;
        self.0.append(record)
    }
    fn read(&self) -> futures_util::future::BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        self.0.read()
    }
}

/// S12.11, S7.2: wherever the record ends, a resume comes to the same end, and what was refused is not sent as it was.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_recorded_holds_after_a_crash() {
    for taken in 3..6 {
        let model = Takes::new(16, [say("end"), say("end")]);
        let agent = model.agent().window(Window::of(1_000_000).drop_oldest()).build();
        let log = Arc::new(Full(MemoryLog::default(), Mutex::new(taken)));
        let outcome = agent.run_recorded(Arc::clone(&log) as Arc<dyn Log>, long(15), "now?").await;
        assert_eq!(outcome.ending(), Ending::Failed, "{taken}");
        *log.1.lock().unwrap() = usize::MAX;
        let resumed = agent.resume(&outcome).await;
        assert_eq!(resumed.answer(), Some("end"), "{taken}: {:?}", resumed.receipt());
        assert_eq!(model.sent().iter().filter(|sent| **sent == 31).count(), 1, "{taken}: {:?}", model.sent());
    }
}
