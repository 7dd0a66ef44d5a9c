//! Snapshots of the files around each turn of a chat.
//!
//! **Invariants**: a turn begins after the snapshot before it. What a snapshot cannot do stops no turn: the chat says it once.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{Arc, Mutex},
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, SessionHandle,
    ids::{SessionId, TurnId},
    message::UserMessage,
    session::{Plan, PlanContext, Planner, SessionEvent},
    stop::Failure,
};
use safepoint_snapshot::{NotTaken, Snapshot, SnapshotError, Snapshots};
use tokio::task::JoinHandle;

use crate::{agent::planner::CurrentPlanner, args::place::StorePlace, settings, sync::lock};

/// The snapshots around the turns of one session.
pub(crate) struct TurnSnapshots {
    pub(crate) snapshots: Arc<Snapshots>,
    session: SessionId,
    /// Held while one is taken, so that they are in order. `turns` and `notes` are taken under it.
    taking: tokio::sync::Mutex<()>,
    /// Held for one look or change.
    turns: Mutex<TurnMarks>,
    /// What the person should know; held to add to it or to take it.
    notes: Mutex<VecDeque<String>>,
}

/// Where the turns are.
#[derive(Debug, Default)]
struct TurnMarks {
    /// The turn with a snapshot before it and none after it.
    open: Option<TurnId>,
    last: Option<TurnId>,
    /// Whether it was shown what snapshots do not hold, or why there are none.
    is_noted: bool,
    /// Whether the directory has more files than a snapshot takes: none is tried again.
    is_off: bool,
}

/// What the label of a snapshot says. Exhaustive: before a turn of a session, after one, or before or after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Before(TurnId),
    After(TurnId),
    BeforeRestore,
    AfterRestore,
}

impl Moment {
    /// What the label says to this session; none of what another session did.
    pub(crate) fn of(snapshot: &Snapshot, session: &SessionId) -> Option<Self> {
        let label = snapshot.label();
        let turn = |rest: &str| {
            let (turn, of) = rest.split_once(" of ")?;
            let turn = turn.parse().ok()?;
            (of == session.as_str()).then_some(turn)
        };
        if label.starts_with("before a restore of: ") {
            return Some(Self::BeforeRestore);
        }
        if label.starts_with("after a restore of: ") {
            return Some(Self::AfterRestore);
        }
        match label.split_once(' ')? {
            ("before", rest) => turn(rest).map(Self::Before),
            ("after", rest) => turn(rest).map(Self::After),
            _ => None,
        }
    }
}

impl TurnSnapshots {
    pub(crate) fn new(snapshots: Snapshots, session: SessionId) -> Self {
        let all = snapshots.list().unwrap_or_default();
        let of_turn = |snapshot| match Moment::of(snapshot, &session) {
            Some(Moment::Before(turn) | Moment::After(turn)) => Some(turn),
            Some(Moment::BeforeRestore | Moment::AfterRestore) | None => None,
        };
        let last = all.iter().rev().find_map(of_turn);
        let turns = Mutex::new(TurnMarks { last, ..TurnMarks::default() });
        let snapshots = Arc::new(snapshots);
        let (taking, notes) = (tokio::sync::Mutex::default(), Mutex::default());
        Self { snapshots, session, taking, turns, notes }
    }

    /// What the person should know of them, since the last call.
    pub(crate) fn notes(&self) -> Vec<String> {
        lock(&self.notes).drain(..).collect()
    }

    /// Takes the snapshot before a turn; where none was taken after the turn before it, that one first.
    ///
    /// # Cancel safety
    /// The snapshot may still be taken.
    pub(crate) async fn before(&self, turn: TurnId) {
        let _taking = self.taking.lock().await;
        self.take_before(turn).await;
    }

    /// The same, while `taking` is held.
    async fn take_before(&self, turn: TurnId) {
        let open = lock(&self.turns).open.take();
        if let Some(open) = open {
            self.take(format!("after {open} of {}", self.session)).await;
        }
        self.take(format!("before {turn} of {}", self.session)).await;
        let mut turns = lock(&self.turns);
        (turns.open, turns.last) = (Some(turn), Some(turn));
    }

    /// Takes the snapshot before the turn that waits for a decision goes further. The one after it that is being taken is
    /// waited for: what the turn then changes is not in it.
    pub(crate) async fn before_decision(&self) {
        let _taking = self.taking.lock().await;
        let (open, last) = {
            let turns = lock(&self.turns);
            (turns.open, turns.last)
        };
        if let (None, Some(last)) = (open, last) {
            self.take_before(last).await;
        }
    }

