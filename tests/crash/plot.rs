//! What happens in a world beside the kill: the rows of the matrix, each of them a value.

use safepoint::{
    StopRequest,
    raw::{
        StoredStop,
        store::{ApprovalsToWithdraw, StopIntent},
    },
    session::SessionStop,
};
use serde::{Deserialize, Serialize};

use super::process::Death;

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plot {
    pub(crate) agents: Agents,
    pub(crate) stop: Stop,
    pub(crate) answers: Answers,
    /// The life before the one that is enumerated, and how it ended.
    pub(crate) before: Option<Death>,
}

/// Which agents take part. Exhaustive: one, or one that calls another, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Agents {
    Alone,
    Attached,
    Background,
}

/// Who asks for a stop through the store, as another process does. Exhaustive: the moments of S7.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stop {
    Never,
    /// While the payment is under way; after the stop the work is resumed.
    InThePayment(Wish),
    /// While the transfer of the second round is under way, after the payment of the first.
    InTheTransfer(Wish),
    /// After each death, while the session has no owner.
    WhileDead(Wish),
}

/// Who answers the open questions when the process dies. Exhaustive: the next owner, or another process
/// before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answers {
    ByTheOwner,
    /// After each death, while the session has no owner.
    WhileDead,
}

/// What is asked. Exhaustive: the turn alone, or the session, at once or at a safe point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wish {
    Turn,
    Now,
    Graceful,
}

/// What a session that was stopped by a wish gives as the cause.
pub(crate) const CAUSE: &str = "a user wished it";

impl Plot {
    pub(crate) const PLAIN: Self =
        Self { agents: Agents::Alone, stop: Stop::Never, answers: Answers::ByTheOwner, before: None };

    pub(crate) const fn with(agents: Agents) -> Self {
        Self { agents, ..Self::PLAIN }
    }

    pub(crate) const fn stopped(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    pub(crate) const fn answered(self, answers: Answers) -> Self {
        Self { answers, ..self }
    }

    /// The session has died before, in this moment.
    pub(crate) const fn after(self, death: Death) -> Self {
        Self { before: Some(death), ..self }
    }
}

impl Wish {
    pub(crate) fn intent(self) -> StopIntent {
        let session =
            |stop: SessionStop| (StoredStop::Session(stop.with_cause(CAUSE)), ApprovalsToWithdraw::Stay);
        let (intent, approvals) = match self {
            Self::Turn => (StoredStop::Turn(None, StopRequest::now()), ApprovalsToWithdraw::Withdrawn),
            Self::Now => session(SessionStop::now()),
            Self::Graceful => session(SessionStop::graceful()),
        };
        StopIntent { bytes: intent.to_bytes(), approvals }
    }

    /// Whether the session ends by it, and not the turn alone.
    pub(crate) fn ends_the_session(self) -> bool {
        self != Self::Turn
    }
}
