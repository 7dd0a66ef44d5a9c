//! An outcome as a `Result`, its exit code, and what a failure says of itself.

use std::{error::Error as _, io, iter, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, History, Model, Outcome, Reason, StopRequest,
    approval::{ApprovalMode, ToolApproval, WithoutApprover},
    hook::{HookResult, Hooks, ModelVerdict, from_future},
    log::{Log, LogError, RunRecord},
    message::UserMessage,
    model::{Conversation, DeltaStream, ModelError, ModelErrorKind, ModelSpec},
    outcome::{ErrorKind, NotDone, RunError},
    receipt::Ending,
    secret::Secrets,
    stop::Code,
    tool::{EffectClass, OnToolFailure},
};

use crate::world::{Reply, agent, ask, does, say};

fn fails(error: ModelError) -> Reply {
    vec![Err(error)]
}

fn of(outcome: &Outcome) -> &RunError {
    let Outcome::Failed(error) = outcome else { panic!("{outcome:?}") };
    error
}

/// S3.10: the answer is `Ok`, so that `?` works where only an answer is of use; of anything else everything is kept, and it
/// can be resumed as the outcome that it was.
#[tokio::test(start_paused = true)]
async fn a_result_keeps_what_the_outcome_has() {
    async fn ask_for(agent: &Agent) -> Result<String, Box<dyn std::error::Error>> {
        Ok(agent.run("go").await.into_result()?.into_value())
    }
    assert_eq!(ask_for(&agent([say("hi")]).build()).await.unwrap(), "hi");
    let failed = ask_for(&agent([fails(ModelError::new(ModelErrorKind::Broken, "cut"))]).build()).await;
    assert!(
        matches!(failed.unwrap_err().downcast_ref(), Some(NotDone::Failed(error)) if error.code() == "provider")
    );

    let work = does("work", |cx| async move {
        cx.stop_run(StopRequest::now().with_reason(Reason::user("enough")));
        Ok("worked".into())
    });
    let stops =
        agent([ask(&["work"]), say("resumed")]).tool(work.with(|spec| spec.effect(EffectClass::ReadOnly)));
    let stops = stops.build();
    let not_done = stops.run("go").await.into_result().unwrap_err();
    assert!(matches!(not_done, NotDone::Stopped(_)), "{not_done:?}");
    assert_eq!(not_done.ending(), Ending::Stopped);
    assert!(!not_done.history().entries().is_empty());
    let receipt = not_done.receipt().to_string();
    assert!(receipt.starts_with("Stopped by user"), "{receipt}");
    assert_eq!((not_done.to_string(), format!("{not_done:?}")), (receipt.clone(), receipt));
    assert!(not_done.source().is_none());
    let outcome: Outcome = not_done.into();
    assert_eq!(stops.resume(&outcome).await.answer(), Some("resumed"));
}

/// S3.10: the code of an ending is that of `safepoint run`; of several requests the first one counts.
#[tokio::test(start_paused = true)]
async fn each_ending_has_its_exit_code() {
    async fn stopped_by(reasons: Vec<Reason>) -> u8 {
        let handle = agent([]).build().run("go").detach();
        for reason in reasons {
            handle.stop(StopRequest::now().with_reason(reason));
        }
        let outcome = handle.done().await;
        assert_eq!(outcome.ending(), Ending::Stopped);
        assert_eq!(outcome.exit_code(), outcome.receipt().exit_code());
        outcome.exit_code()
    }
    assert_eq!(agent([say("hi")]).build().run("go").await.exit_code(), 0);
    let failed = agent([fails(ModelError::new(ModelErrorKind::Broken, "cut"))]).build().run("go").await;
    assert_eq!((failed.exit_code(), failed.into_result().unwrap_err().exit_code()), (1, 1));
    assert_eq!(stopped_by(vec![Reason::user("enough")]).await, 10);
    assert_eq!(stopped_by(vec![Reason::sigint()]).await, 130);
    assert_eq!(stopped_by(vec![Reason::sigterm(), Reason::sigint()]).await, 143);
    assert_eq!(stopped_by(vec![Reason::user("enough"), Reason::sigterm()]).await, 10);
    let cascade = Reason::new(Code::PARENT).caused_by(&Reason::sigint());
    assert_eq!(stopped_by(vec![cascade]).await, 130, "the first reason of the cascade");
}

/// S3.10: a suspended run ends a program with its own code.
#[tokio::test(start_paused = true)]
async fn a_suspended_run_has_its_code() {
    let work = does("work", |_| async { Ok("worked".into()) });
    let work = work.with(|spec| spec.approval(ToolApproval::Required));
    let asks = agent([ask(&["work"])])
        .approvals(ApprovalMode::Ask(None, WithoutApprover::Suspend))
        .tool(work)
        .build();
    let outcome = asks.run("go").await;
    assert_eq!((outcome.ending(), outcome.exit_code()), (Ending::Suspended, 11));
    let not_done = outcome.into_result().unwrap_err();
    assert!(matches!(&not_done, NotDone::Suspended(waiting) if waiting.approvals().len() == 1));
    assert_eq!(not_done.exit_code(), 11);
}

