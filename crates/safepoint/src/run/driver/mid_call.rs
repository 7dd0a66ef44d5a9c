//! Questions that a call asks while it runs: ruled on, asked, answered once, or withdrawn with the call (S8).

use std::collections::{HashMap, HashSet};

use safepoint_scope::Mode;

use super::{Driver, LogFailure};
use crate::{
    contract::{
        approver::{self, ApprovalMode, Rule, RuleAction, ToolApproval, WithoutApprover},
        tool::Asks,
    },
    run::{
        executor::CallReply,
        machine::Machine,
        shared::{Closing, DecideError},
    },
    sync::{callback::Panicked, clock},
    value::{
        approval::{ApprovalKind, ApprovalRequest, Decision, Ruled},
        event::EventKind,
        history::note,
        ids::{ApprovalId, CallId},
        receipt::{Permission, RuledBy, RuledReport},
    },
};

/// The most characters of a question's title that are shown beside its name.
const SHOWN_CHARS: usize = 200;

/// The open questions, and those that a stop withdrew.
#[derive(Default)]
pub(super) struct MidCallApprovals {
    open: HashMap<ApprovalId, CallReply>,
    /// Questions without an approver here: a decision arrives from outside, or they expire.
    unattended: HashSet<ApprovalId>,
    withdrawn: Vec<ApprovalId>,
}

impl MidCallApprovals {
    /// Takes the questions that a stop withdrew.
    pub(super) fn take_withdrawn(&mut self) -> Vec<ApprovalId> {
        std::mem::take(&mut self.withdrawn)
    }

    /// The calls that only wait for a decision from outside: none of their questions has an approver here.
    pub(super) fn unattended(&self, machine: &Machine) -> HashSet<CallId> {
        let of = |is_wanted: &dyn Fn(&ApprovalId) -> bool| {
            let asked = machine.live().filter(|request| is_wanted(&request.id));
            asked.map(|request| request.call_id.clone()).collect::<HashSet<_>>()
        };
        let waits = |id: &ApprovalId| {
            self.unattended.contains(id) && self.open.get(id).is_some_and(|reply| !reply.is_withdrawn())
        };
        of(&waits).difference(&of(&|id| !waits(id))).cloned().collect()
    }
}

/// What the rules say about a question of a running call, and where a denial comes from: a rule, or the lack
/// of one.
fn ruling(rules: &[Rule], asks: &Asks) -> Result<(RuleAction, RuledBy), Panicked> {
    let ruling = match &asks.refusal {
        None => approver::rule(rules, ToolApproval::Required, &asks.tool, &asks.ruled_by)?,
        Some(why) => match approver::rule_of_its_own(rules, &asks.tool, &asks.ruled_by)? {
            Some(spoken) => spoken,
            None => return Ok((RuleAction::Deny(why.clone()), RuledBy::NoRule)),
        },
    };
    Ok((ruling, RuledBy::Rule))
}

impl Driver {
    /// A running call asks a question.
    pub(super) async fn asked_by_call(
        &mut self,
        call_id: CallId,
        asks: Asks,
        reply: CallReply,
    ) -> Result<(), LogFailure> {
        // The call has ended meanwhile: its question is withdrawn with the reply.
        let Some(call) = self.machine.running_call(&call_id).cloned() else { return Ok(()) };
        let asks = Asks { tool: format!("{}/{}", call.name, asks.tool), ..asks };
        let ruled = ruling(&self.cx.def.rules, &asks);
        let Some((ruling, by)) = self.unless_panicked("a rule", ruled) else { return Ok(()) };
        let decided = |policy, decision| Some((policy, decision));
        let deny = |message: &str| Decision::Deny { message: message.to_owned() };
        let by_policy = match (ruling, &self.cx.def.approvals) {
            (RuleAction::Allow, _) => decided(by, Decision::Approve),
            (RuleAction::Deny(message), _) => decided(by, Decision::Deny { message }),
            (RuleAction::Ask, ApprovalMode::Auto) => decided(RuledBy::Auto, Decision::Approve),
            (RuleAction::Ask, ApprovalMode::Ask(..))
                if self.is_covered(&call.name, &asks.tool, &asks.args) =>
            {
                decided(RuledBy::Always, Decision::Approve)
            }
            (RuleAction::Ask, ApprovalMode::Deny) => decided(RuledBy::Deny, deny(note::DENIED)),
            (RuleAction::Ask, ApprovalMode::Ask(None, WithoutApprover::Deny)) => {
                decided(RuledBy::NoApprover, deny(note::DENIED))
            }
            (RuleAction::Ask, ApprovalMode::Ask(..)) => None,
        };
        if let Some((policy, decision)) = by_policy {
            self.note_policy(&call_id, &asks, (policy, &decision));
            reply.give(decision);
            return Ok(());
        }
        let approver = match &self.cx.def.approvals {
            ApprovalMode::Ask(approver, _) => approver.clone(),
            ApprovalMode::Auto | ApprovalMode::Deny => None,
        };
        let request = self.ask(&call, asks, ApprovalKind::DuringCall).await?;
        self.approvals.mid_call.open.insert(request.id.clone(), reply);
        match approver {
            Some(approver) => self.ask_approver(approver, request),
            None => self.leave_unattended(request),
        }
        Ok(())
    }

