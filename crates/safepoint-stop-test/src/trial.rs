//! One trial: a target is brought to a moment, stopped, watched, and asked something else.

use std::time::Duration;

use futures_util::future::{Either, select};
use serde::Serialize;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    claims::{Claims, Said},
    door::{Started, Target, Told, wrote},
    facts::{Facts, Next, WorkKind},
    judge::{Judged, VerdictLimits, judge},
    scenario::{Scenario, StopMoment},
    stage::{Scene, StageError, TrialStage},
};

/// What came of one trial.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Trial {
    /// What was so.
    pub facts: Facts,
    /// What was said.
    pub claims: Claims,
    /// The verdict.
    pub judged: Judged,
}

/// How long it is watched whether work that ends late ends, beyond what counts as late.
const BEYOND: Duration = Duration::from_millis(250);

/// How long one may take to say that it does not ask a busy model again: it is asked to wait for twice as long.
const GIVES_UP: Duration = Duration::from_secs(1);

/// Stops a target once, at the moment of a scenario, in this way.
///
/// # Errors
/// Why the target was not brought there: then nothing is said about its stop.
///
/// # Cancel safety
/// What the target had started is ended.
pub async fn play(
    target: &Target,
    scenario: &Scenario,
    way: &str,
    limits: &VerdictLimits,
) -> Result<Trial, StageError> {
    if let Some(why) = target.lacks(scenario) {
        return Err(StageError::NotExpressed(why.to_owned()));
    }
    let mut stage = target.stage().await?;
    let mut started = target.start(&stage, (scenario.moment, way)).await?;
    let mut scene = reach(&mut stage, &mut *started, scenario.moment).await?;
    let before = scene.pieces;
    let stop = Instant::now();
    for _ in 0..scenario.stops {
        started.stop(way).await?;
    }
    let watched = Box::pin(watch((&mut stage, &mut *started), (scenario.moment, stop), limits));
    // The scene only plays on beside, and never ends.
    let told = match select(watched, Box::pin(scene.play())).await {
        Either::Left((told, _)) => told,
        Either::Right((never, _)) => match never {},
    };
    let (mut work, asked_again, pieces_after) =
        (stage.work(stop).await, stage.asked_again(), scene.pieces - before);
    if target.writes_prose() {
        work.iter_mut().filter(|work| work.kind == WorkKind::Model).for_each(|work| work.words.clear());
    }
    let watched = stop.elapsed();
    let crash = started.crash();
    let next = if crash.is_some() {
        Next::NotSent("it is gone".to_owned())
    } else if told.is_none() {
        Next::NotSent("its caller had no control".to_owned())
    } else if let Some(why) = target.fails_anyway() {
        Next::NotSent(why.to_owned())
    } else {
        let asked = stage.requests();
        stage.let_go();
        started.next().await.map_or_else(Next::NotSent, |is_answered| stage.next(asked, is_answered))
    };
    let facts = Facts { work, asked_again, pieces_after, next, crash, watched };
    let claims = told.map_or_else(Claims::default, |told| Claims {
        free: Some(told.at.saturating_duration_since(stop)),
        says: told.says,
        named: told.named,
    });
    let judged = judge(&facts, &claims, limits);
    Ok(Trial { facts, claims, judged })
}

/// Brings the target to the moment, if its turn does not end before.
async fn reach(
    stage: &mut TrialStage,
    started: &mut dyn Started,
    moment: StopMoment,
) -> Result<Scene, StageError> {
    let called = match started.tools() {
        Some(server) => Some(stage.call(moment, server).await?),
        None => None,
    };
    let reached = stage.reach(moment, called);
    if moment == StopMoment::AtOnce {
        return reached.await;
    }
    // A moment that is there counts; a turn that is over before it is a failure.
    let first = match select(Box::pin(reached), started.told()).await {
        Either::Left((scene, _)) => Ok(scene?),
        Either::Right((told, _)) => Err(told),
    };
    let scene = match (first, stage.unseen()) {
        (Ok(scene), _) => scene,
        (Err(_), Some(unseen)) => return Err(not_reached(&format!("{unseen}{}", wrote(&started.words())))),
        (Err(_), None) if moment == StopMoment::Retry => return Err(gives_up()),
        (Err(told), None) => return Err(too_early(started, &told)),
    };
    match moment {
        StopMoment::AfterEnd => {
            let told = timeout(PATIENCE, started.told()).await;
            let told = told.map_err(|_elapsed| not_reached("its turn does not end"))?;
            if stage.is_called() && told.says == Said::Failed {
                return Err(not_reached(&format!("its call failed{}", wrote(&started.words()))));
            }
            stage.is_reached();
        }
        StopMoment::Question => {
            let asked = timeout(PATIENCE, started.questioned()).await;
            asked.map_err(|_elapsed| not_reached("it runs a command without a question"))?;
        }
        StopMoment::Retry => {
            let told = timeout(GIVES_UP, started.told()).await;
            if told.is_ok() {
                return Err(gives_up());
            }
            stage.is_reached();
        }
        _ => {}
    }
    Ok(scene)
}

/// How long a target may take to what the moment still needs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until the caller has control back, and then until all work has ended or would be said not to end.
async fn watch(
    (stage, started): (&mut TrialStage, &mut dyn Started),
    (moment, stop): (StopMoment, Instant),
    limits: &VerdictLimits,
) -> Option<Told> {
    let left = limits.hang.saturating_sub(stop.elapsed());
    // What is over before a stop has given its caller control before it, too.
    let told = match moment {
        StopMoment::AfterEnd => Told { at: stop, ..Told::now(Said::Nothing) },
        _ => timeout(left, started.told()).await.ok()?,
    };
    let seen = async {
        match moment {
            // Whether it asks again is only known when that would be late.
            StopMoment::Retry => std::future::pending().await,
            _ => {
                sleep(limits.again).await;
                stage.quiet().await;
            }
        }
    };
    if timeout(limits.late + BEYOND, seen).await.is_err() {
        // What did not end is looked at next.
    }
    Some(told)
}

fn gives_up() -> StageError {
    StageError::NotExpressed("it does not ask its model again that was busy".to_owned())
}

fn too_early(started: &mut dyn Started, told: &Told) -> StageError {
    let wrote = wrote(&started.words());
    match started.crash() {
        Some(crash) => not_reached(&format!("it ended before the moment came: {crash}{wrote}")),
        None => {
            not_reached(&format!("its turn was over before the moment came, and said {}{wrote}", told.says))
        }
    }
}

fn not_reached(why: &str) -> StageError {
    StageError::NotReached(why.to_owned())
}
