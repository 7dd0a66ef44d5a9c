//! The code of others panics at every method, every poll and every drop: whatever it is, the run settles with an account.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

use futures_util::{Stream, future::BoxFuture};
use safepoint::{
    Agent, AgentBuilder, History, Model, Outcome, Receipt, RunHandle, StopRequest,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, Rule, RuleAction, WithoutApprover},
    history::Message,
    hook::{CallVerdict, HookCall, HookResult, HookWork, HookedMessage, Hooks, ModelVerdict},
    log::{Log, LogError, MemoryLog, RunRecord},
    message::AssistantMessage,
    model::{Conversation, Delta, DeltaStream, Finish, ModelError, ModelSpec},
    outcome::Persisted,
    receipt::{CallReport, Ending, QuietReport},
    window::Window,
};

use crate::world::{agent, ask, does, say, until};

/// Longer than any wait of these runs; the clock is a controlled one.
const NEVER: Duration = Duration::from_secs(3600);

/// At which moment of a piece of work it panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    Called,
    Polled,
    Dropped,
    /// On a thread that may block.
    Blocking,
    Never,
}

const MOMENTS: [When; 3] = [When::Called, When::Polled, When::Dropped];

/// A future or a stream that panics at the configured point.
struct Trap<I> {
    gives: std::vec::IntoIter<I>,
    when: When,
}

impl<I> Trap<I> {
    fn of(when: When, gives: Vec<I>) -> Self {
        assert!(when != When::Called, "it panics as it is called");
        Self { gives: gives.into_iter(), when }
    }

    fn next(&mut self) -> Option<I> {
        let next = self.gives.next();
        // In the midst of a stream: after what came first.
        assert!(self.when != When::Polled || self.gives.len() > 0, "it panics as it is polled");
        next
    }
}

impl<I: Unpin> Future for Trap<I> {
    type Output = I;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<I> {
        self.next().map_or(Poll::Pending, Poll::Ready)
    }
}

impl<I: Unpin> Stream for Trap<I> {
    type Item = I;
    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I>> {
        Poll::Ready(self.next())
    }
}

impl<I> Drop for Trap<I> {
    fn drop(&mut self) {
        assert!(self.when != When::Dropped || thread::panicking(), "it panics as it is dropped");
    }
}

/// Waits for the end, and sees that nothing is left of the run.
async fn settled(handle: &RunHandle, place: &dyn fmt::Debug) -> (Outcome, Arc<Receipt>) {
    let done = tokio::time::timeout(NEVER, handle.done()).await;
    let outcome = done.unwrap_or_else(|_| panic!("{place:?}: never settled; alive: {:?}", handle.alive()));
    let quiet = tokio::time::timeout(NEVER, handle.quiet()).await;
    let quiet = quiet.unwrap_or_else(|_| panic!("{place:?}: no word on its quiet"));
    assert!(matches!(quiet, QuietReport::Quiet(_)), "{place:?}: {:?}", quiet.receipt().survivors);
    (outcome, Arc::clone(quiet.receipt()))
}

/// Sees a failure with this code and an account of the panic.
async fn failed(handle: &RunHandle, code: &str, place: &dyn fmt::Debug) {
    match settled(handle, place).await.0 {
        Outcome::Failed(error) => {
            let said = error.to_string();
            assert!(error.code() == code && said.contains("it panics as it is"), "{place:?}: {said}");
        }
        other => panic!("{place:?}: {:?}", other.ending()),
    }
}

/// Where a model panics. Exhaustive: whatever of it the engine calls, polls or drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    Name,
    Open,
    Reply(When),
    Farewell(When),
    ItsConversation,
}

struct Faulty(Of);
struct Talks(Of);

impl Model for Faulty {
    fn name(&self) -> &str {
        assert!(self.0 != Of::Name, "it panics as it is named");
        "faulty"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        assert!(self.0 != Of::Open, "it panics as it is opened");
        Box::new(Talks(self.0))
    }
}

impl Conversation for Talks {
    fn stream(&mut self, _: &History) -> DeltaStream {
        let said: Vec<Result<Delta, ModelError>> =
            vec![Ok(Delta::Sent), Ok(Delta::Text("so far".into())), Ok(Delta::Ended(Finish::Natural))];
        match self.0 {
            Of::Reply(When::Called) => panic!("it panics as it is called"),
            Of::Reply(when) => Box::pin(Trap::of(when, said)),
            // Cut in the midst of it.
            Of::Farewell(_) => {
                let (sent, text) = (said[0].clone(), said[1].clone());
                use futures_util::{StreamExt as _, stream};
                stream::iter([sent, text]).chain(stream::pending()).boxed()
            }
            Of::Name | Of::Open | Of::ItsConversation => Box::pin(Trap::of(When::Never, said)),
        }
    }
    fn release(&mut self) -> Option<BoxFuture<'static, ()>> {
        match self.0 {
            Of::Farewell(When::Called) => panic!("it panics as it is called"),
            Of::Farewell(when) => Some(Box::pin(Trap::of(when, vec![()]))),
            _ => None,
        }
    }
}

