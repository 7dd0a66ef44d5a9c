//! What the values of a scope say of themselves: to people, to a log, and to readers of the log.

use std::{
    collections::HashSet,
    error::Error,
    fmt,
    panic::catch_unwind,
    time::{Duration, SystemTime},
};

use safepoint_scope::{
    Actor, Code, DEFAULT_CLEANUP_CAP, Effect, Failure, Grace, Halt, InvalidRequest, Mode, Reach, Reason,
    SafePoints, Scope, StopRequest, secs,
};

struct Step;
impl Effect for Step {
    type Announcement = ();
}

/// S1.10: who asked is written down and read back, a person by name where that is known; an unknown actor is `somebody`
/// elsewhere.
#[test]
fn an_actor_goes_to_text_and_back() {
    for (actor, text) in [
        (Actor::Person, "person"),
        (Actor::Named("ada".into()), "person ada"),
        (Actor::Program, "program"),
        (Actor::Engine, "engine"),
        (Actor::Parent, "parent"),
        (Actor::Tool("grep".into()), "tool grep"),
        (Actor::Hook("audit".into()), "hook audit"),
        (Actor::Remote("peer".into()), "remote peer"),
    ] {
        assert_eq!((actor.to_string().as_str(), &Actor::from(text)), (text, &actor));
    }
    for text in ["somebody", "program of mine", "parent of all"] {
        assert_eq!(Actor::from(text), Actor::Remote(text.into()));
    }
}

