//! What a run's handle and its driver both see: the ask, the feeds, the mailbox, and the cells of the outcome.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use safepoint_scope::{Link, Scope, StopAck, StopHandle, StopRequest};
use tokio::sync::{Notify, oneshot};

use crate::{
    contract::{
        hook::{HookAnswer, HookKey},
        model::ModelError,
        tool::Asks,
    },
    definition::child::Subagent,
    run::{
        executor::{CallEnd, Reply},
        outcome::Outcome,
        steer::{Steer, TakenBack},
    },
    sync::{
        Mutex,
        mailbox::{Gone, Mailbox, Received},
    },
    value::{
        approval::{ApprovalRequest, Ruled},
        event::{EventKind, Feed, Relay, StreamEvent, Took},
        ids::{ApprovalId, CallId, Path, RunId, SteerId},
        limits::Limits,
        receipt::{CallKind, ChildReport, CleanupReport, ProcessReport, QuietReport, RemoteReport},
    },
};

mod always;
mod closings;
mod put;
mod tree;

pub(crate) use always::AllowList;
pub use closings::DecideError;
pub(crate) use closings::{Closing, Closings};
pub(crate) use put::Put;
pub(crate) use tree::{Decided, RunTree};

/// One run, as seen from outside.
pub(crate) struct Shared {
    pub(crate) run: RunId,
    pub(crate) path: Path,
    kind: CallKind,
    pub(crate) waits: WaitMode,
    pub(crate) scope: Scope,
    pub(crate) stop: StopHandle,
    pub(crate) feed: Arc<Feed>,
    pub(crate) audit: Arc<Feed>,
    pub(crate) mailbox: Mailbox<RunMessage>,
    /// Every call that was looked at. Those that are over are told so: a request then comes too late.
    calls: Mutex<HashMap<CallId, StopHandle>>,
    pub(crate) children: Mutex<BTreeMap<CallId, Arc<Shared>>>,
    pub(crate) tree: Arc<RunTree>,
    /// How many levels of child runs there may be below.
    pub(crate) nesting: u32,
    outcome: OnceLock<Outcome>,
    quiet: OnceLock<QuietReport>,
    published: Notify,
}

/// How a run waits for a person once it can do nothing else. Exhaustive: suspended, to be taken up again; or in place, since
/// in a session nobody takes a background run up again, or what is below one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitMode {
    Suspended,
    InPlace,
}

/// Which run, and where it hangs in its tree.
pub(crate) struct Place {
    pub(crate) run: RunId,
    pub(crate) path: Path,
    /// What the run is a part of, and what owns its background runs; none = the run itself.
    pub(crate) family: Option<Scope>,
    /// What its session allows without a question.
    pub(crate) always: Arc<AllowList>,
    /// The closed questions of its session.
    pub(crate) closings: Arc<Closings>,
}

impl Place {
    /// A new run at the root of a tree.
    pub(crate) fn root() -> Self {
        Self::of(RunId::fresh(), Path::default())
    }

    /// A run that was begun before.
    pub(crate) fn of(run: RunId, path: Path) -> Self {
        Self { run, path, family: None, always: Arc::default(), closings: Arc::default() }
    }
}

