//! What a run's handle and its driver share: the demand, the feeds, the mailbox, and the cells of the
//! outcome.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use safepoint_scope::{Link, Scope, StopAck, StopHandle, StopRequest};
use tokio::sync::Notify;

use crate::{
    contract::extensions::RunValues,
    definition::subagent::Subagent,
    run::outcome::Outcome,
    sync::{
        Mutex,
        mailbox::{Mailbox, Received},
    },
    value::{
        event::{EventKind, Feed, Relay, StreamEvent, Took},
        ids::{CallId, Path, RunId},
        limits::Limits,
        receipt::{CallKind, QuietReport},
    },
};

mod allow_list;
mod closings;
mod given_up;
mod message;
mod put;
mod tree;

pub(crate) use allow_list::{AllowList, AllowState};
pub use closings::DecideError;
pub(crate) use closings::{Closing, Closings};
use given_up::GivenUp;
pub(crate) use message::RunMessage;
pub(crate) use tree::{OfSession, Reply, RunTree};

/// One run, as seen from outside.
pub(crate) struct SharedRun {
    pub(crate) run: RunId,
    pub(crate) path: Path,
    kind: CallKind,
    /// Whether it waits for a person in place: in a session a background run, or a run below one, is never
    /// resumed, so it does not suspend.
    pub(crate) waits_in_place: bool,
    pub(crate) scope: Scope,
    pub(crate) stop: StopHandle,
    pub(crate) feed: Arc<Feed>,
    pub(crate) audit: Arc<Feed>,
    pub(crate) mailbox: Mailbox<RunMessage>,
    /// Every call that was checked. Those that are over are marked: a later request comes too late. Held for one
    /// entry or one look-up; the call is stopped after it is released.
    calls: Mutex<HashMap<CallId, StopHandle>>,
    /// The child runs by their calls. Only this run's driver adds one. The lock is held for one entry or one
    /// copy: no child's lock is taken under it, and callers walk down on the copy.
    pub(crate) children: Mutex<BTreeMap<CallId, Arc<SharedRun>>>,
    pub(crate) tree: Arc<RunTree>,
    /// How many levels of child runs there may be below.
    nesting: AtomicU32,
    /// The run's context: set once, before its driver begins.
    values: OnceLock<RunValues>,
    /// Set once. The stream of events is closed next, and waiters are woken last: a caller that looks in
    /// between sees the outcome a moment before the last event.
    outcome: OnceLock<Outcome>,
    quiet: OnceLock<QuietReport>,
    published: Notify,
    pub(crate) given_up: GivenUp,
}

/// Whether a run only waits for a person. Exhaustive: it does, without an approver; it does, while an
/// approver is asked; or it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Waits,
    Asks,
    Works,
}

/// Shows events of the run at `path` in the stream of its parent, or in the parent's audit once that stream
/// has ended. `kept` holds for the session what the root's stream no longer shows.
fn relay(
    path: &Path,
    audit: &Arc<Feed>,
    feed: Option<&Arc<Feed>>,
    kept: Option<Arc<Feed>>,
) -> Relay<EventKind> {
    let (path, audit, feed) = (path.clone(), Arc::clone(audit), feed.cloned());
    Relay(Box::new(move |kind, position| {
        let (child, kept) = match kind {
            // The run that it belongs to keeps it.
            EventKind::Child { .. } => (kind.clone(), None),
            own => (EventKind::Child { path: path.clone(), event: Arc::new(own.clone()) }, kept.as_ref()),
        };
        let took = feed.as_ref().map_or(Took::Nothing, |feed| feed.offer((child.clone(), position)));
        if took == Took::Nothing {
            audit.push_recorded((child.clone(), position));
        }
        if took == Took::It {
            return Took::It;
        }
        if let Some(kept) = kept.filter(|_| !kind.is_provisional()) {
            kept.push_recorded((child, position));
        }
        Took::Late
    }))
}

