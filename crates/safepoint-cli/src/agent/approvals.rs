//! Which calls need an approval, and who is asked.

use std::sync::Arc;

use safepoint::{
    AgentBuilder, Tool,
    approval::{OnUnknownEffect, Rule, RuleAction},
    tool::EffectClass,
};

use crate::{
    args::agent::{Approve, Unknown},
    exit::Usage,
    settings::AgentSettings,
};

/// The note for a run without an approver: the tools whose calls are denied. None if every tool may run.
pub(crate) fn denied(settings: &AgentSettings, tools: &[Arc<dyn Tool>]) -> Option<String> {
    let changing = changing(tools);
    if changing.is_empty() || settings.args.approve.unwrap_or(Approve::Ask) != Approve::Ask {
        return None;
    }
    let names = changing.join(", ");
    let but = if settings.rules.is_empty() { "" } else { ", but for what a rule allows" };
    Some(format!(
        "safepoint: no terminal for approvals: calls of {names} are denied{but} (--approve auto lets them run)"
    ))
}

/// The rules of the config file, and after them: what changes something is asked about.
pub(crate) fn ruled(
    builder: AgentBuilder,
    settings: &AgentSettings,
    tools: &[Arc<dyn Tool>],
) -> Result<AgentBuilder, Usage> {
    let mut builder = settings.rules.over(builder, tools)?;
    for name in changing(tools) {
        builder = builder.rule(Rule::on(name, RuleAction::Ask));
    }
    Ok(builder.on_unknown(match settings.args.unknown {
        Some(Unknown::Ask) => OnUnknownEffect::Ask,
        Some(Unknown::Tell) | None => OnUnknownEffect::Tell,
    }))
}

/// The names of the tools that change something: they are asked about, where no rule says otherwise.
pub(crate) fn changing(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    let specs = tools.iter().map(|tool| tool.spec());
    specs.filter(|spec| spec.effect != EffectClass::ReadOnly).map(|spec| spec.name.clone()).collect()
}
