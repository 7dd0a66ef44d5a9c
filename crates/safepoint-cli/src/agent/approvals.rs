//! Which calls need an approval, and who is asked.

use std::sync::Arc;

use safepoint::{
    AgentBuilder, Tool,
    approval::{OnUnknownEffect, Rule, RuleAction},
    tool::EffectClass,
};
use serde_json::Value;

use crate::{
    agent::repository,
    args::agent::{Approve, Unknown},
    exit::Usage,
    settings::AgentSettings,
};

/// The note for a run without an approver: the tools whose calls are denied. None if every tool may run.
pub(crate) fn denied(settings: &AgentSettings, tools: &[Arc<dyn Tool>]) -> Option<String> {
    let mut asks = changing(tools);
    asks.retain(|name| !runs_inside(settings, name));
    if asks.is_empty() || !matches!(mode(settings), Approve::Ask | Approve::Edits) {
        return None;
    }
    let names = asks.join(", ");
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
        if runs_inside(settings, &name) {
            let root = settings.args.root.clone().unwrap_or_default();
            let is_inside = move |args: &Value| repository::leaves_alone(&root, args);
            builder = builder.rule(Rule::on(name.as_str(), RuleAction::Allow).when(is_inside));
        }
        builder = builder.rule(Rule::on(name, RuleAction::Ask));
    }
    Ok(builder.on_unknown(match settings.args.unknown {
        Some(Unknown::Ask) => OnUnknownEffect::Ask,
        Some(Unknown::Tell) | None => OnUnknownEffect::Tell,
    }))
}

/// Who decides: the default is to ask.
pub(crate) fn mode(settings: &AgentSettings) -> Approve {
    settings.args.approve.unwrap_or(Approve::Ask)
}

/// Whether what this tool changes stays inside, so that it runs unasked in the mode that allows edits: files below the root,
/// and commands, where all of the sandbox is enforced.
pub(crate) fn runs_inside(settings: &AgentSettings, tool: &str) -> bool {
    let is_inside = match tool {
        "write_file" | "edit_file" => true,
        "shell" => settings.sandbox.is_complete(),
        _ => false,
    };
    is_inside && mode(settings) == Approve::Edits
}

/// The names of the tools that change something: they are asked about, where no rule says otherwise.
pub(crate) fn changing(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    let specs = tools.iter().map(|tool| tool.spec());
    specs.filter(|spec| spec.effect != EffectClass::ReadOnly).map(|spec| spec.name.clone()).collect()
}
