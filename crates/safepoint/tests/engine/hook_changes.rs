//! What hooks change and decide: in order, recorded with their names, judged again, and never ahead of a stop.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use proptest::{prelude::*, test_runner::TestRunner};
use safepoint::{
    Agent, AgentBuilder, History, Model, Outcome, RunHandle, SafePoints, StopRequest,
    approval::{
        ApprovalMode, ApprovalRequest, Approver, Decision, Rule, RuleAction, ToolApproval, WithoutApprover,
    },
    event::{EventKind, Fact, HookAction},
    history::Message,
    hook::{
        self, CallVerdict, HookCall, HookResult, HookedResult, Hooks, ModelVerdict, ResultVerdict, blocking,
        from_future, ready,
    },
    model::{Conversation, Delta, DeltaStream, ModelSpec},
    receipt::{CallStatus, Ending},
    tool::{self, FnTool, OnStop, Output},
};
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::Instant};

use crate::world::{Reply, agent, ask, call_started, does, say, until};

pub(crate) const SECRET: &str = "4111-1111";

/// A model that notes what it is sent, and gives its replies in order.
#[derive(Clone, Default)]
pub(crate) struct Spy {
    replies: Arc<Mutex<Vec<Reply>>>,
    sent: Arc<Mutex<Vec<History>>>,
}

impl Spy {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { replies: Arc::new(Mutex::new(replies.into_iter().collect())), sent: Arc::default() }
    }

    pub(crate) fn agent(&self) -> AgentBuilder {
        Agent::builder(self.clone()).approvals(ApprovalMode::Auto)
    }

    /// What was sent, as JSON, request by request.
    pub(crate) fn sent(&self) -> Vec<String> {
        self.sent.lock().unwrap().iter().map(|sent| json!(sent).to_string()).collect()
    }
}

impl Model for Spy {
    fn name(&self) -> &str {
        "spy"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(self.clone())
    }
}

impl Conversation for Spy {
    fn stream(&mut self, history: &History) -> DeltaStream {
        self.sent.lock().unwrap().push(history.clone());
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.is_empty() { vec![] } else { replies.remove(0) };
        stream::iter(reply).boxed()
    }
}

/// Facts of a run, and everything that its readers saw, as text.
pub(crate) async fn seen(handle: &RunHandle) -> (Vec<Arc<Fact>>, String) {
    let (mut facts, mut all) = (Vec::new(), String::new());
    for mut events in [handle.events(), handle.audit()] {
        while let Some(event) = events.next().await {
            all.push_str(&format!("{:?}\n", event.kind));
            if let EventKind::Fact(fact) = event.kind {
                all.push_str(&json!(&*fact).to_string());
                facts.push(fact);
            }
        }
    }
    (facts, all)
}

/// What hooks did, each as the hook's name and the kind of its action.
pub(crate) fn acted(facts: &[Arc<Fact>]) -> Vec<String> {
    let acted = facts.iter().filter_map(|fact| match &**fact {
        Fact::HookActed(acted) => Some(format!("{} {}", acted.hook, json!(acted.action)["did"].as_str()?)),
        _ => None,
    });
    acted.collect()
}

/// A tool that notes the text that it is given.
fn notes(given: &Arc<Mutex<Vec<String>>>) -> FnTool {
    let given = Arc::clone(given);
    tool::from_fn("note", "notes", move |_cx, args: Value| {
        let given = Arc::clone(&given);
        async move {
            given.lock().unwrap().push(args["text"].as_str().unwrap_or_default().to_owned());
            Ok("noted")
        }
    })
    .with(|spec| {
        let text = json!({"type": "string"});
        spec.parameters(json!({"type": "object", "properties": {"text": text}, "required": ["text"]}))
    })
}

fn ask_with(name: &str, args: &Value) -> Reply {
    let mut reply = ask(&[name]);
    for delta in reply.iter_mut().flatten() {
        if let Delta::CallReady(call) = delta {
            call.args = args.to_string();
        }
    }
    reply
}

/// How a hook of the property gives its answer.
#[derive(Clone, Copy, Debug)]
enum Way {
    Ready,
    Awaits,
    Blocks,
}

