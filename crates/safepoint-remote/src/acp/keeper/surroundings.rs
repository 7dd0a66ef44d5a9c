//! The surroundings of an agent's processes: outside parties that it works with, and what it left in the
//! background (S10.60, S10.65).
//!
//! **Invariants** A look delays a stop by no more than its bound. The keeper waits for a slower one before it
//! ends the agent.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use safepoint::{receipt::Outside, stop::Scope};
use safepoint_tools::process::{Contacts, Members, Process, Service, Sight, TreeMember};
use tokio::time::{Instant, timeout, timeout_at};

use crate::acp::limits;

/// A pending look; none where it failed.
type Look = BoxFuture<'static, Option<Contacts>>;

/// The surroundings of one agent.
pub(super) struct Surroundings {
    services: Arc<[Service]>,
    found: Contacts,
    looking: Vec<Look>,
    /// The members of its tree before its work was requested.
    own: Vec<TreeMember>,
}

impl Surroundings {
    pub(super) fn new(services: Arc<[Service]>) -> Self {
        Self { services, found: Contacts::default(), looking: Vec::new(), own: Vec::new() }
    }

    /// The work is about to be requested: what runs now is the agent itself.
    pub(super) fn note_own(&mut self, process: &Process) {
        self.own = process.members().alive();
    }

    /// The members of its tree beside the agent itself.
    pub(super) fn background(&self, process: &Process) -> Vec<TreeMember> {
        let mut running = process.members().alive();
        running.retain(|member| !self.own.contains(member));
        running
    }

    /// Looks for the peers of its processes' connections.
    ///
    /// # Cancel safety
    /// What was not seen yet is not seen.
    pub(super) async fn look(&mut self, members: Members, scope: &Scope) {
        let services = Arc::clone(&self.services);
        let look =
            scope.spawn_blocking("a look at what an agent works with", move || members.contacts(&services));
        let mut look = look.map(Result::ok).boxed();
        match timeout(limits::LOOK, &mut look).await {
            Ok(Some(found)) => self.found.add(found),
            Ok(None) => self.found.sight = Sight::Partial,
            Err(_elapsed) => self.looking.push(look),
        }
    }

    /// Waits for the pending looks: their subjects exist only while the agent does.
    ///
    /// # Cancel safety
    /// What was not seen yet is not seen.
    pub(super) async fn finish(&mut self, within: Duration) {
        let until = Instant::now() + within;
        for look in std::mem::take(&mut self.looking) {
            match timeout_at(until, look).await {
                Ok(Some(found)) => self.found.add(found),
                Ok(None) | Err(_) => self.found.sight = Sight::Partial,
            }
        }
    }

    /// The outside parties known so far.
    pub(super) fn named(&mut self) -> Outside {
        match self.outside() {
            named @ Outside::Named(_) => named,
            Outside::Unasked | Outside::None | Outside::Unseen => Outside::Unasked,
        }
    }

    /// What is known now that its processes have ended: a party that has ended too continues nothing.
    pub(super) fn outside(&mut self) -> Outside {
        self.found.forget_the_dead();
        match (self.found.found.as_slice(), self.found.sight) {
            ([], Sight::Whole) => Outside::None,
            ([], Sight::Partial) => Outside::Unseen,
            (found, _) => Outside::Named(found.iter().map(ToString::to_string).collect()),
        }
    }
}