impl Drop for Talks {
    fn drop(&mut self) {
        assert!(self.0 != Of::ItsConversation || thread::panicking(), "it panics as it is dropped");
    }
}

fn before_the_end() -> impl Iterator<Item = Of> {
    [Of::Name, Of::Open].into_iter().chain(MOMENTS.map(Of::Reply))
}

/// S2.16, S2.13, S3.1: a model that panics anywhere before its message has ended fails the run with the code `provider`.
#[tokio::test(start_paused = true)]
async fn a_model_that_panics_anywhere_fails_the_run() {
    for place in before_the_end() {
        let handle = Agent::builder(Faulty(place)).build().run("go").detach();
        failed(&handle, "provider", &place).await;
    }
}

/// S2.16, S12.2: so does a model that writes a summary: nothing is left out of the history in silence.
#[tokio::test(start_paused = true)]
async fn a_summariser_that_panics_anywhere_fails_the_run() {
    for place in before_the_end().chain([Of::ItsConversation]) {
        let mut history = History::new();
        for _ in 0..8 {
            history.push(Message::User("a long question ".repeat(40).into()));
            history.push(Message::Assistant(AssistantMessage::of_text("a long answer ".repeat(40)).into()));
        }
        let window = Window::of(1200).keep_for_answer(200).summarise_with(Faulty(place));
        let handle = agent([say("end")]).window(window).build().run_on(history, "go").detach();
        if place == Of::ItsConversation {
            // The summary was recorded before it was let go.
            let (outcome, _) = settled(&handle, &place).await;
            assert_eq!(outcome.ending(), Ending::Done);
        } else {
            failed(&handle, "provider", &place).await;
        }
    }
}

/// S2.16, S2.2, S3.5: a panic once the message is cut, or the run has settled, undoes neither; it is reported
/// as late.
#[tokio::test(start_paused = true)]
async fn a_model_that_panics_after_its_message_changes_nothing() {
    for place in MOMENTS.map(Of::Farewell) {
        let handle = Agent::builder(Faulty(place)).build().run("go").detach();
        until(&handle, |kind| matches!(kind, safepoint::event::EventKind::Text(_))).await;
        handle.stop(StopRequest::now());
        assert_eq!(settled(&handle, &place).await.0.ending(), Ending::Stopped, "{place:?}");
    }
    let handle = Agent::builder(Faulty(Of::ItsConversation)).build().run("go").detach();
    let (outcome, receipt) = settled(&handle, &Of::ItsConversation).await;
    assert_eq!(outcome.ending(), Ending::Done);
    assert!(
        receipt.late.iter().any(|late| late.contains("it panics as it is dropped")),
        "{:?}",
        receipt.late
    );
}

/// A hook of this name that panics at this moment.
struct Hook(&'static str, When);

impl Hook {
    fn at<T: Send + Unpin + 'static>(&self, place: &str, said: T) -> HookResult<T> {
        match self.1 {
            _ if self.0 != place => None,
            When::Called => panic!("it panics as it is called"),
            When::Blocking => Some(HookWork::Blocking(Box::new(|| panic!("it panics as it is polled")))),
            when => Some(HookWork::Async(Box::pin(Trap::of(when, vec![said])))),
        }
    }
}

impl Hooks for Hook {
    fn before_model(&self, _: u32, _: &History) -> HookResult<ModelVerdict> {
        self.at("before_model", ModelVerdict::Proceed)
    }
    fn after_model(&self, _: &HookedMessage) -> HookResult<()> {
        self.at("after_model", ())
    }
    fn before_call(&self, _: &HookCall) -> HookResult<CallVerdict> {
        self.at("before_call", CallVerdict::Proceed)
    }
    fn after_call(&self, _: &CallReport) -> HookResult<()> {
        self.at("after_call", ())
    }
    fn on_stop(&self, _: &Arc<Receipt>) -> HookResult<()> {
        self.at("on_stop", ())
    }
}

fn one_call() -> AgentBuilder {
    agent([ask(&["t"]), say("end")]).tool(does("t", |_| async { Ok("r".into()) }))
}

/// S2.16, S2.13: a hook that panics at any moment fails the run; `on_stop`, which comes after the end, does not.
#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_at_any_moment_fails_the_run() {
    for when in MOMENTS.into_iter().chain([When::Blocking]) {
        for place in ["before_model", "after_model", "before_call", "after_call"] {
            let handle = one_call().hooks(Hook(place, when)).build().run("go").detach();
            failed(&handle, "callback", &(place, when)).await;
        }
        let handle = agent([]).hooks(Hook("on_stop", when)).build().run("go").detach();
        until(&handle, |kind| matches!(kind, safepoint::event::EventKind::Text(_))).await;
        handle.stop(StopRequest::now());
        assert_eq!(settled(&handle, &("on_stop", when)).await.0.ending(), Ending::Stopped);
    }
}