/// S1.10: a reason is code, actor, text, time and what led to it, and each is shown.
#[test]
fn a_reason_tells_all_that_it_holds() {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
    let first = Reason::user("ctrl-c").asked_at(at);
    let next =
        Reason::new(Code::from("odd".to_owned())).with_actor(Actor::Engine).with_text("so").caused_by(&first);
    assert_eq!((first.code().as_str(), first.text(), first.at()), ("user", "ctrl-c", at));
    assert_eq!((first.actor(), first.cause()), (&Actor::Person, None));
    assert_eq!((next.cause(), next.root()), (Some(&first), &first));
    assert_eq!((next.code().to_string(), format!("{:?}", next.code())), ("odd".into(), "odd".into()));
    assert_eq!(format!("{next:?}"), r#"Reason(odd by engine: "so")"#);
    assert_eq!(Reason::new(Code::LOOP).text(), "");
}

/// S1.10: no two codes share a name.
#[test]
fn each_code_has_its_own_name() {
    let codes = [
        Code::USER,
        Code::PREEMPTED,
        Code::PARENT,
        Code::SHUTDOWN,
        Code::LEASE,
        Code::DISCONNECT,
        Code::TOOL,
        Code::HOOK,
        Code::WALL_TIME,
        Code::MAX_ROUNDS,
        Code::MAX_TOKENS,
        Code::MAX_COST,
        Code::OUTPUT_BYTES,
        Code::LOOP,
        Code::TIMEOUT,
    ];
    assert_eq!(codes.iter().map(Code::as_str).collect::<HashSet<_>>().len(), codes.len());
}

/// S1.1, S1.3: a set of safe points is written down and read back, in whatever order and however often each is named.
#[test]
fn safe_points_go_to_text_and_back() {
    let (model, started, all) =
        (SafePoints::AFTER_MODEL, SafePoints::AFTER_STARTED_CALLS, SafePoints::AFTER_ALL_CALLS);
    for (points, text) in [
        (model, "after-model"),
        (started, "after-started-calls"),
        (all, "after-all-calls"),
        (model | all, "after-model,after-all-calls"),
        (SafePoints::ANY, "after-model,after-started-calls,after-all-calls"),
    ] {
        assert_eq!((points.to_string().as_str(), text.parse()), (text, Ok(points)));
        assert_eq!(format!("{points:?}"), format!("SafePoints({text})"));
    }
    assert_eq!(" after-all-calls ,, after-model,after-all-calls".parse(), Ok(model | all));
    assert_eq!("after-model,any".parse(), Ok(SafePoints::ANY));
    assert_eq!((model | model, model.or(started)), (model, started | model));
    assert!(model.intersects(SafePoints::ANY) && !model.intersects(started | all));
}

/// S1.1: a request tells what it asks: the mode, how far, the grace, the cap and the reason.
#[test]
fn a_request_tells_what_it_asks() {
    let now = StopRequest::now();
    assert_eq!((now.mode(), now.grace(), now.reach()), (Mode::Now, None, Reach::Root));
    assert_eq!((now.cleanup_cap(), now.reason()), (DEFAULT_CLEANUP_CAP, None));
    let within = StopRequest::at_within(SafePoints::AFTER_MODEL, Grace::from_millis(5));
    let grace = within.grace().map(Grace::as_duration);
    assert_eq!((within.mode(), grace), (Mode::At(SafePoints::AFTER_MODEL), Some(Duration::from_millis(5))));
    for graceful in [StopRequest::graceful(secs(3)), StopRequest::graceful_unbounded()] {
        assert_eq!((graceful.mode(), graceful.reach()), (Mode::At(SafePoints::ANY), Reach::Tree));
    }
    assert_eq!(StopRequest::graceful(secs(3)).grace(), Grace::try_from(Duration::from_secs(3)).ok());
    assert_eq!(StopRequest::graceful_unbounded().grace(), None);
    let capped = now.with_cleanup_cap(Duration::ZERO).with_reason(Reason::user("enough"));
    assert_eq!((capped.cleanup_cap(), capped.reason().map(Reason::text)), (Duration::ZERO, Some("enough")));
    assert_eq!(StopRequest::at(SafePoints::ANY).with_reach(Reach::Tree).reach(), Reach::Tree);
}

/// S1.6: a grace of nothing is not built, in any unit.
#[test]
fn a_grace_of_nothing_is_not_built() {
    for zero in [|| Grace::from_secs(0), || Grace::from_millis(0), || secs(0)] {
        assert!(catch_unwind(zero).is_err());
    }
    assert_eq!(
        Grace::try_from(Duration::ZERO).map_err(|error| error.to_string().contains("zero")),
        Err(true)
    );
}

/// A failure with another behind it.
#[derive(Debug)]
struct Outer(InvalidRequest);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outer")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// S4.1, S4.6: a failure says all of its error, and tells apart what it could not reach from what failed.
#[test]
fn a_failure_says_its_sources_and_its_kind() {
    let inner = "".parse::<SafePoints>().unwrap_err();
    let whole = format!("outer: {inner}");
    let Halt::Failed(failure) = Halt::from(Outer(inner)) else { panic!("an error is a failure") };
    assert_eq!((failure.to_string(), format!("{failure:?}")), (whole.clone(), format!("Failure({whole})")));
    assert!(failure.as_error().source().is_some());
    assert!(!failure.is_unreachable() && !failure.had_no_effect() && !failure.is_by_time_limit());
    assert!(!failure.is_denied());
    let denied = Failure::new("not this").denied();
    assert!(denied.is_denied() && !denied.is_unreachable());
    let away = failure.unreachable();
    assert!(away.is_unreachable() && away.had_no_effect() && !away.is_by_time_limit());
    assert!(matches!(Halt::from(away), Halt::Failed(failure) if failure.is_unreachable()));
}

/// S2.14: the debug form of a stop or a permit says which it is.
#[test]
fn stops_and_permits_are_distinct() {
    let (scope, handle) = Scope::root();
    let permit = scope.pass::<Step>(SafePoints::ANY, &()).expect("nothing is asked");
    assert!(format!("{permit:?}").starts_with("Permit<") && format!("{permit:?}").contains("Step"));
    handle.stop(StopRequest::now().with_reason(Reason::user("enough")));
    assert!(permit.scope().is_stopping() && permit.into_scope().is_stopping());
    let stop = scope.stopping().expect("it is asked");
    assert_eq!(format!("{stop:?}"), r#"Stop(Reason(user by person: "enough"))"#);
}

/// S2.14, S4.18: `?` takes errors of every type into a halt, each with its causes, and a stop beside them as a stop.
#[tokio::test]
async fn every_error_is_a_failure_and_a_stop_is_none() {
    #[derive(Debug, thiserror::Error)]
    #[error("no route: {0}")]
    struct SaysItself(#[source] std::num::ParseIntError);
    fn number() -> std::num::ParseIntError {
        "x".parse::<u8>().unwrap_err()
    }
    fn said(fails: impl FnOnce() -> Result<(), Halt>) -> String {
        let Err(Halt::Failed(failure)) = fails() else { panic!("an error is a failure") };
        failure.to_string()
    }
    let digit = "invalid digit found in string";
    assert_eq!(said(|| Ok(Err(number())?)), digit);
    assert_eq!(
        said(|| Ok(Err(SaysItself(number()))?)),
        format!("no route: {digit}"),
        "what was said is not said again"
    );
    assert_eq!(
        said(|| Ok(Err(anyhow::Error::new(number()).context("no route"))?)),
        format!("no route: {digit}")
    );
    assert_eq!(said(|| Ok(Err(Box::<dyn std::error::Error + Send + Sync>::from(number()))?)), digit);
    assert_eq!(said(|| Ok(Err("a text")?)), "a text");
    assert_eq!(said(|| Ok(Err(String::from("a text"))?)), "a text");

    let (scope, stop) = Scope::root();
    stop.stop(StopRequest::now());
    let halted = async {
        let _: u8 = "1".parse()?;
        scope.run(std::future::pending::<()>()).await?;
        Ok::<(), Halt>(())
    };
    assert!(matches!(halted.await, Err(Halt::Stop(_))));
}
