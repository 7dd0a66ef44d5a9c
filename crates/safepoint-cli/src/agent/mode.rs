//! The mode that holds now: what judges calls reads it at each call, and the screen changes it.
//!
//! **Invariants**: a change holds from the next call on, in child runs too; it answers no question; while the mode is `plan`, no
//! call that could change something begins, whatever asked for it and whatever was allowed before.

use std::sync::{Arc, Mutex};

use safepoint::{
    AgentBuilder, Tool,
    approval::{Rule, RuleAction},
    hook::{CallVerdict, HookCall, HookResult, Hooks, ready},
    tool::{EffectClass, from_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    args::{agent::AgentArgs, mode::WorkMode},
    render::chat::modes::PRESENT_PLAN,
    sync::lock,
};

/// The model's text for a call that could change something in plan mode.
const IN_PLAN: &str = "[denied: the user chose plan mode, in which nothing is changed. Only tools that read may run: read on, \
     and say what you would do.]";
/// The instructions of plan mode.
const INSTRUCTIONS: &str = "Plan mode: change nothing. You have only tools that read. Find out what you need to know, ask if \
     something is open, and make a plan: what you would change, where, and how it is checked.";
const REVIEWING: &str = "This turn is a review: change nothing. You have only tools that read.";
const HELPING: &str = "Plan mode: change nothing. You have only tools that read; say what you found.";
const PRESENTING: &str = "When the plan is complete, call `present_plan` with all of it, as Markdown, and end your turn. The user \
     approves it, edits it or rejects it. Only then is it carried out.";
const PRESENTED: &str = "The plan is shown to the user, who now approves it, edits it or rejects it. End your turn here, without \
     further text.";

/// The mode of one conversation, shared.
#[derive(Clone)]
pub(crate) struct CurrentMode {
    /// Held for one look or one change, under no other lock, and nothing is called under it.
    now: Arc<Mutex<WorkMode>>,
    plan_end: PlanEnd,
}

/// What a turn that reads only is for. Exhaustive: its answer is a plan, or the model presents one and a person is asked, or its
/// answer is a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanEnd {
    Answer,
    Question,
    Review,
}

impl CurrentMode {
    pub(crate) fn of(args: &AgentArgs, plan_end: PlanEnd) -> Self {
        Self { now: Arc::new(Mutex::new(WorkMode::first(args.mode, args.approve))), plan_end }
    }

    /// That of a review, which stays: only tools that read.
    pub(crate) fn reviewing() -> Self {
        Self { now: Arc::new(Mutex::new(WorkMode::Plan)), plan_end: PlanEnd::Review }
    }

    pub(crate) fn now(&self) -> WorkMode {
        *lock(&self.now)
    }

    pub(crate) fn set(&self, mode: WorkMode) {
        *lock(&self.now) = mode;
    }

    pub(crate) fn is_plan(&self) -> bool {
        self.now() == WorkMode::Plan
    }

    /// What a model is offered of these tools now.
    pub(crate) fn offered(&self, tools: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        if !self.is_plan() {
            return tools.to_vec();
        }
        let reading = tools.iter().filter(|tool| only_reads(tool.as_ref())).cloned();
        let presents = (self.plan_end == PlanEnd::Question).then(present_plan);
        reading.chain(presents).collect()
    }

    /// The same for an agent that does a part of the work.
    pub(crate) fn reading_only(&self) -> Option<String> {
        self.is_plan().then(|| HELPING.to_owned())
    }

    /// What the instructions say of the mode.
    pub(crate) fn instructions(&self) -> Option<String> {
        let presenting = match self.plan_end {
            PlanEnd::Question => format!(" {PRESENTING}"),
            PlanEnd::Answer => String::new(),
            PlanEnd::Review => return Some(REVIEWING.to_owned()),
        };
        self.is_plan().then(|| format!("{INSTRUCTIONS}{presenting}"))
    }

    /// Refuses, while the mode is `plan`, each call of these tools that could change something: before it is asked about, and
    /// again when it would begin, since a question may have been answered meanwhile.
    pub(crate) fn guard(&self, mut builder: AgentBuilder, changing: &[String]) -> AgentBuilder {
        for name in changing {
            let mode = self.clone();
            let rule = Rule::on(name.as_str(), RuleAction::Deny(IN_PLAN.to_owned()));
            builder = builder.rule(rule.when(move |_args| mode.is_plan()));
        }
        builder.hooks(PlanGate { mode: self.clone(), changing: changing.to_vec() })
    }
}

#[cfg(test)]
mod tests;

/// Whether no call of it changes anything.
pub(crate) fn only_reads(tool: &dyn Tool) -> bool {
    tool.spec().effect == EffectClass::ReadOnly
}

/// Lets no call begin that plan mode does not allow.
struct PlanGate {
    mode: CurrentMode,
    changing: Vec<String>,
}

impl Hooks for PlanGate {
    fn name(&self) -> &str {
        "plan mode"
    }

    fn before_call(&self, call: &HookCall) -> HookResult<CallVerdict> {
        let is_refused = self.changing.contains(&call.name) && self.mode.is_plan();
        if is_refused { ready(CallVerdict::Refuse(IN_PLAN.to_owned())) } else { None }
    }
}

#[derive(Deserialize, JsonSchema)]
struct PresentedPlan {
    /// The whole plan, as Markdown.
    plan: String,
}

/// The tool with which a model ends its planning: the screen shows what the call is given.
fn present_plan() -> Arc<dyn Tool> {
    let tool = from_fn(
        PRESENT_PLAN,
        "Shows the complete plan to the user, who approves it, edits it or rejects it. Call it once, at the end.",
        |_cx, given: PresentedPlan| async move {
            Ok(if given.plan.trim().is_empty() {
                "The plan is empty: write it, and call this again."
            } else {
                PRESENTED
            })
        },
    );
    Arc::new(tool.with(|spec| spec.effect(EffectClass::ReadOnly)))
}