    /// Reports what policy decided and adds it to the call's row, before the call gets the decision.
    fn note_policy(&self, call_id: &CallId, asks: &Asks, (by, decision): (RuledBy, &Decision)) {
        let permission = match decision {
            Decision::Deny { .. } => Permission::Denied,
            _ => Permission::Allowed,
        };
        let what = asks.args["title"].as_str().unwrap_or_default();
        let what: String = what.chars().take(SHOWN_CHARS).collect();
        let (tool, what) =
            (self.cx.def.secrets.clean_text(asks.tool.clone()), self.cx.def.secrets.clean_text(what));
        let ruled = RuledReport { tool, what, permission, by, times: 1 };
        if let Some(site) = self.calls.get(call_id) {
            site.board.rule(ruled.clone());
        }
        self.cx.shared.feed.push(EventKind::Ruled { call_id: call_id.clone(), ruled: Box::new(ruled) });
    }

    /// The approver is no longer asked: the call waits for a decision from outside, until the question
    /// expires.
    pub(super) fn leave_open(&mut self, id: &ApprovalId) {
        let of_call = self.machine.live().find(|request| request.id == *id).cloned();
        if let Some(request) = of_call {
            self.leave_unattended(request);
        }
    }

    fn leave_unattended(&mut self, request: ApprovalRequest) {
        self.approvals.mid_call.unattended.insert(request.id.clone());
        self.expire_later(&request);
    }

    /// Takes the first answer to a question of a running call.
    pub(super) async fn decide_while_running(
        &mut self,
        id: &ApprovalId,
        ruled: Ruled,
    ) -> Result<Result<(), DecideError>, LogFailure> {
        let now = clock::now();
        let is_overdue = self.machine.live().any(|request| request.id == *id && request.expires_at <= now);
        let closing = if is_overdue { Closing::Expired } else { Closing::Decided(ruled) };
        self.decide_live(id, closing).await?;
        Ok(if is_overdue { Err(DecideError::Expired) } else { Ok(()) })
    }

    /// Answers a question of a running call; `None` if there is no such question.
    pub(super) async fn decide_live(
        &mut self,
        id: &ApprovalId,
        closing: Closing,
    ) -> Result<Option<()>, LogFailure> {
        let Some(request) = self.machine.live().find(|request| request.id == *id).cloned() else {
            return Ok(None);
        };
        let decision = match &closing {
            Closing::Decided(ruled) => Some(ruled.decision.clone()),
            Closing::Expired => Some(Decision::Deny { message: note::EXPIRED.into() }),
            Closing::Withdrawn => None,
        };
        self.close(id, &request.call_id, closing).await?;
        self.approvals.mid_call.unattended.remove(id);
        if let (Some(reply), Some(decision)) = (self.approvals.mid_call.open.remove(id), decision) {
            reply.give(decision);
        }
        Ok(Some(()))
    }

    /// Withdraws the questions that no call waits for any more.
    pub(super) async fn withdraw_unwanted(&mut self) -> Result<(), LogFailure> {
        let unwanted = self.approvals.mid_call.open.iter().filter(|(_, reply)| reply.is_withdrawn());
        let unwanted: Vec<ApprovalId> = unwanted.map(|(id, _)| id.clone()).collect();
        self.withdraw(unwanted).await
    }

    /// Withdraws the questions of a call that ends.
    pub(super) async fn withdraw_of_call(&mut self, call: &CallId) -> Result<(), LogFailure> {
        let of_call = self.machine.live().filter(|request| request.call_id == *call);
        let of_call = of_call.map(|request| request.id.clone()).collect();
        self.withdraw(of_call).await
    }

    /// Withdraws what an earlier attempt asked: its calls ended with its process.
    pub(super) async fn withdraw_all(&mut self) -> Result<(), LogFailure> {
        let all = self.machine.live().map(|request| request.id.clone()).collect();
        self.withdraw(all).await
    }

    async fn withdraw(&mut self, ids: Vec<ApprovalId>) -> Result<(), LogFailure> {
        let is_now = self.cx.scope.demand().is_some_and(|demand| demand.mode == Mode::Now);
        for id in ids {
            let of_call = self.machine.live().find(|request| request.id == id).map(|asked| &asked.call_id);
            let site = of_call.and_then(|call| self.calls.get(call));
            let by_stop = is_now || site.is_some_and(|site| site.board.ends_with_the_run());
            self.decide_live(&id, Closing::Withdrawn).await?;
            self.approvals.mid_call.open.remove(&id);
            if by_stop {
                self.approvals.mid_call.withdrawn.push(id);
            }
        }
        Ok(())
    }
}
