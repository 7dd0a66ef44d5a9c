//! One run has another window than its agent.

use safepoint::{
    Agent, History, Outcome,
    event::{EventKind, Fact, HookAction},
    history::Message,
    hook::{HookResult, Hooks, ModelVerdict, ready},
    outcome::ErrorKind,
    raw::remote::RemoteSpec,
    secret::Secrets,
    window::Window,
};

use crate::{
    elsewhere::Elsewhere,
    hook_changes::Spy,
    too_long::{Takes, long},
    world::{Scripted, agent, say},
};

/// Holds some twenty rounds, and not forty.
fn narrow() -> Window {
    Window::of(1_000).keep_for_answer(100)
}

fn wide() -> Window {
    Window::of(1_000_000)
}

fn failure(outcome: &Outcome) -> (&str, ErrorKind, Option<&str>) {
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    (error.code(), error.kind(), error.hint())
}

/// S4.20, S12.2: the run's window counts for its requests, with its policy, in place of the agent's and where the agent has
/// none; another run of the agent has the agent's again.
#[tokio::test]
async fn a_run_has_its_own_window() {
    let model = Takes::new(usize::MAX, [say("short"), say("long")]);
    let agent = model.agent().build();
    let short = agent.run_on(long(40), "now?").window(narrow().drop_oldest()).await;
    assert_eq!(short.answer(), Some("short"));
    let whole = agent.run_on(long(40), "now?").await;
    assert_eq!(whole.answer(), Some("long"));
    assert!(short.history().omitted().is_some() && whole.history().omitted().is_none());
    let sent = model.sent();
    assert!(sent[0] < 40 && sent[1] == 81, "{sent:?}");

    let agent = Takes::new(usize::MAX, [say("ok")]).agent().window(narrow()).build();
    assert_eq!(agent.run_on(long(40), "now?").window(wide()).await.answer(), Some("ok"));
    assert_eq!(failure(&agent.run_on(long(40), "now?").await).0, "context_window");
}

/// S4.20: a resume from the outcome has the window of the run again, and what the resume is given replaces it.
#[tokio::test]
async fn a_resume_has_the_window_of_its_run() {
    let model = Takes::new(usize::MAX, [say("ok")]);
    let agent = model.agent().build();
    let refused = agent.run_on(long(40), "now?").window(narrow()).await;
    assert_eq!((failure(&refused).0, model.sent().len()), ("context_window", 0));
    let again = agent.resume(&refused).await;
    assert_eq!((failure(&again).0, model.sent().len()), ("context_window", 0));
    assert_eq!(agent.resume(&again).window(wide()).await.answer(), Some("ok"));
}

/// S4.20, S12.11: its policy is applied where the provider refuses a request as too long, too.
#[tokio::test]
async fn the_window_of_a_run_recovers_from_a_prompt_that_is_too_long() {
    let model = Takes::new(50, [say("ok")]);
    let agent = model.agent().build();
    let outcome = agent.run_on(long(40), "now?").window(wide().drop_oldest()).await;
    assert_eq!(outcome.answer(), Some("ok"));
    assert_eq!((model.sent().len(), model.sent()[0]), (2, 81));
}

/// S4.20: a window without room, and one for a remote agent, fail the run before anything is sent, and say what to do.
#[tokio::test]
async fn a_window_that_cannot_be_used_fails_the_run() {
    let no_room = agent([say("no")]).build().run("go").window(Window::of(100).keep_for_answer(100)).await;
    let remote = Agent::remote(Elsewhere(RemoteSpec::new("there", "works", "test:there"))).build();
    for outcome in [no_room, remote.run("go").window(wide()).await] {
        let (code, _kind, hint) = failure(&outcome);
        assert!(code == "setup" && hint.is_some(), "{outcome:?}");
        assert!(outcome.receipt().model.is_none() && outcome.receipt().calls.is_empty());
    }
}

/// S8.10, S12.2: a summary by another model than the agent's tells none of the agent's secrets.
#[tokio::test]
async fn a_summary_by_another_model_tells_no_secret() {
    let secrets = || Secrets::of([("key".to_owned(), "hunter2hunter2".to_owned())]);
    let window = || narrow().summarise_with(Scripted::new([say("they said hunter2hunter2")]));
    let of_the_agent = agent([say("ok")]).secrets(secrets()).window(window()).build();
    let of_the_run = agent([say("ok")]).secrets(secrets()).build();
    for run in [of_the_agent.run_on(long(40), "now?"), of_the_run.run_on(long(40), "now?").window(window())] {
        let outcome = run.await;
        assert_eq!(outcome.answer(), Some("ok"));
        let sent = format!("{:?}", outcome.history().sent());
        assert!(sent.contains("they said [secret key]") && !sent.contains("hunter2"), "{sent}");
    }
}

/// Has its own request for a summary.
struct Asks(&'static str);

impl Hooks for Asks {
    fn before_summary(&self, _round: u32, request: &History) -> HookResult<ModelVerdict> {
        let before = format!("{:?}", request.entries());
        let mut other = History::new();
        let text = if before.contains("question 0") { self.0 } else { "there is no conversation to sum up" };
        other.push(Message::User(text.into()));
        ready(ModelVerdict::Send(other))
    }
}

/// S2.19: what is sent for a summary is shown to the hooks first, and is what they make of it; the change is recorded.
#[tokio::test]
async fn a_hook_changes_what_is_sent_for_a_summary() {
    let spy = Spy::new([say("short")]);
    let window = narrow().summarise_with(spy.clone());
    let agent = agent([say("ok")]).hooks(Asks("sum up this instead")).window(window).build();
    let handle = agent.run_on(long(40), "now?").detach();
    assert_eq!(handle.done().await.answer(), Some("ok"));
    let sent = spy.sent();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].contains("sum up this instead") && !sent[0].contains("question"), "{}", sent[0]);
    let mut events = handle.events();
    let mut changed = 0;
    while let Some(event) = events.next().await {
        let EventKind::Fact(fact) = &event.kind else { continue };
        let Fact::HookActed(acted) = &**fact else { continue };
        changed += u32::from(matches!(acted.action, HookAction::RequestChanged { messages: 1, .. }));
    }
    assert_eq!(changed, 1);
}