impl SharedRun {
    /// A run at the root of its tree, or one that is resumed without its parent. It owns its background runs.
    pub(crate) fn new(run: RunId, path: Path, limits: &Limits) -> (Arc<Self>, Received<RunMessage>) {
        let scope = Scope::root();
        let tree = RunTree::new(scope.0.clone(), (Arc::default(), Arc::default(), None), None);
        Self::root(run, path, scope, tree, limits)
    }

    /// The same run as part of a family, which owns its background runs: with what its session allows
    /// without a question, and the closed questions of its session.
    pub(crate) fn within(
        &self,
        family: &Scope,
        session: OfSession,
        limits: &Limits,
    ) -> (Arc<Self>, Received<RunMessage>) {
        let kept = Arc::new(Feed::new(limits.retained_deltas));
        let tree = RunTree::new(family.clone(), session, Some(kept));
        let scope = family.child_run(Link::Attached);
        Self::root(self.run.clone(), self.path.clone(), scope, tree, limits)
    }

    fn root(
        run: RunId,
        path: Path,
        (scope, stop): (Scope, StopHandle),
        tree: Arc<RunTree>,
        limits: &Limits,
    ) -> (Arc<Self>, Received<RunMessage>) {
        let feeds = [Feed::new(limits.retained_deltas), Feed::new(limits.retained_deltas)];
        let (mut shared, mailbox) = Self::with((run, path), (scope, stop), tree, feeds);
        shared.nesting = limits.max_depth.into();
        (Arc::new(shared), mailbox)
    }

    /// A run that is the work of one of this run's calls.
    pub(crate) fn nest(
        &self,
        call: &CallId,
        within: &Scope,
        child: &Subagent,
    ) -> (Arc<Self>, Received<RunMessage>) {
        let (scope, stop) = within.child_run(child.link());
        let path = self.path.of(call);
        let before = self.children.lock().get(call).map(|child| child.run.clone());
        let run = before.or_else(|| self.tree.run_at(&path)).unwrap_or_else(RunId::fresh);
        let limits = &child.def().limits;
        let is_aside = self.waits_in_place || child.link() == Link::Background;
        let kept = self.tree.kept.clone().filter(|_| is_aside);
        let waits_in_place = kept.is_some();
        let feeds = [
            Feed::relayed(limits.retained_deltas, relay(&path, &self.audit, Some(&self.feed), kept)),
            Feed::relayed(limits.retained_deltas, relay(&path, &self.audit, None, None)),
        ];
        let (mut shared, mailbox) = Self::with((run, path), (scope, stop), Arc::clone(&self.tree), feeds);
        (shared.kind, shared.waits_in_place) = (child.kind(), waits_in_place);
        shared.nesting = limits.max_depth.min(self.nesting().saturating_sub(1)).into();
        shared.values = self.values().below(&child.def().context).into();
        let shared = Arc::new(shared);
        self.children.lock().insert(call.clone(), Arc::clone(&shared));
        (shared, mailbox)
    }

    fn with(
        (run, path): (RunId, Path),
        (scope, stop): (Scope, StopHandle),
        tree: Arc<RunTree>,
        feeds: [Feed; 2],
    ) -> (Self, Received<RunMessage>) {
        let (mailbox, received) = Mailbox::new();
        let [feed, audit] = feeds.map(Arc::new);
        let shared = Self {
            run,
            path,
            kind: CallKind::Tool,
            waits_in_place: false,
            scope,
            stop,
            feed,
            audit,
            mailbox,
            calls: Mutex::default(),
            children: Mutex::default(),
            tree,
            nesting: AtomicU32::new(0),
            values: OnceLock::new(),
            outcome: OnceLock::new(),
            quiet: OnceLock::new(),
            published: Notify::new(),
            given_up: GivenUp::default(),
        };
        (shared, received)
    }

    /// The run at the root of a tree is about to begin, under these limits and with this context.
    pub(crate) fn begin(&self, limits: &Limits, values: RunValues) {
        // Relaxed, here and for the feeds: the driver's task is spawned after this, by this thread.
        self.nesting.store(limits.max_depth, Ordering::Relaxed);
        self.feed.retain(limits.retained_deltas);
        self.audit.retain(limits.retained_deltas);
        if self.values.set(values).is_err() {
            // A run begins once.
        }
    }