struct Refuses;

impl Hooks for Refuses {
    fn before_model(&self, _round: u32, _history: &History) -> HookResult<ModelVerdict> {
        from_future(async { ModelVerdict::Refuse("not today".into()) })
    }
}

struct Panics;

impl Model for Panics {
    fn name(&self) -> &str {
        "panics"
    }
    fn open(&self, _: ModelSpec) -> Box<dyn Conversation> {
        Box::new(Self)
    }
}

impl Conversation for Panics {
    fn stream(&mut self, _: &History) -> DeltaStream {
        panic!("oh")
    }
}

/// S3.11: wherever a run fails, its failure says of which kind it is.
#[tokio::test(start_paused = true)]
async fn a_failure_has_a_kind() {
    let refused = agent([]).hooks(Refuses).build().run("go").await;
    assert_eq!((of(&refused).kind(), of(&refused).code()), (ErrorKind::Refused, "callback"));
    let panicked = Agent::builder(Panics).build().run("go").await;
    assert_eq!((of(&panicked).kind(), of(&panicked).code()), (ErrorKind::Callback, "provider"));
    let blank = agent([]).build().run(UserMessage::from(" ")).await;
    assert_eq!(of(&blank).kind(), ErrorKind::InvalidRequest);
    let broken = does("work", |_| async { Err(io::Error::other("no disk").into()) })
        .with(|spec| spec.on_failure(OnToolFailure::EndRun));
    let tool = agent([ask(&["work"])]).tool(broken).build().run("go").await;
    assert_eq!(of(&tool).kind(), ErrorKind::Tool);
    for (kind, expected) in [
        (ModelErrorKind::Unauthorized, ErrorKind::Authentication),
        (ModelErrorKind::NotFound, ErrorKind::NotFound),
        (ModelErrorKind::Refused, ErrorKind::InvalidRequest),
        (ModelErrorKind::ContextWindow, ErrorKind::TooLong),
        (ModelErrorKind::Overloaded, ErrorKind::Overloaded),
        (ModelErrorKind::StreamIdle, ErrorKind::Timeout),
        (ModelErrorKind::Malformed, ErrorKind::Malformed),
        (ModelErrorKind::ContentFilter, ErrorKind::Refused),
        (ModelErrorKind::Truncated, ErrorKind::Truncated),
    ] {
        let outcome = agent([fails(ModelError::new(kind, "so"))]).build().run("go").await;
        assert_eq!(of(&outcome).kind(), expected, "{kind:?}");
    }
    assert!(ErrorKind::Overloaded.is_transient() && !ErrorKind::Authentication.is_transient());
}

/// S3.11: the status, the wait that was asked for, and the error value that caused it are the run's too.
#[tokio::test(start_paused = true)]
async fn a_failure_says_what_its_model_error_said() {
    let refused = || io::Error::new(io::ErrorKind::ConnectionRefused, "refused, with hunter22");
    let error = || {
        ModelError::new(ModelErrorKind::RateLimited, "slow down")
            .with_status(429)
            .with_retry_after(Duration::from_secs(20))
            .with_source(refused())
    };
    let outcome = agent([fails(error())]).build().run("go").await;
    let failed = of(&outcome);
    assert_eq!(
        (failed.kind(), failed.status(), failed.retry_after()),
        (ErrorKind::RateLimit, Some(429), Some(Duration::from_secs(20)))
    );
    let cause = failed.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(cause.kind(), io::ErrorKind::ConnectionRefused);
    let not_done = outcome.clone().into_result().unwrap_err();
    assert!(not_done.source().unwrap().is::<io::Error>());

    let secrets = Secrets::of([("KEY".to_owned(), "hunter22".to_owned())]);
    let cleaned = agent([fails(error())]).secrets(secrets).build().run("go").await;
    let source = of(&cleaned).source().unwrap();
    assert_eq!(source.to_string(), "refused, with [secret KEY]");
    assert!(!format!("{cleaned:?}").contains("hunter22"));
}

struct Full;

impl Log for Full {
    fn append(&self, _: RunRecord) -> BoxFuture<'_, Result<u64, LogError>> {
        Box::pin(async { Err(LogError::new(io::Error::new(io::ErrorKind::StorageFull, "disk full"))) })
    }
    fn read(&self) -> BoxFuture<'_, Result<Vec<RunRecord>, LogError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// S3.11: the chain of a log that failed leads to what its store says.
#[tokio::test(start_paused = true)]
async fn a_failure_of_the_log_leads_to_its_cause() {
    let outcome = agent([say("hi")]).build().run_recorded(Arc::new(Full), History::new(), "go").await;
    let failed = of(&outcome);
    assert_eq!(failed.kind(), ErrorKind::Store);
    let full = iter::successors(failed.source(), |&cause| cause.source())
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::StorageFull);
    assert!(full, "{failed:?}");
}