/// What reaches the driver. Exhaustive: it must act on each.
pub(crate) enum RunMessage {
    /// The model's stream is over.
    ModelEnded { round: u32, error: Option<ModelError> },
    /// The model says more than it may.
    TooLong { round: u32 },
    /// A call is over.
    CallEnded { call_id: CallId, ending: CallEnd },
    /// What a stopped call left to clean up is done.
    Cleaned { call_id: CallId, cleanups: Vec<CleanupReport>, processes: Vec<ProcessReport> },
    /// A call that was left running came back.
    Late { call_id: CallId, what: String },
    /// What is known now of the peer that does, or did, a call's work.
    Remote { call_id: CallId, remote: RemoteReport },
    /// The peer that does a call's work gave it this name.
    Named { call_id: CallId, task: String, recorded: oneshot::Sender<()> },
    /// A call that runs asks a person.
    Asks { call_id: CallId, asks: Asks, reply: Reply },
    /// Somebody decided.
    Decided { id: ApprovalId, ruled: Ruled, reply: oneshot::Sender<Result<(), DecideError>> },
    /// Whoever was asked has left without an answer.
    Left { id: ApprovalId },
    /// Nobody did in time.
    Expired { id: ApprovalId },
    /// A hook answered.
    Hooked { key: HookKey, answer: HookAnswer },
    /// A hook that was told something has ended, perhaps by a panic.
    Told { panicked: Option<String> },
    /// Who was asked for a decision panicked.
    AskingPanicked { message: String },
    /// The run is steered; where it landed is answered when it is recorded.
    Steer { steer: Steer, landed: oneshot::Sender<u32> },
    /// Its sender wants a steer back; dropped unanswered, the run is over.
    TakeBack { steer: SteerId, reply: oneshot::Sender<TakenBack> },
    /// The run that is a call's work waits for a person inside, or no longer does.
    Parked { call_id: CallId, parking: Activity },
    /// To a run that waits for a person: everybody does, so suspend.
    Suspend,
    /// The run that is a call's work has suspended itself.
    ChildSuspended { call_id: CallId, child: ChildReport, approvals: Vec<ApprovalRequest> },
    /// A run in the background has settled; its call had ended long before.
    ChildSettled { call_id: CallId, child: ChildReport },
    /// A child run is quiet, or is not in time.
    ChildQuiet { call_id: CallId, quiet: QuietReport },
    /// A single call was asked to stop, or took a question back: look again.
    Look,
}

/// Whether a run does nothing but wait for a person. Exhaustive: it does, with nobody to ask; it does while somebody is
/// asked; or it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    Waits,
    Asks,
    Works,
}

/// Where a run stands: its scope, and the tree that it is part of.
struct Ground {
    kind: CallKind,
    waits: WaitMode,
    scope: Scope,
    stop: StopHandle,
    tree: Arc<RunTree>,
    nesting: u32,
}

/// Shows what the run at `path` shows in the stream of its parent, or once that has ended in the parent's audit.
/// What the root's stream does not show any more is `kept` for the session.
fn relay(
    path: &Path,
    audit: &Arc<Feed>,
    feed: Option<&Arc<Feed>>,
    kept: Option<Arc<Feed>>,
) -> Relay<EventKind> {
    let (path, audit, feed) = (path.clone(), Arc::clone(audit), feed.cloned());
    Relay(Box::new(move |kind| {
        let (child, kept) = match kind {
            // Kept by the run that it is of.
            EventKind::Child { .. } => (kind.clone(), None),
            own => (EventKind::Child { path: path.clone(), event: Arc::new(own.clone()) }, kept.as_ref()),
        };
        let took = feed.as_ref().map_or(Took::Nothing, |feed| feed.offer(child.clone()));
        if took == Took::Nothing {
            audit.push(child.clone());
        }
        if took == Took::It {
            return Took::It;
        }
        if let Some(kept) = kept.filter(|_| !kind.is_provisional()) {
            kept.push(child);
        }
        Took::Late
    }))
}

impl Shared {
    /// A run at the root of its tree, or one that is taken up again without its parent.
    pub(crate) fn new(place: Place, limits: &Limits) -> (Arc<Self>, Received<RunMessage>) {
        let (scope, stop) = match &place.family {
            Some(family) => family.child_run(Link::Attached),
            None => Scope::root(),
        };
        let family = place.family.clone().unwrap_or_else(|| scope.clone());
        let feeds = [Feed::new(limits.retained_deltas), Feed::new(limits.retained_deltas)];
        let kept = place.family.as_ref().map(|_session| Arc::new(Feed::new(limits.retained_deltas)));
        let shared = (Arc::clone(&place.always), Arc::clone(&place.closings));
        let tree = RunTree::new(family, shared, kept);
        let waits = WaitMode::Suspended;
        let nesting = limits.max_depth;
        Self::with(place, Ground { kind: CallKind::Tool, waits, scope, stop, tree, nesting }, feeds)
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
        let kept = self
            .tree
            .kept
            .clone()
            .filter(|_| self.waits == WaitMode::InPlace || child.link() == Link::Background);
        let waits = if kept.is_some() { WaitMode::InPlace } else { WaitMode::Suspended };
        let feeds = [
            Feed::relayed(limits.retained_deltas, relay(&path, &self.audit, Some(&self.feed), kept)),
            Feed::relayed(limits.retained_deltas, relay(&path, &self.audit, None, None)),
        ];
        let nesting = limits.max_depth.min(self.nesting.saturating_sub(1));
        let tree = Arc::clone(&self.tree);
        let ground = Ground { kind: child.kind(), waits, scope, stop, tree, nesting };
        let (shared, mailbox) = Self::with(Place::of(run, path), ground, feeds);
        self.children.lock().insert(call.clone(), Arc::clone(&shared));
        (shared, mailbox)
    }

