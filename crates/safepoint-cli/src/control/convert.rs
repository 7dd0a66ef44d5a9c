//! A stop or a policy as it came over the socket, as the engine takes it.

use std::{fmt::Display, str::FromStr, time::Duration};

use safepoint::{
    Grace, Reason, SafePoints, StopRequest,
    raw::{
        StoredStop,
        store::{ApprovalsToWithdraw, StopIntent},
    },
    session::{IfUndelivered, Policy, Preempt, RejectReason, SessionStop},
    steer::SteerTiming,
    stop::Reach,
};

use super::protocol::{Afterwards, ModeArg, PushAsk, StopAsk};
use crate::{
    args::control::{OrArg, PolicyArg, ScopeArg},
    exit::{Usage, code},
};

impl PushAsk {
    /// # Errors
    /// If that is no policy, with why.
    pub(crate) fn policy(&self) -> Result<Policy, Usage> {
        let of_a_preempt = [
            ("--at", self.at.is_some()),
            ("--within", self.within_ms.is_some()),
            ("--delay", self.delay_ms.is_some()),
            ("--turn", self.turn.is_some() && self.policy != PolicyArg::Steer),
        ];
        if let Some((option, _)) = of_a_preempt.iter().find(|(_, is_given)| *is_given)
            && self.policy != PolicyArg::Preempt
        {
            return Err(Usage(format!("{option} says how a turn is stopped: it goes with --policy preempt")));
        }
        if self.within_ms == Some(0) {
            return Err(Usage("--within 0 is now: leave out --at and --within".into()));
        }
        Ok(match self.policy {
            PolicyArg::Enqueue => Policy::Enqueue,
            PolicyArg::Reject => Policy::Reject,
            PolicyArg::Rollback => Policy::Rollback,
            PolicyArg::Steer => {
                let queues = self.or == OrArg::Queue;
                let or = if queues { IfUndelivered::Queue } else { IfUndelivered::Return };
                match &self.turn {
                    Some(turn) => Policy::SteerTurn(parsed(turn)?, SteerTiming::NextRequest, or),
                    None => Policy::Steer(SteerTiming::NextRequest, or),
                }
            }
            PolicyArg::Preempt => {
                let points = self.at.as_deref().map(parsed).transpose()?;
                let mut preempt = match (points, self.within_ms.and_then(grace)) {
                    (None, _) => Preempt::now(),
                    (Some(points), None) => Preempt::at(points),
                    (Some(points), Some(grace)) => Preempt::at_within(points, grace),
                };
                if let Some(delay) = self.delay_ms {
                    preempt = preempt.after(Duration::from_millis(delay));
                }
                if let Some(turn) = &self.turn {
                    preempt = preempt.of(parsed(turn)?);
                }
                preempt.into()
            }
        })
    }
}

impl StopAsk {
    /// Whether it can be asked, of whatever session it may be.
    ///
    /// # Errors
    /// If not, with why.
    pub(crate) fn check(&self) -> Result<(), Usage> {
        if self.within_ms == Some(0) {
            return Err(Usage("--within 0 is now: write --now".into()));
        }
        if self.mode == (ModeArg::WhenIdle { ms: 0 }) {
            return Err(Usage("--when-idle 0 is the turn's end: write --at turn-end".into()));
        }
        if self.run.is_some() || self.call.is_some() {
            return self.request().map(drop);
        }
        self.session_stop().and_then(|_| self.turn_stop()).map(drop)
    }