/// What it says.
#[derive(Clone, Copy, Debug)]
enum Says {
    Nothing,
    Proceed,
    Append(char),
    Refuse,
    Answer,
}

struct Ordered(String, Way, Says);

impl Hooks for Ordered {
    fn name(&self) -> &str {
        &self.0
    }
    fn before_call(&self, call: &HookCall) -> HookResult<CallVerdict> {
        let verdict = match self.2 {
            Says::Nothing => return None,
            Says::Proceed => CallVerdict::Proceed,
            Says::Append(letter) => {
                CallVerdict::Change(json!({"text": format!("{}{letter}", call.args["text"].as_str()?)}))
            }
            Says::Refuse => CallVerdict::Refuse(format!("{} refuses", self.0)),
            Says::Answer => CallVerdict::Answer(format!("{} answers", self.0)),
        };
        match self.1 {
            Way::Ready => ready(verdict),
            Way::Awaits => from_future(async move {
                tokio::time::sleep(Duration::from_millis(3)).await;
                verdict
            }),
            Way::Blocks => blocking(move || verdict),
        }
    }
}

/// What the tool got, what the model got, and who acted.
type Expected = (Vec<String>, String, Vec<String>);

fn expected(hooks: &[(Way, Says)]) -> Expected {
    let (mut text, mut acted) = ("x".to_owned(), Vec::new());
    for (place, (_, says)) in hooks.iter().enumerate() {
        match says {
            Says::Nothing | Says::Proceed => {}
            Says::Append(letter) => {
                text.push(*letter);
                acted.push(format!("h{place} args_changed"));
            }
            Says::Refuse => {
                acted.push(format!("h{place} call_refused"));
                return (vec![], format!("h{place} refuses"), acted);
            }
            Says::Answer => {
                acted.push(format!("h{place} call_answered"));
                return (vec![], format!("h{place} answers"), acted);
            }
        }
    }
    (vec![text], "noted".into(), acted)
}

async fn observed(hooks: &[(Way, Says)]) -> Expected {
    let given = Arc::default();
    let spy = Spy::new([ask_with("note", &json!({"text": "x"})), say("end")]);
    let mut builder = spy.agent().tool(notes(&given));
    for (place, (way, says)) in hooks.iter().enumerate() {
        builder = builder.hooks(Ordered(format!("h{place}"), *way, *says));
    }
    let handle = builder.build().run("go").detach();
    let (facts, _) = seen(&handle).await;
    let outcome = handle.done().await;
    assert_eq!(outcome.answer(), Some("end"));
    let result = outcome.history().entries().iter().find_map(|entry| match &**entry {
        Message::Results { results } => Some(results[0].text.to_string()),
        _ => None,
    });
    let given: Vec<String> = given.lock().unwrap().clone();
    (given, result.unwrap(), acted(&facts))
}

/// S2.19: whatever hooks an agent has, and however they answer, each is asked in its turn about what those before it have
/// left, the first refusal or answer is the last word, and each change is recorded under its hook's name.
#[test]
fn hooks_are_asked_in_their_order() {
    let way = prop_oneof![Just(Way::Ready), Just(Way::Awaits), Just(Way::Blocks)];
    let says = prop_oneof![
        2 => Just(Says::Nothing), 2 => Just(Says::Proceed), 4 => prop::char::range('a', 'f').prop_map(Says::Append),
        1 => Just(Says::Refuse), 1 => Just(Says::Answer)
    ];
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut runner = TestRunner::new(ProptestConfig { cases: 64, ..ProptestConfig::default() });
    let ran = runner.run(&prop::collection::vec((way, says), 0..6), |hooks| {
        let found = runtime.block_on(observed(&hooks));
        prop_assert_eq!(found, expected(&hooks));
        Ok(())
    });
    ran.unwrap();
}

/// Puts a text in place of the one that the call has.
fn puts(text: &'static str) -> impl Hooks {
    hook::before_call("puts", move |_| CallVerdict::Change(json!({ "text": text })))
}

fn statuses(outcome: &Outcome) -> Vec<CallStatus> {
    outcome.receipt().calls.iter().map(|call| call.status).collect()
}

