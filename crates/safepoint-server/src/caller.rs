//! A principal, and what every surface does for it: sessions are found, items pushed and stopped, questions answered. A surface
//! translates; it has no rules of its own.
//!
//! **Invariants**: what a principal may not see does not exist for it; no work of a run is done in the future of a request.

use std::sync::Arc;

use axum::http::StatusCode;
use safepoint::{
    ids::SessionId,
    raw::{store::Liveness, trace::TraceContext},
    store::{Error, SessionRow, Store},
};

use crate::{
    access::{AccessScope, Principal},
    host::{HostState, open::OpenSession, setup::Setup},
    load::Load,
    problem::{Answered, PARKED, Problem},
    routes::table::Refuses,
};

pub(crate) mod alone;
pub(crate) mod decisions;
pub(crate) mod ended;
pub(crate) mod items;
pub(crate) mod left;
pub(crate) mod named;
pub(crate) mod sessions;
pub(crate) mod stops;

pub(crate) use self::{named::KeptItem, sessions::SessionMake};

/// A principal at one host.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) host: Arc<HostState>,
    pub(crate) load: Arc<Load>,
    pub(crate) who: Principal,
    /// The trace that the request is in.
    pub(crate) trace: Option<TraceContext>,
}

/// A session that the caller sees.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) row: SessionRow,
    pub(crate) setup: Setup,
}

/// Who has a session. Exhaustive: this process, or another one.
pub(crate) enum Owner {
    Here(Arc<OpenSession>),
    Elsewhere,
}

impl Kept {
    pub(crate) fn id(&self) -> &SessionId {
        &self.row.id
    }
}

impl Caller {
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.host.store
    }

    /// Whether the caller may do now what needs this scope.
    ///
    /// # Errors
    /// `scope_missing`, `rate` where load refuses it, and `draining` for what would begin work.
    pub(crate) fn needs(&self, scope: AccessScope, refuses: Refuses) -> Answered<()> {
        if !self.who.may(scope) {
            let detail = format!("this token has not the scope `{scope}`");
            return Err(
                Problem::new(StatusCode::FORBIDDEN, "scope_missing", detail).with("scope", scope.as_str())
            );
        }
        if refuses == Refuses::UnderLoad {
            self.load.admit(self.who.name())?;
        }
        if scope == AccessScope::Talk && self.host.is_draining() {
            return Err(Problem::draining());
        }
        Ok(())
    }

    /// The session of this id, if the caller sees it.
    ///
    /// # Errors
    /// 404, for one that it does not see too.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn session(&self, id: &str) -> Answered<Kept> {
        let row = self.store().open(&SessionId::from(id)).await?;
        let setup = Setup::of(&row);
        if self.who.sees(&setup.principal, &setup.agent) {
            Ok(Kept { row, setup })
        } else {
            Err(Problem::no_such("session"))
        }
    }

    /// Who has the session, which this process opens if none has it.
    ///
    /// # Errors
    /// `agent_gone`, `draining`, and the store's.
    ///
    /// # Cancel safety
    /// It may be opened all the same.
    pub(crate) async fn owner(&self, kept: &Kept) -> Answered<Owner> {
        let Kept { row, setup } = kept;
        if let Some(open) = self.host.opened(&row.id) {
            return Ok(Owner::Here(open));
        }
        if !self.host.agents.contains_key(&setup.agent) {
            let detail =
                format!("this server has no agent `{}`: the session can be read and stopped", setup.agent);
            return Err(Problem::conflict("agent_gone", detail));
        }
        if self.host.is_draining() {
            return Err(Problem::draining());
        }
        match self.host.open(row, setup).await {
            Ok(open) => Ok(Owner::Here(open)),
            Err(Error::Held(..)) => Ok(Owner::Elsewhere),
            Err(error) => Err(error.into()),
        }
    }

    /// The same, and whether it was parked: who asks for such a session by name has it taken again (S7.46).
    ///
    /// # Errors
    /// As for [`owner`](Self::owner).
    ///
    /// # Cancel safety
    /// It may be opened all the same, and is not parked then.
    pub(crate) async fn owner_by_name(&self, kept: &Kept) -> Answered<(Owner, bool)> {
        match self.owner(kept).await {
            Err(problem) if problem.code() == PARKED => {
                self.store().unpark(kept.id()).await?;
                Ok((self.owner(kept).await?, true))
            }
            owner => Ok((owner?, false)),
        }
    }

    /// Has the session's owner look at what was put into the store; opens it if it has none.
    pub(crate) fn wake(&self, kept: &Kept) {
        let Kept { row, setup } = kept;
        match self.host.opened(&row.id) {
            Some(open) => open.handle().check_store(),
            None if self.host.agents.contains_key(&setup.agent) && !self.host.is_draining() => {
                self.host.begin(row, setup);
            }
            None => {}
        }
    }
}

/// Whether a process that may be alive has it.
pub(crate) fn is_held(row: &SessionRow) -> bool {
    row.holder.as_ref().is_some_and(|held| held.owner.life() != Liveness::Dead)
}
