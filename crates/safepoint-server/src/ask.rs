//! What requests ask for: the bodies, and what they mean to the engine. A field that is not known is refused.

use std::{fmt::Display, str::FromStr, time::Duration};

use axum::http::StatusCode;
use safepoint::{
    Grace, Reason, SafePoints, StopRequest,
    approval::{AllowScope, Decision},
    ids::TurnId,
    session::{IfUndelivered, Policy, Preempt, QueueAfterStop, SessionStop},
    steer::SteerTiming,
    stop::{Actor, Reach},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    caller::{items::ItemPush, stops::StopWait},
    problem::{Answered, Problem},
};

/// How long the work that runs may take to its next safe point, unless the request says so.
const GRACE_MS: u64 = 5_000;

/// A new session.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionAsk {
    /// The agent of the session; it may be left out where the server has one only.
    pub(crate) agent: Option<String>,
    /// What lists of sessions show.
    pub(crate) title: Option<String>,
    /// The first item: the session never exists without it.
    pub(crate) item: Option<ItemAsk>,
}

/// An item.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemAsk {
    /// What is said.
    pub(crate) text: String,
    /// What happens if a turn is running.
    #[serde(default)]
    pub(crate) policy: PolicyWord,
    /// The turn that a steer or a preempt is meant for.
    pub(crate) turn: Option<String>,
    /// Where a steer goes that cannot be delivered.
    #[serde(default)]
    pub(crate) or: OrWord,
    /// A steer: whether it cuts the message that streams.
    #[serde(default)]
    pub(crate) at_once: bool,
    /// The safe points of a preempt; without any, at once.
    pub(crate) at: Option<String>,
    /// How long a preempt waits for them, in milliseconds.
    pub(crate) within_ms: Option<u64>,
    /// How long a preempt waits before it stops, in milliseconds.
    pub(crate) delay_ms: Option<u64>,
}

/// Exhaustive: the policies of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PolicyWord {
    #[default]
    Enqueue,
    Steer,
    Preempt,
    Reject,
    Rollback,
}

/// Exhaustive: it waits, or comes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrWord {
    #[default]
    Queue,
    Return,
}

/// A stop.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StopAsk {
    /// What stops; without it the turn that runs.
    pub(crate) what: What,
    /// What the items behind a stopped item do.
    pub(crate) queue: QueueWord,
    /// `now`, `turn_end` (of a session), `any`, or safe points by their names, with commas.
    pub(crate) mode: Option<String>,
    /// How long the next safe point may take, in milliseconds; then it is now.
    pub(crate) within_ms: Option<u64>,
    /// Whether child runs stop too.
    pub(crate) reach: ReachWord,
    /// How long all clean-ups may take, in milliseconds.
    pub(crate) cleanup_cap_ms: Option<u64>,
    /// Why, for the receipt.
    pub(crate) reason: Option<String>,
}

/// What a stop is of. Exhaustive: what the routes can stop.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    /// The loop of the session, which a later item opens again.
    Session,
    /// This turn; null is the one that runs.
    Turn(Option<String>),
    /// This item, wherever it is: one that no turn has is withdrawn, and the turn that has it is stopped.
    Item(String),
    /// This call of the turn that runs. Such a stop has no number: it is not durable.
    Call(String),
}

impl Default for What {
    fn default() -> Self {
        Self::Turn(None)
    }
}

/// Exhaustive: they wait for something newer, or run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QueueWord {
    #[default]
    Holds,
    Continues,
}

/// Exhaustive: with the child runs, or without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReachWord {
    #[default]
    Tree,
    Root,
}

/// The answer to a question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionAsk {
    /// The digest of the question: the answer is to exactly this call with exactly these arguments.
    pub(crate) digest: String,
    /// The answer.
    pub(crate) decision: DecisionWord,
    /// The arguments of `approve_with`.
    pub(crate) args: Option<Value>,
    /// What the model is given with `approve_with` or `deny`.
    pub(crate) message: Option<String>,
    /// The result of `respond`.
    pub(crate) result: Option<String>,
    /// What `approve_always` covers.
    pub(crate) covers: Option<AllowScope>,
}