    /// As a request to a run.
    pub(crate) fn request(&self) -> Result<StopRequest, Usage> {
        let mut request = match (&self.mode, self.within_ms.and_then(grace)) {
            (ModeArg::Now, _) => StopRequest::now(),
            _ if self.within_ms == Some(0) => StopRequest::now(),
            (ModeArg::Points(names), Some(grace)) => StopRequest::at_within(parsed(names)?, grace),
            (ModeArg::Points(names), None) => StopRequest::at(parsed(names)?),
            (ModeArg::TurnEnd | ModeArg::WhenIdle { .. }, _) => {
                let why = "a turn's end and idleness are a session's; name safe points, or now";
                return Err(Usage(why.into()));
            }
        };
        if let Some(cap) = self.cleanup_cap_ms {
            request = request.with_cleanup_cap(Duration::from_millis(cap));
        }
        let reach = if self.scope == ScopeArg::Root { Reach::Root } else { Reach::Tree };
        Ok(request.with_reach(reach).with_reason(self.reason()))
    }

    /// The request for the open turn; none if that turn should end by itself.
    pub(crate) fn turn_stop(&self) -> Result<Option<StopRequest>, Usage> {
        match self.mode {
            ModeArg::TurnEnd | ModeArg::WhenIdle { .. } => Ok(None),
            ModeArg::Now | ModeArg::Points(_) => self.request().map(Some),
        }
    }

    /// As one intent for each of many sessions, in which no approval is looked for.
    ///
    /// # Errors
    /// If one intent does not say it.
    pub(crate) fn of_many(&self) -> Result<StopIntent, Usage> {
        let (stop, None) = self.session_stop()? else {
            return Err(Usage(
                "--all stops now, at the next safe point of any kind, at the turn's end or when idle".into(),
            ));
        };
        Ok(StopIntent { bytes: StoredStop::Session(stop).to_bytes(), approvals: ApprovalsToWithdraw::Stay })
    }

    pub(crate) fn reason(&self) -> Reason {
        Reason::user(self.because.clone().unwrap_or_else(|| "from another terminal".to_owned()))
    }

    /// The stop of the whole session, and a stop of the running turn for what the session's stop cannot
    /// express.
    pub(crate) fn session_stop(&self) -> Result<(SessionStop, Option<StopRequest>), Usage> {
        let is_tree = self.scope == ScopeArg::Tree;
        let (stop, turn) = match &self.mode {
            ModeArg::Now if is_tree => (SessionStop::now(), None),
            ModeArg::TurnEnd => (SessionStop::at_turn_end(), None),
            ModeArg::WhenIdle { ms } => (SessionStop::when_idle_for(Duration::from_millis(*ms)), None),
            ModeArg::Points(names) if is_tree && parsed::<SafePoints>(names)? == SafePoints::ANY => {
                match (self.within_ms, self.within_ms.and_then(grace)) {
                    (None, _) => (SessionStop::graceful(), None),
                    (Some(_), Some(grace)) => (SessionStop::graceful_within(grace), None),
                    (Some(_zero), None) => (SessionStop::now(), None),
                }
            }
            ModeArg::Now | ModeArg::Points(_) => (SessionStop::at_turn_end(), Some(self.request()?)),
        };
        let mut stop = stop.with_reason(self.reason());
        if let Some(cap) = self.cleanup_cap_ms {
            stop = stop.cleanup_cap(Duration::from_millis(cap));
        }
        if let Some(because) = &self.because {
            stop = stop.with_cause(because.clone());
        }
        if self.afterwards == Afterwards::Abandoned {
            stop = stop.abandon();
        }
        Ok((stop, turn))
    }
}

/// The exit code for an item that came back.
pub(crate) fn refused(refusal: RejectReason) -> u8 {
    match refusal {
        RejectReason::Busy(_) | RejectReason::TurnMismatch => code::CONFLICT,
        RejectReason::NoActiveTurn | RejectReason::NotDelivered => code::TOO_LATE,
        RejectReason::Closed => code::NO_ROOM,
        RejectReason::Blank => code::USAGE,
        _ => code::OTHER,
    }
}

pub(super) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, Usage> {
    text.parse().map_err(|error| Usage(format!("{error}")))
}

fn grace(ms: u64) -> Option<Grace> {
    Grace::try_from(Duration::from_millis(ms)).ok()
}
