//! The command line of the commands that talk to a running session.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::{
    client::millis,
    wire::{Afterwards, ModeWord, OrWord, PolicyWord, ScopeWord, StopAsk, Wait},
};
use crate::{args::Usage, duration::parse as duration};

/// What each of them takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// The session's id, or an end of it that no other has (safepoint sessions ls)
    pub(super) session: String,
    /// One JSON object a line on stdout, nothing else there
    #[arg(long)]
    pub(super) json: bool,
    /// Where kept sessions are; default: $XDG_DATA_HOME/safepoint/store.db, or the same under ~/.local/share
    #[arg(long, value_name = "PATH")]
    pub(super) store: Option<PathBuf>,
    /// How long to wait for its answer; with --wait, for the end. Exit code 7 after that
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(super) timeout: Option<Duration>,
}

/// `safepoint push`.
#[derive(Clone, Debug, Args)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// What to say; `-` reads it from stdin
    pub(super) text: String,
    /// What happens if a turn is at work
    #[arg(long, value_enum, default_value = "enqueue")]
    pub(super) policy: PolicyWord,
    /// The safe points at which a preempt stops the turn; default: now
    #[arg(long, value_name = "POINTS")]
    pub(super) at: Option<String>,
    /// After so long the preempt stops it now
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(super) within: Option<Duration>,
    /// The preempt is asked only after so long
    #[arg(long, value_name = "DUR", value_parser = duration)]
    pub(super) delay: Option<Duration>,
    /// The turn that the preempt means, and no other
    #[arg(long, value_name = "ID")]
    pub(super) turn: Option<String>,
    /// An id of yours: the same again is the same item
    #[arg(long, value_name = "CLIENT_ID")]
    pub(super) id: Option<String>,
    /// Waits until it has come to rest
    #[arg(long)]
    pub(super) wait: bool,
}

/// `safepoint steer`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SteerArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// What to say; `-` reads it from stdin
    pub(super) text: String,
    /// Where it goes if it cannot be delivered
    #[arg(long, value_enum, default_value = "queue")]
    pub(super) or: OrWord,
    /// Waits until it has come to rest
    #[arg(long)]
    pub(super) wait: bool,
}

/// `safepoint withdraw`.
#[derive(Clone, Debug, Args)]
pub(crate) struct WithdrawArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// The item, as push named it
    pub(super) item: String,
}

/// `safepoint stop`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(super) common: Common,
    /// At once
    #[arg(long, conflicts_with_all = ["at", "when_idle", "within"])]
    now: bool,
    /// At the first of these: turn-end, after-model, after-started-calls, after-all-calls, any
    #[arg(long, value_name = "POINTS", conflicts_with = "when_idle")]
    at: Option<String>,
    /// Once it was idle for so long
    #[arg(long, value_name = "DUR", value_parser = duration)]
    when_idle: Option<Duration>,
    /// After so long now; `never` waits for the safe point; default 5s, or never with --at
    #[arg(long, value_name = "DUR|never")]
    within: Option<String>,
    /// Its own run, or the whole tree
    #[arg(long, value_enum, default_value = "tree")]
    scope: ScopeWord,
    /// This run alone; the session goes on
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// This call alone; its run goes on
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// The bound over all clean-up times together
    #[arg(long, value_name = "DUR", value_parser = duration)]
    cleanup_cap: Option<Duration>,
    /// The turn will not be resumed
    #[arg(long)]
    abandon: bool,
    /// Why, as the receipt tells it
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
    /// Waits for the end: settled (the default) or quiet
    #[arg(long, value_name = "FOR", num_args = 0..=1, require_equals = true, default_missing_value = "settled",
        value_parser = ["settled", "quiet"])]
    wait: Option<String>,
}

const USUAL_GRACE: Duration = Duration::from_secs(5);

impl StopArgs {
    pub(super) fn ask(&self) -> Result<StopAsk, Usage> {
        let mode = self.mode();
        let within_ms = match (self.within.as_deref(), &mode) {
            (Some("never"), _) => None,
            (Some(text), _) => Some(millis(duration(text).map_err(|why| Usage(format!("--within: {why}")))?)),
            (None, ModeWord::Points(_)) if self.at.is_none() => Some(millis(USUAL_GRACE)),
            (None, _) => None,
        };
        Ok(StopAsk {
            mode,
            within_ms,
            scope: self.scope,
            run: self.run.clone(),
            call: self.call.clone(),
            cleanup_cap_ms: self.cleanup_cap.map(millis),
            afterwards: if self.abandon { Afterwards::Abandoned } else { Afterwards::Resumable },
            because: self.because.clone(),
            wait: match self.wait.as_deref() {
                None => Wait::No,
                Some("quiet") => Wait::Quiet,
                Some(_settled) => Wait::Settled,
            },
        })
    }

    fn mode(&self) -> ModeWord {
        match (self.now, self.when_idle, self.at.as_deref()) {
            (true, ..) => ModeWord::Now,
            (false, Some(idle), _) => ModeWord::WhenIdle { ms: millis(idle) },
            (false, None, None) => ModeWord::Points("any".to_owned()),
            (false, None, Some(at)) => {
                // A session that ends at a safe point ends at its turn's end in any case.
                let points: Vec<&str> = at
                    .split(',')
                    .map(str::trim)
                    .filter(|name| *name != "turn-end" && !name.is_empty())
                    .collect();
                if points.is_empty() { ModeWord::TurnEnd } else { ModeWord::Points(points.join(",")) }
            }
        }
    }
}
