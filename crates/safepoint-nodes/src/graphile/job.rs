//! The job: take this session up.

use std::sync::Arc;

use graphile_worker::{IntoTaskHandlerResult, JobKeyMode, JobSpec, RawJobSpec, TaskHandler, WorkerContext};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{here::Here, taker::Wake};

/// What the tables cannot hold in a text, and what stands for it.
const UNWRITTEN: &AsciiSet = &CONTROLS.add(b'%');

/// What a job says. It is read from the database: the session that it names need not be one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TakeJob {
    session: String,
    #[serde(default)]
    pool: String,
    #[serde(default)]
    priority: i16,
    #[serde(default)]
    tries: u16,
}

/// The hands of this node, for its jobs.
#[derive(Clone, Debug)]
pub(super) struct JobHands(pub(super) Arc<Here>);

impl TakeJob {
    /// A job for this wake. A session has one job that waits: another wake of it changes nothing.
    pub(super) fn spec(wake: &Wake) -> Result<RawJobSpec, serde_json::Error> {
        /// A job that fails is none that a node wrote: it is not tried again.
        const ATTEMPTS: i16 = 1;
        let job = Self {
            session: written(wake.session.as_str()),
            pool: written(&wake.pool),
            priority: wake.priority,
            tries: wake.tries,
        };
        let spec = JobSpec::builder()
            .job_key_mode(JobKeyMode::PreserveRunAt)
            .job_key(key(&job.session))
            .priority(wake.priority)
            .max_attempts(ATTEMPTS);
        // A node takes the jobs whose flag is among its pools, and those without.
        let spec = if wake.pool.is_empty() { spec } else { spec.flags(vec![job.pool.clone()]) };
        Ok(RawJobSpec {
            identifier: Self::IDENTIFIER.to_owned(),
            payload: serde_json::to_value(&job)?,
            spec: spec.build(),
        })
    }

    /// What it says; none if it names nothing that a node wrote.
    fn wake(&self) -> Option<Wake> {
        let mut wake = Wake::of(read(&self.session)?.as_str());
        wake.pool = read(&self.pool)?;
        (wake.priority, wake.tries) = (self.priority, self.tries);
        Some(wake)
    }
}

impl TaskHandler for TakeJob {
    const IDENTIFIER: &'static str = "safepoint_take";

    async fn run(self, ctx: WorkerContext) -> impl IntoTaskHandlerResult {
        let (Some(JobHands(here)), Some(wake)) = (ctx.get_ext::<JobHands>().cloned(), self.wake()) else {
            return Err("no session that a node named");
        };
        // While there is no room the worker ends, and this job is given back.
        here.give(wake).await;
        Ok(())
    }
}

/// The key of a session's job: its name as it is written, or what stands for one that is too long.
fn key(session: &str) -> String {
    /// The longest that the tables take.
    const LONGEST: usize = 512;
    if session.len() <= LONGEST {
        return session.to_owned();
    }
    Sha256::digest(session).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text as it stands in the tables.
pub(super) fn written(text: &str) -> String {
    utf8_percent_encode(text, UNWRITTEN).to_string()
}

fn read(written: &str) -> Option<String> {
    percent_decode_str(written).decode_utf8().ok().map(String::from)
}

#[cfg(test)]
mod tests;