/// S4.22: arguments of a hook that do not fit the schema fail the call, which says whose they are; and the tool does not
/// run.
#[tokio::test(start_paused = true)]
async fn what_a_hook_changes_is_validated() {
    let given = Arc::default();
    let wrong = hook::before_call("wrong", |_| CallVerdict::Change(json!({"text": 7})));
    let spy = Spy::new([ask_with("note", &json!({"text": "x"})), say("end")]);
    let outcome = spy.agent().tool(notes(&given)).hooks(wrong).build().run("go").await;
    assert_eq!(statuses(&outcome), [CallStatus::Failed]);
    assert!(spy.sent()[1].contains("a hook changed the arguments of this call"), "{}", spy.sent()[1]);
    assert!(given.lock().unwrap().is_empty());
}

/// S4.22, S8.2: what a rule denies of a hook's arguments does not run, whatever was allowed before.
#[tokio::test(start_paused = true)]
async fn what_a_hook_changes_is_judged_by_the_rules() {
    for (text, ended) in [("rm", CallStatus::Denied), ("ls", CallStatus::Completed)] {
        let given = Arc::default();
        let rule = Rule::on("note", RuleAction::Deny("never".into())).when(|args| args["text"] == "rm");
        let spy = Spy::new([ask_with("note", &json!({"text": "x"})), say("end")]);
        let outcome = spy.agent().tool(notes(&given)).rule(rule).hooks(puts(text)).build().run("go").await;
        assert_eq!(statuses(&outcome), [ended], "{text}");
        assert_eq!(given.lock().unwrap().len(), usize::from(ended == CallStatus::Completed));
    }
}

/// An approver that notes what it is asked, and decides in turn.
struct Decides(Mutex<Vec<Decision>>, Arc<Mutex<Vec<Value>>>);

impl Approver for Decides {
    fn ask(&self, question: ApprovalRequest) -> futures_util::future::BoxFuture<'static, Decision> {
        self.1.lock().unwrap().push(question.args);
        let decision = self.0.lock().unwrap().remove(0);
        Box::pin(async move { decision })
    }
}

/// S4.22, S8.2, S8.8: a call that a person approved, and a hook changed, is asked about again with the hook's arguments;
/// and the hooks see again what the person then changes.
#[tokio::test(start_paused = true)]
async fn what_a_hook_changes_is_asked_again() {
    let (given, asked) = (Arc::default(), Arc::default());
    let texts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&texts);
    // It adds a mark to what has none.
    let marks = hook::before_call("marks", move |call| {
        let text = call.args["text"].as_str().unwrap_or_default().to_owned();
        noted.lock().unwrap().push(text.clone());
        if text.ends_with('!') {
            CallVerdict::Proceed
        } else {
            CallVerdict::Change(json!({"text": format!("{text}!")}))
        }
    });
    let decisions = vec![Decision::Approve, Decision::approve_with(json!({"text": "y"})), Decision::Approve];
    let approver = Decides(Mutex::new(decisions), Arc::clone(&asked));
    let spy = Spy::new([ask_with("note", &json!({"text": "x"})), say("end")]);
    let needs = notes(&given).with(|spec| spec.approval(ToolApproval::Required));
    let agent = spy.agent().tool(needs).hooks(marks);
    let agent = agent.approvals(ApprovalMode::Ask(Some(Arc::new(approver)), WithoutApprover::Deny));
    let outcome = agent.build().run("go").await;
    assert_eq!(statuses(&outcome), [CallStatus::Completed]);
    let asked: Vec<String> =
        asked.lock().unwrap().iter().map(|args| args["text"].as_str().unwrap().into()).collect();
    assert_eq!(asked, ["x", "x!", "y!"]);
    assert_eq!(*texts.lock().unwrap(), ["x", "y"]);
    assert_eq!(*given.lock().unwrap(), ["y!"]);
}

