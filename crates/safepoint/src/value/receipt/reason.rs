//! Why something was stopped, as a receipt says it.

use jiff::Timestamp;
use safepoint_scope::{Actor, Code, Reason};
use serde::{Deserialize, Serialize};

/// A reason in its stable form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReasonReport {
    /// The code of S1.10.
    pub code: String,
    /// Who asked.
    pub actor: String,
    /// In their words.
    pub text: String,
    /// When it was asked; records of an early release do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// The reason that led to this one; the last of them began the cascade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caused_by: Option<Box<Self>>,
}

impl ReasonReport {
    /// What began the cascade: itself if nothing led to it.
    #[must_use]
    pub fn root(&self) -> &Self {
        let mut reason = self;
        while let Some(cause) = &reason.caused_by {
            reason = cause;
        }
        reason
    }

    /// Whether it comes from the failure of a run above, and not from a request.
    pub(crate) fn is_of_a_failure(&self) -> bool {
        self.code == Code::PARENT.as_str() && self.actor == Actor::Engine.to_string()
    }
}

impl From<&Reason> for ReasonReport {
    fn from(reason: &Reason) -> Self {
        Self {
            code: reason.code().as_str().to_owned(),
            actor: reason.actor().to_string(),
            text: reason.text().to_owned(),
            at: Timestamp::try_from(reason.at()).ok(),
            caused_by: reason.cause().map(|cause| Box::new(cause.into())),
        }
    }
}

/// The actor stays the one that was recorded (S1.10).
impl From<&ReasonReport> for Reason {
    fn from(report: &ReasonReport) -> Self {
        let mut reason = Self::new(Code::from(report.code.clone()))
            .with_actor(Actor::from(report.actor.as_str()))
            .with_text(report.text.clone());
        if let Some(at) = report.at {
            reason = reason.asked_at(at.into());
        }
        if let Some(cause) = &report.caused_by {
            reason = reason.caused_by(&Self::from(&**cause));
        }
        reason
    }
}