/// Exhaustive: the decisions of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DecisionWord {
    Approve,
    ApproveAlways,
    ApproveWith,
    Deny,
    Respond,
}

impl ItemAsk {
    /// The item that is asked for, under this key.
    ///
    /// # Errors
    /// If its policy is none.
    pub(crate) fn item(self, key: Option<String>) -> Answered<ItemPush> {
        let policy = self.policy()?;
        Ok(ItemPush { text: self.text, policy, key })
    }

    /// # Errors
    /// If that is no policy.
    pub(crate) fn policy(&self) -> Answered<Policy> {
        let turn = self.turn.as_deref().map(|turn| parsed::<TurnId>("turn", turn)).transpose()?;
        let of_a_preempt = [
            ("at", self.at.is_some()),
            ("within_ms", self.within_ms.is_some()),
            ("delay_ms", self.delay_ms.is_some()),
        ];
        if let Some((field, _)) = of_a_preempt.iter().find(|(_, is_given)| *is_given)
            && self.policy != PolicyWord::Preempt
        {
            return Err(Problem::bad_request(format!("`{field}` goes with the policy `preempt`")));
        }
        if turn.is_some() && !matches!(self.policy, PolicyWord::Preempt | PolicyWord::Steer) {
            return Err(Problem::bad_request("`turn` goes with the policies `steer` and `preempt`"));
        }
        Ok(match self.policy {
            PolicyWord::Enqueue => Policy::Enqueue,
            PolicyWord::Reject => Policy::Reject,
            PolicyWord::Rollback => Policy::Rollback,
            PolicyWord::Steer => {
                let when = if self.at_once { SteerTiming::AtOnce } else { SteerTiming::NextRequest };
                let or = match self.or {
                    OrWord::Queue => IfUndelivered::Queue,
                    OrWord::Return => IfUndelivered::Return,
                };
                match turn {
                    Some(turn) => Policy::SteerTurn(turn, when, or),
                    None => Policy::Steer(when, or),
                }
            }
            PolicyWord::Preempt => self.preempt(turn)?.into(),
        })
    }

    fn preempt(&self, turn: Option<TurnId>) -> Answered<Preempt> {
        let points = self.at.as_deref().map(|at| parsed::<SafePoints>("at", at)).transpose()?;
        let mut preempt = match (points, self.within_ms) {
            (None, None) => Preempt::now(),
            (None, Some(_)) => return Err(Problem::bad_request("`within_ms` goes with `at`")),
            (Some(points), None) => Preempt::at(points),
            (Some(points), Some(within)) => Preempt::at_within(points, grace(within)?),
        };
        if let Some(delay) = self.delay_ms {
            preempt = preempt.after(Duration::from_millis(delay));
        }
        Ok(if let Some(turn) = turn { preempt.of(turn) } else { preempt })
    }
}

impl StopAsk {
    /// As a request to a turn or a call, in the name of `who`.
    ///
    /// # Errors
    /// `invalid_stop`.
    pub(crate) fn request(&self, who: &str) -> Answered<StopRequest> {
        let mode = self.mode.as_deref().unwrap_or("any");
        let within = self.within_ms.or_else(|| self.mode.is_none().then_some(GRACE_MS));
        let request = match (mode, within) {
            ("now", None) => StopRequest::now(),
            ("now", Some(_)) => return Err(invalid("`within_ms` goes with safe points")),
            ("turn_end", _) => return Err(invalid("`turn_end` is a session's: `\"what\": \"session\"`")),
            (points, within) => {
                let points: SafePoints = points.parse().map_err(|error| invalid(format!("{error}")))?;
                match within {
                    Some(within) => StopRequest::at_within(points, grace(within)?),
                    None => StopRequest::at(points),
                }
            }
        };
        let request = match self.cleanup_cap_ms {
            Some(cap) => request.with_cleanup_cap(Duration::from_millis(cap)),
            None => request,
        };
        let reach = match self.reach {
            ReachWord::Tree => Reach::Tree,
            ReachWord::Root => Reach::Root,
        };
        Ok(request.with_reach(reach).with_reason(self.reason(who)))
    }