/// S4.22, S7.2: a change that was recorded holds after a resume: the call runs with it, and the hook sees it.
#[tokio::test(start_paused = true)]
async fn what_a_hook_changed_is_resumed() {
    let given = Arc::default();
    let calls = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&calls);
    let once = hook::before_call("once", move |call| {
        noted.lock().unwrap().push(call.args.to_string());
        if call.args["text"] == "x" {
            CallVerdict::Change(json!({"text": "ask"}))
        } else {
            CallVerdict::Proceed
        }
    });
    let rule = Rule::on("note", RuleAction::Ask).when(|args| args["text"] == "ask");
    let spy = Spy::new([ask_with("note", &json!({"text": "x"})), say("end")]);
    let agent = spy.agent().tool(notes(&given)).rule(rule).hooks(once);
    let agent = agent.approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend)).build();
    let Outcome::Suspended(waits) = agent.run("go").await else { panic!("it waits") };
    let question = &waits.approvals()[0];
    assert_eq!(question.args, json!({"text": "ask"}));
    let outcome: Outcome = Outcome::Suspended(waits.clone());
    let resumed = agent.resume_with(&outcome, vec![(question.id.clone(), Decision::Approve)]).await;
    assert_eq!((resumed.answer(), statuses(&resumed)), (Some("end"), vec![CallStatus::Completed]));
    assert_eq!(*given.lock().unwrap(), ["ask"]);
    assert_eq!(*calls.lock().unwrap(), [r#"{"text":"x"}"#, r#"{"text":"ask"}"#]);
}

fn redacts() -> impl Hooks {
    hook::on_result("redacts", |result| {
        let text = result.text.replace(SECRET, "[card]");
        if text == result.text { ResultVerdict::Proceed } else { ResultVerdict::Change(text.into()) }
    })
}

/// S2.20: what a hook takes out of a result is in no fact, no event, no request, not in the history and in no file of the
/// engine; the record says who changed it.
#[tokio::test(start_paused = true)]
async fn what_is_redacted_is_nowhere() {
    for padding in [0, 200_000] {
        let text = format!("{}{SECRET} is the card{}", "a".repeat(padding), "b".repeat(padding));
        let structured = json!({"card": SECRET});
        let look = does("look", move |_| {
            let text = text.clone();
            async move { Ok(text) }
        });
        let with_value = tool::from_fn("value", "gives a value", move |_cx, (): ()| {
            let structured = structured.clone();
            async move { Ok(Output::json(structured)) }
        });
        let spy = Spy::new([ask(&["look", "value"]), say("end")]);
        let handle = spy.agent().tool(look).tool(with_value).hooks(redacts()).build().run("go").detach();
        let (facts, all) = seen(&handle).await;
        let outcome = handle.done().await;
        let history = json!(outcome.history()).to_string();
        for place in [&all, &history, &spy.sent()[1], &json!(outcome.receipt()).to_string()] {
            assert!(!place.contains(SECRET), "{place}");
        }
        assert_eq!(acted(&facts), ["redacts result_changed", "redacts result_changed"]);
        let file = facts.iter().find_map(|fact| match &**fact {
            Fact::CallEnded { extent, .. } => {
                json!(extent)["truncated"]["file"].as_str().map(ToOwned::to_owned)
            }
            _ => None,
        });
        assert_eq!(file.is_some(), padding > 0);
        if let Some(file) = file {
            let kept = std::fs::read_to_string(&file).unwrap();
            assert!(kept.contains("[card]") && !kept.contains(SECRET));
            std::fs::remove_file(file).unwrap();
        }
    }
}

/// S2.20: the answer of a child run is a result too.
#[tokio::test(start_paused = true)]
async fn the_answer_of_a_child_run_is_seen_first() {
    let child = agent([say(&format!("it is {SECRET}"))]).build();
    let child = child.as_subagent("helper", "helps");
    let spy = Spy::new([ask_with("helper", &json!({"task": "look"})), say("end")]);
    let outcome = spy.agent().child(child).hooks(redacts()).build().run("go").await;
    assert_eq!(statuses(&outcome), [CallStatus::Completed]);
    assert!(spy.sent()[1].contains("it is [card]") && !spy.sent()[1].contains(SECRET), "{}", spy.sent()[1]);
}

/// A hook at a result that answers after a time.
struct Slow(Duration);

impl Hooks for Slow {
    fn on_result(&self, _: &HookedResult) -> HookResult<ResultVerdict> {
        let time = self.0;
        from_future(async move {
            tokio::time::sleep(time).await;
            ResultVerdict::Proceed
        })
    }
}

/// S2.20, S2.8: a result whose hook does not answer in time is withheld, and the run continues.
#[tokio::test(start_paused = true)]
async fn a_result_is_withheld_if_its_hook_is_overdue() {
    let bound = safepoint::Limits::default().callback_timeout;
    for (time, is_withheld) in [(bound / 2, false), (bound * 2, true)] {
        let look = does("look", |_| async { Ok(SECRET.into()) });
        let spy = Spy::new([ask(&["look"]), say("end")]);
        let handle = spy.agent().tool(look).hooks(Slow(time)).build().run("go").detach();
        let (facts, all) = seen(&handle).await;
        assert_eq!(statuses(&handle.done().await), [CallStatus::Completed], "it did complete");
        assert_eq!(all.contains(SECRET), !is_withheld);
        let withheld: &[&str] = if is_withheld { &["Slow result_withheld"] } else { &[] };
        assert_eq!(acted(&facts), withheld);
    }
}

/// S2.20, S2.7, S4.5: a stop waits for no hook: what a stopped call had given is used only where the hooks answer at once,
/// with the engine's own note behind it.
#[tokio::test(start_paused = true)]
async fn a_stopped_call_is_seen_first_too() {
    struct AtOnce;
    impl Hooks for AtOnce {
        fn on_result(&self, result: &HookedResult) -> HookResult<ResultVerdict> {
            assert_eq!(result.text, format!("so far {SECRET}"));
            ready(ResultVerdict::Change("so far [card]".into()))
        }
        fn on_progress(&self, _tool: &str, text: &str) -> Option<String> {
            // Only what is shown is tested elsewhere.
            Some(text.to_owned())
        }
    }
    let run = |slow: Option<Slow>| async move {
        let work = does("work", |cx| async move {
            cx.set_partial_output(format!("so far {SECRET}"));
            std::future::pending().await
        });
        let builder = agent([ask(&["work"])]).tool(work);
        let builder = if let Some(slow) = slow { builder.hooks(slow) } else { builder.hooks(AtOnce) };
        let handle = builder.build().run("go").detach();
        call_started(&handle).await;
        tokio::task::yield_now().await;
        let asked = Instant::now();
        handle.stop(StopRequest::now());
        let outcome = handle.done().await;
        let took = asked.elapsed();
        (json!(outcome.history()).to_string(), statuses(&outcome), took)
    };
    let (history, ended, took) = run(None).await;
    assert_eq!((ended, took), (vec![CallStatus::Stopped], Duration::ZERO));
    assert!(history.contains("so far [card]") && history.contains("effects are unknown"), "{history}");
    assert!(!history.contains(SECRET), "{history}");
    let (history, ended, took) = run(Some(Slow(Duration::from_secs(3)))).await;
    assert_eq!(ended, [CallStatus::Stopped]);
    assert!(took <= Duration::from_millis(50), "{took:?}");
    assert!(history.contains("withheld") && history.contains("effects are unknown"), "{history}");
    assert!(!history.contains(SECRET), "{history}");
}

/// S2.20, S2.16: a hook that panics over a result fails the run, and nothing of the result is used.
#[tokio::test(start_paused = true)]
async fn a_panic_over_a_result_withholds_it() {
    let look = does("look", |_| async { Ok(SECRET.into()) });
    let panics = hook::on_result("panics", |_| panic!("no"));
    let handle = agent([ask(&["look"]), say("end")]).tool(look).hooks(panics).build().run("go").detach();
    let (_, all) = seen(&handle).await;
    let Outcome::Failed(error) = handle.done().await else { panic!("it fails") };
    assert_eq!(error.code(), "callback");
    assert!(error.to_string().contains("panics"), "{error}");
    assert!(!all.contains(SECRET), "{all}");
}

/// S2.20: what a hook makes of a call's progress is what is shown and kept.
#[tokio::test(start_paused = true)]
async fn progress_is_shown_as_hooks_leave_it() {
    let work = does("work", |cx| async move {
        cx.progress(format!("reading {SECRET}\n"));
        std::future::pending().await
    });
    let filter = hook::on_text("no-cards", |line| line.replace(SECRET, "[card]"));
    let handle = agent([ask(&["work"])]).tool(work).hooks(filter).build().run("go").detach();
    until(&handle, |kind| matches!(kind, EventKind::Progress { text, .. } if text == "reading [card]\n"))
        .await;
    handle.stop(StopRequest::now());
    handle.quiet().await;
    assert!(!seen(&handle).await.1.contains(SECRET));
}

/// S2.19, S5.1: what a hook sends in a call's place is sent once; the conversation is as it was, and the next hook sees the
/// change.
#[tokio::test(start_paused = true)]
async fn what_is_sent_may_differ_from_what_is_kept() {
    let redact = |history: &History| {
        let mut sent = History::new();
        for entry in history.entries() {
            match &**entry {
                Message::User(message) => {
                    sent.push(Message::User(message.text.replace(SECRET, "[card]").into()));
                }
                other => sent.push(other.clone()),
            }
        }
        sent
    };
    let saw = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&saw);
    let next = hook::before_model("sees", move |_, history| {
        noted.lock().unwrap().push(json!(history.entries()).to_string());
        ModelVerdict::Proceed
    });
    let spy = Spy::new([ask(&["t"]), say("end")]);
    let changes = hook::before_model("redacts", move |_, history| ModelVerdict::Send(redact(history)));
    let agent = spy.agent().hooks(changes).hooks(next).tool(does("t", |_| async { Ok("r".into()) })).build();
    let handle = agent.run(format!("my card is {SECRET}")).detach();
    let (facts, _) = seen(&handle).await;
    let outcome = handle.done().await;
    assert_eq!(outcome.answer(), Some("end"));
    assert_eq!(acted(&facts), ["redacts request_changed"; 2]);
    for sent in spy.sent().iter().chain(saw.lock().unwrap().iter()) {
        assert!(sent.contains("[card]") && !sent.contains(SECRET), "{sent}");
    }
    assert!(json!(outcome.history()).to_string().contains(SECRET), "what is kept is as it was said");
    let digests: Vec<bool> = facts
        .iter()
        .filter_map(|fact| match &**fact {
            Fact::HookActed(acted) => match &acted.action {
                HookAction::RequestChanged { before, after, .. } => Some(before != after),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(digests, [true, true]);
}

/// S2.19: a conversation that no provider would take is repaired before it is sent, and an empty one fails the run.
#[tokio::test(start_paused = true)]
async fn what_a_hook_sends_is_valid() {
    let spy = Spy::new([ask(&["t"]), say("end")]);
    // From the second round on it leaves the results out.
    let breaks = hook::before_model("breaks", |_, history| {
        let mut sent = History::new();
        let kept = history.entries().iter().filter(|entry| !matches!(***entry, Message::Results { .. }));
        kept.for_each(|entry| sent.push((**entry).clone()));
        ModelVerdict::Send(sent)
    });
    let agent = spy.agent().hooks(breaks).tool(does("t", |_| async { Ok("r".into()) })).build();
    assert_eq!(agent.run("go").await.answer(), Some("end"));
    assert!(spy.sent()[1].contains("no result is recorded for this call"), "{}", spy.sent()[1]);
    let empties = hook::before_model("empties", |_, _| ModelVerdict::Send(History::new()));
    let Outcome::Failed(error) = Spy::new([say("end")]).agent().hooks(empties).build().run("go").await else {
        panic!("it fails")
    };
    assert_eq!(error.code(), "callback");
}

/// S2.19: a hook ends the run with an answer, and no model is called.
#[tokio::test(start_paused = true)]
async fn a_hook_ends_the_run_with_an_answer() {
    let spy = Spy::new([ask(&["t"])]);
    let ends = hook::before_model("ends", |round, _| match round {
        2 => ModelVerdict::Answer("that is enough".into()),
        _ => ModelVerdict::Proceed,
    });
    let agent = spy.agent().hooks(ends).tool(does("t", |_| async { Ok("r".into()) })).build();
    let handle = agent.run("go").detach();
    let (facts, _) = seen(&handle).await;
    let outcome = handle.done().await;
    assert_eq!(
        (outcome.answer(), outcome.receipt().rounds, spy.sent().len()),
        (Some("that is enough"), 1, 1)
    );
    assert_eq!(acted(&facts), ["ends run_answered"]);
    assert_eq!(outcome.history().last_text().as_deref(), Some("that is enough"));
}

/// A hook that thinks until it is let, and then says this.
struct Gated {
    asked: Arc<Semaphore>,
    go: Arc<Semaphore>,
    model: Option<fn() -> ModelVerdict>,
    call: Option<fn() -> CallVerdict>,
}

impl Gated {
    fn says<T: Send + 'static>(&self, verdict: Option<fn() -> T>) -> HookResult<T> {
        let (verdict, asked, go) = (verdict?, Arc::clone(&self.asked), Arc::clone(&self.go));
        from_future(async move {
            asked.add_permits(1);
            if let Ok(permit) = go.acquire().await {
                permit.forget();
            }
            verdict()
        })
    }
}

impl Hooks for Gated {
    fn before_model(&self, _: u32, _: &History) -> HookResult<ModelVerdict> {
        self.says(self.model)
    }
    fn before_call(&self, _: &HookCall) -> HookResult<CallVerdict> {
        self.says(self.call)
    }
}

/// S2.18, S2.19, S2.14: whatever a hook answers after a stop was requested, nothing begins and nothing is changed; before
/// the stop its answer counts. For each verdict, each stop, and either order.
#[tokio::test(start_paused = true)]
async fn no_verdict_goes_ahead_of_a_stop() {
    let models: [fn() -> ModelVerdict; 4] = [
        || ModelVerdict::Proceed,
        || ModelVerdict::Send(History::new()),
        || ModelVerdict::Answer("end".into()),
        || ModelVerdict::Refuse("no".into()),
    ];
    let calls: [fn() -> CallVerdict; 4] = [
        || CallVerdict::Proceed,
        || CallVerdict::Change(json!({"text": "y"})),
        || CallVerdict::Answer("r".into()),
        || CallVerdict::Refuse("no".into()),
    ];
    let verdicts =
        models.map(|model| (Some(model), None)).into_iter().chain(calls.map(|call| (None, Some(call))));
    for (model, call) in verdicts {
        for request in [|| StopRequest::at(SafePoints::ANY), StopRequest::now] {
            let (asked, go) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
            let gated = Gated { asked: Arc::clone(&asked), go: Arc::clone(&go), model, call };
            let given = Arc::default();
            let spy = Spy::new([ask_with("note", &json!({"text": "x"})), say("end")]);
            let handle = spy.agent().tool(notes(&given)).hooks(gated).build().run("go").detach();
            asked.acquire().await.unwrap().forget();
            handle.stop(request());
            go.add_permits(9);
            let (facts, _) = seen(&handle).await;
            let outcome = handle.done().await;
            assert_eq!(outcome.ending(), Ending::Stopped, "{:?}", outcome.receipt());
            assert_eq!((acted(&facts), spy.sent().len()), (vec![], usize::from(call.is_some())));
            assert!(given.lock().unwrap().is_empty());
            assert!(statuses(&outcome).iter().all(|status| *status == CallStatus::NotStarted));
        }
    }
}

/// S1.10: the stop of a hook has the hook's name.
#[tokio::test(start_paused = true)]
async fn a_stop_of_a_hook_names_it() {
    let stops = hook::before_call("budget", |_| CallVerdict::Stop(StopRequest::now()));
    let work = does("t", |_| async { Ok("r".into()) }).with(|spec| spec.on_stop(OnStop::Drop));
    let outcome = agent([ask(&["t"])]).tool(work).hooks(stops).build().run("go").await;
    let reason = &outcome.receipt().stop.as_ref().unwrap().reason;
    assert_eq!(
        (reason.code.as_str(), json!(reason)["actor"].to_string()),
        ("hook", "\"hook budget\"".into())
    );
}