    async fn after(&self, turn: TurnId) {
        let _taking = self.taking.lock().await;
        if lock(&self.turns).open.take_if(|open| *open == turn).is_some() {
            self.take(format!("after {turn} of {}", self.session)).await;
        }
    }

    /// Takes the snapshots after turns, and before those that begin without a plan, until the session has ended.
    pub(crate) fn follow(self: &Arc<Self>, session: SessionHandle<String>) -> JoinHandle<()> {
        let (own, mut events) = (Arc::clone(self), session.events());
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                match event.kind {
                    SessionEvent::TurnStarted { turn, .. } if lock(&own.turns).open.is_none() => {
                        own.before(turn).await;
                    }
                    // A turn that was quiet, waiting for a decision, and runs again is quiet again later.
                    SessionEvent::TurnQuiet { turn, .. }
                        if session.current_turn().is_none_or(|now| now.turn != turn) =>
                    {
                        own.after(turn).await;
                    }
                    _ => {}
                }
            }
        })
    }

    async fn take(&self, label: String) {
        let snapshots = Arc::clone(&self.snapshots);
        let (is_noted, is_off) = {
            let turns = lock(&self.turns);
            (turns.is_noted, turns.is_off)
        };
        if is_off {
            return;
        }
        let took = tokio::task::spawn_blocking(move || -> Result<Option<String>, SnapshotError> {
            let taken = snapshots.take(&label)?;
            let is_asked = !is_noted && taken.left_out() > 0;
            Ok(if is_asked { Some(left_out(&snapshots, &taken)?) } else { None })
        });
        let note = match took.await {
            Ok(Ok(note)) => note,
            Ok(Err(error)) => {
                lock(&self.turns).is_off |= error.is_too_many();
                Some(in_words(&error))
            }
            // The program ends.
            Err(_) => None,
        };
        if let Some(note) = note {
            let was_noted = std::mem::replace(&mut lock(&self.turns).is_noted, true);
            if !was_noted {
                lock(&self.notes).push_back(note);
            }
        }
    }
}

/// Removes the snapshots around the turns of sessions that are gone. A directory that is gone has none that could be removed.
///
/// # Errors
/// If they cannot be removed now.
pub(crate) fn forget(root: &Path, store: Option<&StorePlace>, sessions: &[SessionId]) -> anyhow::Result<()> {
    if !root.is_dir() {
        return Ok(());
    }
    let snapshots = settings::snapshots::open(Some(root), store, None)?;
    let is_of = |snapshot: &Snapshot, session: &SessionId| {
        matches!(Moment::of(snapshot, session), Some(Moment::Before(_) | Moment::After(_)))
    };
    snapshots.remove(|snapshot| sessions.iter().any(|session| is_of(snapshot, session)))?;
    Ok(())
}

fn in_words(error: &SnapshotError) -> String {
    format!("no snapshot of the files, so /rewind restores none from here: {error}")
}

/// The files that snapshots do not hold, in one line.
fn left_out(snapshots: &Snapshots, taken: &Snapshot) -> Result<String, SnapshotError> {
    const NAMED: usize = 3;
    let mut all = snapshots.not_taken(taken)?;
    all.retain(|(_, why)| !matches!(why, NotTaken::Ignored | NotTaken::Excluded));
    let named = all.iter().take(NAMED).map(|(path, why)| format!("{} ({why})", path.display()));
    let named: Vec<String> = named.collect();
    let more = all.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Ok(format!("not in the snapshots of the files: {}{more}", named.join(", ")))
}

/// Plans turns with the current agent, each after a snapshot of the files.
pub(crate) struct SnapshotPlanner {
    pub(crate) planner: CurrentPlanner,
    pub(crate) snapshots: Option<Arc<TurnSnapshots>>,
}

impl Planner<String> for SnapshotPlanner {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        Box::pin(async move {
            let (next, left) = (situation.turn, situation.ended_early);
            let plan = self.planner.plan(situation).await?;
            let turn = match &plan {
                Plan::Turn(turn) if !turn.take.is_empty() => Some(next),
                Plan::Resume => left,
                Plan::Turn(_) | Plan::Wait => None,
            };
            if let (Some(turn), Some(snapshots)) = (turn, &self.snapshots) {
                snapshots.before(turn).await;
            }
            Ok(plan)
        })
    }

    fn steer(&self, item: &String) -> UserMessage {
        self.planner.steer(item)
    }

    fn resumes(&self, turn: TurnId) -> Option<Agent> {
        self.planner.resumes(turn)
    }
}