    /// As a stop of the session's loop.
    ///
    /// # Errors
    /// `invalid_stop`.
    pub(crate) fn session_stop(&self, who: &str) -> Answered<SessionStop> {
        let within = self.within_ms.or_else(|| self.mode.is_none().then_some(GRACE_MS));
        let stop = match (self.mode.as_deref().unwrap_or("any"), within) {
            ("now", None) => SessionStop::now(),
            ("turn_end", None) => SessionStop::at_turn_end(),
            ("any", None) => SessionStop::graceful(),
            ("any", Some(within)) => SessionStop::graceful_within(grace(within)?),
            (mode, _) => return Err(invalid(format!("a session does not stop at `{mode}`"))),
        };
        let stop = match self.cleanup_cap_ms {
            Some(cap) => stop.cleanup_cap(Duration::from_millis(cap)),
            None => stop,
        };
        let stop = stop.with_reason(self.reason(who));
        Ok(if let Some(reason) = &self.reason { stop.with_cause(reason.clone()) } else { stop })
    }

    /// What becomes of the items behind a stopped item.
    pub(crate) fn queue(&self) -> QueueAfterStop {
        match self.queue {
            QueueWord::Holds => QueueAfterStop::Holds,
            QueueWord::Continues => QueueAfterStop::Continues,
        }
    }

    /// The turn that is named.
    pub(crate) fn turn(&self) -> Answered<Option<TurnId>> {
        match &self.what {
            What::Turn(Some(turn)) => parsed("turn", turn).map(Some),
            What::Turn(None) | What::Session | What::Item(_) | What::Call(_) => Ok(None),
        }
    }

    fn reason(&self, who: &str) -> Reason {
        let text = self.reason.clone().unwrap_or_else(|| "over HTTP".to_owned());
        Reason::user(text).with_actor(Actor::Remote(who.into()))
    }
}

impl DecisionAsk {
    /// # Errors
    /// If a field is missing, or is one of another decision.
    pub(crate) fn decision(self) -> Answered<Decision> {
        let Self { decision, args, message, result, covers, .. } = self;
        let found = match (decision, args, message, result, covers) {
            (DecisionWord::Approve, None, None, None, None) => Decision::Approve,
            (DecisionWord::ApproveAlways, None, None, None, covers) => {
                Decision::ApproveAlways { covers: covers.unwrap_or(AllowScope::Call) }
            }
            (DecisionWord::ApproveWith, Some(args), message, None, None) => {
                Decision::ApproveWith { args, message: message.unwrap_or_default() }
            }
            (DecisionWord::Deny, None, message, None, None) => Decision::deny(message.unwrap_or_default()),
            (DecisionWord::Respond, None, None, Some(result), None) => Decision::Respond { result },
            _ => return Err(Problem::bad_request("the fields are not those of this decision")),
        };
        Ok(found)
    }
}

impl FromStr for StopWait {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "no" => Ok(Self::No),
            "settled" | "rest" => Ok(Self::Settled),
            "quiet" => Ok(Self::Quiet),
            other => Err(format!("`{other}` is nothing to wait for")),
        }
    }
}

/// A field or a parameter as what it should be.
///
/// # Errors
/// If it is not.
pub(crate) fn parsed<T: FromStr<Err: Display>>(name: &str, text: &str) -> Answered<T> {
    text.parse().map_err(|error| Problem::bad_request(format!("`{name}`: {error}")))
}

fn grace(ms: u64) -> Answered<Grace> {
    Grace::try_from(Duration::from_millis(ms)).map_err(|error| invalid(format!("`within_ms`: {error}")))
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid_stop", detail)
}
