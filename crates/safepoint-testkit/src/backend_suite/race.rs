//! A stop from many threads, at every moment of a start, and against the natural end.

use std::{sync::Barrier, thread};

use safepoint::{Outcome, RunHandle, StopRequest, receipt::StopSupport, stop::StopAck};
use tokio::task::yield_now;

use super::{BrokenBackend, Fresh, Holds, Subject, must};

/// How many threads ask at once.
const THREADS: usize = 8;

/// How many moments of a start are tried.
const MOMENTS: usize = 16;

/// How often a stop races the end.
const RACES: usize = 16;

/// A stop at each moment between the handle's publication and the work's start is kept, and reaches the work.
///
/// # Errors
/// How that does not hold.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn between_publication_and_start(fresh: Fresh<'_>) -> Holds {
    for moment in 0..MOMENTS {
        let subject = fresh();
        let handle = subject.start();
        for _ in 0..moment {
            yield_now().await;
        }
        handle.stop(StopRequest::now());
        let outcome = subject.settled(&handle).await?;
        let is_stopped = matches!(outcome, Outcome::Stopped(_));
        let what = format!("a stop {moment} steps after the start was lost: {:?}", outcome.ending());
        must(&what, is_stopped || subject.declared() == StopSupport::None)?;
        stopped_once(&subject, &handle).await?;
    }
    Ok(())
}

/// Of many threads that ask at once one is the first, and the work gets one stop request.
///
/// # Errors
/// How that does not hold.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn from_many_threads(fresh: Fresh<'_>) -> Holds {
    let subject = fresh();
    let handle = subject.running().await?;
    let gate = Barrier::new(THREADS);
    let asked: Vec<StopAck> = thread::scope(|threads| {
        let ask = || {
            gate.wait();
            handle.stop(StopRequest::now())
        };
        let all: Vec<_> = (0..THREADS).map(|_| threads.spawn(ask)).collect();
        all.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let firsts = asked.iter().filter(|asked| **asked == StopAck::First).count();
    must("a stop from many threads has not one first", firsts == 1 && asked.len() == THREADS)?;
    drop(subject.settled(&handle).await?);
    stopped_once(&subject, &handle).await
}

/// A stop and the natural end race: one of them wins, and neither is reported as a failure.
///
/// # Errors
/// How that does not hold.
///
/// # Cancel safety
/// Work of the subject may continue.
pub async fn racing_the_end(fresh: Fresh<'_>) -> Holds {
    for _ in 0..RACES {
        let subject = fresh();
        let handle = subject.running().await?;
        let gate = Barrier::new(2);
        thread::scope(|threads| {
            threads.spawn(|| {
                gate.wait();
                handle.stop(StopRequest::now());
            });
            gate.wait();
            subject.probe.finish();
        });
        let outcome = subject.settled(&handle).await?;
        if !matches!(outcome, Outcome::Done(_) | Outcome::Stopped(_)) {
            return Err(BrokenBackend::new(format!(
                "a stop that races the end is reported as {:?}",
                outcome.ending()
            )));
        }
        stopped_once(&subject, &handle).await?;
    }
    Ok(())
}

/// Closes the run; its work got at most one stop request.
async fn stopped_once(subject: &Subject, handle: &RunHandle) -> Holds {
    // Lets draining work finish, so that this check does not wait for it: another fact covers its report.
    subject.probe.finish();
    drop(subject.closed(handle).await?);
    let now = subject.probe.look().await;
    must("its work was asked to stop more than once", now.stops <= now.begun.min(1))
}