struct Asker(When);

impl Approver for Asker {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'static, Decision> {
        match self.0 {
            When::Called => panic!("it panics as it is called"),
            when => Box::pin(Trap::of(when, vec![Decision::Approve])),
        }
    }
}

/// S2.16, S8.2: an approver that panics at any moment, its word given or not, fails the run; nothing is allowed by it.
#[tokio::test(start_paused = true)]
async fn an_approver_that_panics_at_any_moment_fails_the_run() {
    for when in MOMENTS {
        let asks = ApprovalMode::Ask(Some(Arc::new(Asker(when))), WithoutApprover::Deny);
        let handle =
            one_call().rule(Rule::on("t", RuleAction::Ask)).approvals(asks).build().run("go").detach();
        failed(&handle, "callback", &when).await;
    }
}

/// An approver that never answers, and whose asking panics as it is dropped.
struct Silent;

impl Approver for Silent {
    fn ask(&self, _: ApprovalRequest) -> BoxFuture<'static, Decision> {
        Box::pin(Trap::of(When::Dropped, Vec::new()))
    }
}

/// S2.16, S8.5: a question whose time is over expires, whatever the drop of its asking does.
#[tokio::test(start_paused = true)]
async fn a_question_expires_though_its_asking_panics_as_it_is_dropped() {
    let asks = ApprovalMode::Ask(Some(Arc::new(Silent)), WithoutApprover::Deny);
    let limits = safepoint::Limits::default().with_approval_expiry(Duration::from_secs(60));
    let builder = one_call().rule(Rule::on("t", RuleAction::Ask)).approvals(asks).limits(limits);
    let handle = builder.build().run("go").detach();
    let (outcome, receipt) = settled(&handle, &"an expired question").await;
    assert_eq!(outcome.ending(), Ending::Done);
    assert_eq!(receipt.calls[0].status, safepoint::receipt::CallStatus::Expired);
}

/// A log that panics over this record of its appends, or as it is read.
struct Breaks {
    inner: MemoryLog,
    at: usize,
    asked: AtomicUsize,
    when: When,
}

impl Breaks {
    fn at(at: usize, when: When) -> Arc<Self> {
        Arc::new(Self { inner: MemoryLog::default(), at, asked: AtomicUsize::new(0), when })
    }
}

impl Log for Breaks {
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        if self.asked.fetch_add(1, Ordering::SeqCst) != self.at {
            return self.inner.append(record);
        }
        match self.when {
            When::Called => panic!("it panics as it is called"),
            when => Box::pin(Trap::of(when, vec![Ok(0)])),
        }
    }

    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        if self.at != usize::MAX {
            return self.inner.read();
        }
        match self.when {
            When::Called => panic!("it panics as it is called"),
            when => Box::pin(Trap::of(when, vec![Ok(Vec::new())])),
        }
    }
}

/// S2.16, S3.4: a log that panics over any of its records, at any moment: the run settles, and reports as
/// unknown what is recorded.
#[tokio::test(start_paused = true)]
async fn a_log_that_panics_over_any_record_ends_the_run_with_an_account() {
    for when in MOMENTS {
        for at in 0.. {
            let log = Breaks::at(at, when);
            let run = one_call().build().run_recorded(Arc::clone(&log) as Arc<dyn Log>, History::new(), "go");
            let (outcome, _) = settled(&run.detach(), &(at, when)).await;
            if log.asked.load(Ordering::SeqCst) <= at {
                assert_eq!((outcome.ending(), at > 5), (Ending::Done, true));
                break;
            }
            assert_eq!(outcome.persisted(), &Persisted::Unknown, "{at} {when:?}");
            if let Outcome::Failed(error) = &outcome {
                let said = error.to_string();
                assert!(
                    error.code() == "store" && said.contains("it panics as it is"),
                    "{at} {when:?}: {said}"
                );
            }
        }
    }
}

/// S2.16, S7.7: so does one that panics as a resume reads it.
#[tokio::test(start_paused = true)]
async fn a_log_that_panics_as_it_is_read_fails_the_resume() {
    for when in MOMENTS {
        let log: Arc<dyn Log> = Breaks::at(usize::MAX, when);
        let agent = agent([]).build();
        let handle = agent.run_recorded(log, History::new(), "go").detach();
        until(&handle, |kind| matches!(kind, safepoint::event::EventKind::Text(_))).await;
        handle.stop(StopRequest::now());
        let (outcome, _) = settled(&handle, &when).await;
        assert_eq!(outcome.ending(), Ending::Stopped);
        failed(&agent.resume(&outcome).detach(), "store", &when).await;
    }
}
