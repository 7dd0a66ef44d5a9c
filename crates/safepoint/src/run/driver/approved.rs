//! A yes that was given: it holds for what it was given for, and for nothing else (S8.2, S8.8).

use super::{Driver, LogFailure};
use crate::{
    contract::{
        approver::{self, ApprovalMode, RuleAction, ToolApproval},
        tool::Asks,
    },
    definition::toolset::InvalidCall,
    run::machine::{Allowed, ApprovedArgs},
    value::{approval::ApprovalKind, message::ToolCall},
};

impl Driver {
    /// A person said yes, to this tool as it was. Arguments that they changed are validated again: what a rule denies of
    /// those is not covered by the yes, nor what another rule asks than that which asked before (S8.2).
    pub(super) async fn judge_approved(
        &mut self,
        index: usize,
        call: &ToolCall,
        Allowed { args, shown, asked, definition }: Allowed,
    ) -> Result<(), LogFailure> {
        let spec = match self.cx.def.tools.fit(&call.name, &args) {
            Ok(tool) => tool.spec().clone(),
            Err(InvalidCall(why)) => return self.misfit(call, why).await,
        };
        let is_same = definition.is_empty() || definition == self.cx.def.tools.definition(&call.name);
        let own = if is_same { ToolApproval::NotNeeded } else { spec.approval };
        let rules = &self.cx.def.rules;
        let judged = approver::rule(rules, own, &call.name, &args)
            .and_then(|ruling| Ok((ruling, approver::is_one_rule(rules, &call.name, (&asked, &args))?)));
        let (ruling, is_asked_for) = match judged {
            Ok(judged) => judged,
            Err(panic) => {
                self.callback_panicked("a rule", &panic);
                return Ok(());
            }
        };
        let is_bound = is_same && (shown == ApprovedArgs::Exactly || is_asked_for);
        match ruling {
            RuleAction::Deny(why) if shown == ApprovedArgs::Others || !is_same => self.deny(call, why).await,
            // Where everything may run that a rule asks about, this may.
            RuleAction::Ask if matches!(self.cx.def.approvals, ApprovalMode::Auto) => {
                self.machine.clear(index, args, spec.may_overlap());
                Ok(())
            }
            RuleAction::Ask if !is_bound && !self.is_covered(&call.name, &call.name, &args) => {
                let request = self.ask(call, Asks::about(&call.name, args), ApprovalKind::BeforeCall).await?;
                match self.cx.def.approvals.clone() {
                    ApprovalMode::Ask(Some(approver), _) => self.put(approver, request),
                    _ => self.wait_behind(&request),
                }
                Ok(())
            }
            RuleAction::Deny(_) | RuleAction::Ask | RuleAction::Allow => {
                self.machine.clear(index, args, spec.may_overlap());
                Ok(())
            }
        }
    }
}
