//! The right to act: may see what is asked, nest, pass gates and run work. It cannot ask.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
};

use crate::{
    reason::Reason,
    request::{demand::Demand, points::SafePoints},
};

pub(crate) mod alarm;
pub(crate) mod core;
pub(crate) mod fired;
pub(crate) mod handle;
pub(crate) mod logged;
pub(crate) mod node;
pub(crate) mod permit;
pub(crate) mod stop;
pub(crate) mod task;
pub(crate) mod tracker;
mod waiting;

use alarm::Alarm;
use fired::Fired;
use handle::StopHandle;
use logged::LoggedRequest;
use node::{Node, QuietGuard, WakeOrder};
use permit::{Effect, Permit};
use stop::Stop;
use task::Task;
use tracker::Label;
use waiting::{Changed, Running};

use self::core::Filter;

/// One piece of structured work, passed *down* to the code that does it.
///
/// ```
/// use safepoint_scope::{Reason, Scope, Stop, StopRequest};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// async fn wait(scope: Scope) -> Result<(), Stop> {
///     scope.run(std::future::pending()).await
/// }
///
/// let (scope, handle) = Scope::root();
/// let waiting = tokio::spawn(wait(scope));
/// handle.stop(StopRequest::now().with_reason(Reason::user("enough")));
/// assert!(waiting.await.unwrap().is_err()); // a `Stop`, which is no error
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scope {
    node: Arc<Node>,
}

/// How a nested run hangs on the one that began it. Exhaustive: S9.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// It is the work of a call: it ends when the outer run must end now.
    Attached,
    /// It continues when only the outer run is stopped.
    Background,
}

impl Link {
    pub(crate) fn filter(self) -> Filter {
        match self {
            Self::Attached => Filter::NowOrTree,
            Self::Background => Filter::TreeOnly,
        }
    }
}

impl Scope {
    /// A new root scope, and the right to stop it.
    #[must_use]
    pub fn root() -> (Self, StopHandle) {
        Self::with_handle(Node::root())
    }

    /// A part of the same run, such as one call: it sees all that is asked of the run, and can be stopped alone.
    #[must_use]
    pub fn child(&self) -> (Self, StopHandle) {
        Self::with_handle(self.node.child())
    }

    /// A nested run: what reaches it is as its `link` says.
    #[must_use]
    pub fn child_run(&self, link: Link) -> (Self, StopHandle) {
        Self::with_handle(self.node.child_run(link))
    }

    fn with_handle(node: Arc<Node>) -> (Self, StopHandle) {
        (Self { node: Arc::clone(&node) }, StopHandle::new(node))
    }

    /// Passes a boundary that is the safe points of `gate`, on showing that the effect was announced.
    ///
    /// # Errors
    /// The [`Stop`], if what is asked takes effect here: it is `Now`, or one of these points.
    pub fn pass<E: Effect>(&self, gate: SafePoints, _announced: &E::Announcement) -> Result<Permit<E>, Stop> {
        match self.node.firing(Some(gate)) {
            Some(origin) => Err(Stop::new(origin)),
            None => Ok(Permit::new(self.clone())),
        }
    }

    /// Whether the scope must end now: a few atomic loads while there is no request.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.node.is_now()
    }

    /// The stop in force now, if any.
    #[must_use]
    pub fn stopping(&self) -> Option<Stop> {
        self.node.firing(None).map(Stop::new)
    }

    /// What is demanded of the scope at this instant, by itself and by what encloses it.
    #[must_use]
    pub fn demand(&self) -> Option<Demand> {
        self.node.demand()
    }

    /// The part of the [demand](Self::demand) that was asked of `outer` or of what encloses it: whose stop a nested
    /// run's end is.
    #[must_use]
    pub fn demand_from(&self, outer: &Scope) -> Option<Demand> {
        self.node.demand_from(&outer.node)
    }

    /// Why the scope must end now: the reason of the request that took effect; while none has, of the first that reaches
    /// the scope.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        self.node.fired(None).map(|fired| fired.request.reason).or_else(|| self.node.reason())
    }

    /// The request by which the scope must end now, if it must: of several the one that became `Now` first.
    #[must_use]
    pub fn fired(&self) -> Option<Fired> {
        self.node.fired(None)
    }

    /// The request that takes effect at a boundary that is the safe points of `gate`, if one does. What is `Now` comes
    /// before what waited for the boundary; of that the earliest counts.
    #[must_use]
    pub fn fired_at(&self, gate: SafePoints) -> Option<Fired> {
        self.node.fired(Some(gate))
    }

    /// Every request that reaches the scope, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<LoggedRequest> {
        self.node.requests()
    }

    /// Runs `work`, or drops it when the scope must end now. Work that is ready wins: its effect happened.
    ///
    /// # Errors
    /// The [`Stop`].
    ///
    /// # Cancel safety
    /// `work` is dropped with this future.
    pub fn run<F: Future>(&self, work: F) -> impl Future<Output = Result<F::Output, Stop>> {
        Running::new(self, work)
    }

    /// Runs `work` to its end, whatever is asked. It says so in the code, that is all it does.
    ///
    /// # Cancel safety
    /// `work` is dropped with this future.
    pub async fn shield<F: Future>(&self, work: F) -> F::Output {
        work.await
    }

    /// Waits until the scope must end now.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn stopped(&self) -> Stop {
        let mut alarm = pin!(Alarm::new(&self.node, WakeOrder::Ending));
        poll_fn(move |cx| alarm.as_mut().poll(cx, |node| node.firing(None).map(Stop::new))).await
    }

    /// Waits until what is demanded is no longer `seen`: a request came, or a deadline did. A request wakes those that wait
    /// here after all that [run](Self::run) work or wait until they are [stopped](Self::stopped) by it.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub fn changed(&self, seen: Option<Demand>) -> impl Future<Output = Demand> + Send + 'static {
        Changed::new(self, seen)
    }

    /// Takes back a stop that this scope issued.
    ///
    /// # Errors
    /// Any other stop, to be passed on with `?`.
    pub fn absorb(&self, stop: Stop) -> Result<Reason, Stop> {
        stop.absorb(&self.node)
    }

    /// Spawns work that belongs to the scope's run: the run is quiet only after it. A stop does not end it by itself.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn<F>(&self, label: impl Into<Label>, work: F) -> Task<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let label = label.into();
        Task::spawn(self.hold(label.clone()), label, work)
    }

    /// The same for work that blocks its thread.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        label: impl Into<Label>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Task<T> {
        let label = label.into();
        Task::spawn_blocking(self.hold(label.clone()), label, work)
    }

    /// Keeps the run from being quiet while the guard lives.
    pub fn hold(&self, label: impl Into<Label>) -> QuietGuard {
        QuietGuard::new(&self.node.run, label.into())
    }

    /// What of the run is alive, by name.
    #[must_use]
    pub fn alive(&self) -> Vec<String> {
        self.node.run.tracker.alive()
    }

    /// Whether the end is fixed.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.node.is_settled()
    }
}
