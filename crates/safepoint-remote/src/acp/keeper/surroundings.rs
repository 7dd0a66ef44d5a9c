//! What is around an agent's own processes: whom they work with that is not ours, and what they have left in the background
//! (S10.60, S10.65).
//!
//! **Invariants** A look holds up a stop by no more than its bound; one that takes longer is waited for
//! before the agent is ended.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use safepoint::{Scope, receipt::Outside};
use safepoint_tools::process::{Contacts, Members, Process, Service, Sight, TreeMember};
use tokio::time::{Instant, timeout, timeout_at};

use crate::acp::limits;

/// A look under way; none where it came to nothing.
type Look = BoxFuture<'static, Option<Contacts>>;

/// One agent's.
pub(super) struct Surroundings {
    services: Arc<[Service]>,
    found: Contacts,
    looking: Vec<Look>,
    /// What of its tree was there before it was asked to do anything.
    own: Vec<TreeMember>,
}

impl Surroundings {
    pub(super) fn new(services: Arc<[Service]>) -> Self {
        Self { services, found: Contacts::default(), looking: Vec::new(), own: Vec::new() }
    }

    /// It is about to be asked: what runs now is the agent itself.
    pub(super) fn note_own(&mut self, process: &Process) {
        self.own = process.members().alive();
    }

    /// What runs of its tree beside the agent itself.
    pub(super) fn background(&self, process: &Process) -> Vec<TreeMember> {
        let mut running = process.members().alive();
        running.retain(|member| !self.own.contains(member));
        running
    }

    /// Looks whom its processes hold a connection to.
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

    /// Waits for the looks under way: what they are about is there only while the agent is.
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

    /// Who is known so far.
    pub(super) fn named(&mut self) -> Outside {
        match self.outside() {
            named @ Outside::Named(_) => named,
            Outside::Unasked | Outside::Nobody | Outside::Unseen => Outside::Unasked,
        }
    }

    /// What is known of it now that its processes have ended: who has ended too goes on with nothing.
    pub(super) fn outside(&mut self) -> Outside {
        self.found.forget_the_dead();
        match (self.found.found.as_slice(), self.found.sight) {
            ([], Sight::Whole) => Outside::Nobody,
            ([], Sight::Partial) => Outside::Unseen,
            (found, _) => Outside::Named(found.iter().map(ToString::to_string).collect()),
        }
    }
}