    /// How many levels of child runs there may be below.
    pub(crate) fn nesting(&self) -> u32 {
        // Relaxed: it changes only before the driver's task begins.
        self.nesting.load(Ordering::Relaxed)
    }

    /// The run's context.
    pub(crate) fn values(&self) -> RunValues {
        self.values.get().cloned().unwrap_or_default()
    }

    /// What of the run and of its child runs is alive, by name.
    pub(crate) fn alive(&self) -> Vec<String> {
        let mut alive = self.stop.alive();
        if !self.path.is_root() {
            alive.iter_mut().for_each(|what| *what = format!("{what} [{}]", self.path));
        }
        // A background run is listed among what its family holds.
        let attached = |child: &&Arc<Self>| child.kind == CallKind::Child;
        let children: Vec<_> = self.children.lock().values().filter(attached).cloned().collect();
        alive.extend(children.iter().flat_map(|child| child.alive()));
        alive
    }

    /// All child runs that were begun, in the order of their calls' names.
    pub(crate) fn children(&self) -> Vec<Arc<Self>> {
        self.children.lock().values().cloned().collect()
    }

    pub(crate) fn child_at(&self, call: &CallId) -> Option<Arc<Self>> {
        self.children.lock().get(call).cloned()
    }

    /// The background runs below that are not quiet yet, at any depth.
    pub(crate) fn background(&self) -> Vec<Arc<Self>> {
        let mut found = Vec::new();
        for child in self.children() {
            let below = child.background();
            if child.kind == CallKind::Background && !child.is_quiet_published() {
                found.push(child);
            }
            found.extend(below);
        }
        found
    }

    pub(crate) fn post(&self, msg: RunMessage) {
        if !self.send(msg) {
            // The driver is gone: the run is settled and quiet, and no receiver is left.
        }
    }

    /// Posts a message; false if the driver is gone.
    #[must_use = "if the driver is gone, there is no answer"]
    pub(crate) fn send(&self, msg: RunMessage) -> bool {
        self.mailbox.post(msg)
    }

    /// Fixes the outcome: the first write wins, and the stream of events ends with `last`, whose record is at `position`.
    pub(crate) fn publish(&self, outcome: Outcome, last: EventKind, position: Option<u64>) {
        if self.outcome.set(outcome).is_ok() {
            if self.path.is_root() {
                self.tree.drop_decisions();
            }
            self.feed.close((last, position));
            self.published.notify_waiters();
        }
    }

    pub(crate) fn publish_quiet(&self, quiet: QuietReport) {
        let last = EventKind::Quiet(Arc::clone(quiet.receipt()));
        if self.quiet.set(quiet).is_ok() {
            self.audit.close((last, None));
            self.published.notify_waiters();
        }
    }

    pub(crate) fn is_quiet_published(&self) -> bool {
        self.quiet.get().is_some()
    }

    pub(crate) fn outcome_now(&self) -> Option<&Outcome> {
        self.outcome.get()
    }

    pub(crate) async fn outcome(&self) -> Outcome {
        self.published(|| self.outcome.get().cloned()).await
    }

    pub(crate) async fn quiet(&self) -> QuietReport {
        self.published(|| self.quiet.get().cloned()).await
    }

    /// Registers, then checks, so that a publication in between is not missed.
    async fn published<T>(&self, look: impl Fn() -> Option<T>) -> T {
        loop {
            let published = self.published.notified();
            if let Some(found) = look() {
                return found;
            }
            published.await;
        }
    }

    pub(crate) fn stop_call(&self, id: &CallId, request: StopRequest) -> Option<StopAck> {
        let handle = self.calls.lock().get(id).cloned()?;
        let asked = handle.stop(request);
        self.post(RunMessage::Look);
        Some(asked)
    }

    pub(crate) fn name_call(&self, id: CallId, stop: StopHandle) {
        self.calls.lock().insert(id, stop);
    }
}