    fn with(place: Place, ground: Ground, feeds: [Feed; 2]) -> (Arc<Self>, Received<RunMessage>) {
        let (mailbox, received) = Mailbox::new();
        let [feed, audit] = feeds.map(Arc::new);
        let Ground { kind, waits, scope, stop, tree, nesting } = ground;
        let shared = Self {
            run: place.run,
            path: place.path,
            kind,
            waits,
            scope,
            stop,
            feed,
            audit,
            mailbox,
            calls: Mutex::default(),
            children: Mutex::default(),
            tree,
            nesting,
            outcome: OnceLock::new(),
            quiet: OnceLock::new(),
            published: Notify::new(),
        };
        (Arc::new(shared), received)
    }

    /// What of the run and of its child runs is alive, by name.
    pub(crate) fn alive(&self) -> Vec<String> {
        let mut alive = self.stop.alive();
        if !self.path.is_root() {
            alive.iter_mut().for_each(|what| *what = format!("{what} [{}]", self.path));
        }
        // A background run stands among what its family holds.
        let attached = |child: &&Arc<Self>| child.kind == CallKind::Child;
        let children: Vec<_> = self.children.lock().values().filter(attached).cloned().collect();
        alive.extend(children.iter().flat_map(|child| child.alive()));
        alive
    }

    /// All child runs that were begun, in the order of their calls' names.
    pub(crate) fn children(&self) -> Vec<Arc<Self>> {
        self.children.lock().values().cloned().collect()
    }

    /// Whether a run below this tree's root waits for this answer, and is alive.
    pub(crate) fn waits_below(&self, id: &ApprovalId) -> bool {
        self.tree.waits_below(id)
    }

    pub(crate) fn child_at(&self, call: &CallId) -> Option<Arc<Self>> {
        self.children.lock().get(call).cloned()
    }

    /// The background runs below that are not quiet, at any depth.
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

    /// The runs that are the work of these calls.
    pub(crate) fn children_of(&self, calls: &HashSet<CallId>) -> Vec<Arc<Self>> {
        let children = self.children.lock();
        calls.iter().filter_map(|call| children.get(call).cloned()).collect()
    }

    pub(crate) fn post(&self, msg: RunMessage) {
        if self.send(msg).is_err() {
            // The driver has gone: the run is settled and quiet, and nobody is left to tell.
        }
    }

    /// Posts it, unless the driver has gone.
    pub(crate) fn send(&self, msg: RunMessage) -> Result<(), Gone> {
        self.mailbox.post(msg)
    }

    /// Fixes the outcome: the first write wins, and the stream of events ends with `last`.
    pub(crate) fn publish(&self, outcome: Outcome, last: EventKind) {
        if self.outcome.set(outcome).is_ok() {
            self.feed.close(last);
            self.published.notify_waiters();
        }
    }

    pub(crate) fn publish_quiet(&self, quiet: QuietReport) {
        let last = EventKind::Quiet(Arc::clone(quiet.receipt()));
        if self.quiet.set(quiet).is_ok() {
            self.audit.close(last);
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

    /// Registers, then looks, so that a publication in between is not missed.
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
