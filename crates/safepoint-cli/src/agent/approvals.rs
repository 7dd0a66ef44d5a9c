//! Which calls need an approval, and who is asked.

use std::sync::Arc;

use safepoint::{
    AgentBuilder, Tool,
    approval::{OnUnknownEffect, Rule, RuleAction},
    tool::EffectClass,
};
use serde_json::Value;

use crate::{
    agent::{mode::CurrentMode, repository},
    args::{
        agent::{Approve, Unknown},
        mode::WorkMode,
    },
    exit::Usage,
    settings::AgentSettings,
};

/// The note for a run without an approver: the tools whose calls are denied. None if every tool may run.
pub(crate) fn denied(settings: &AgentSettings, tools: &[Arc<dyn Tool>]) -> Option<String> {
    let mut asks = changing(tools);
    let mode = WorkMode::first(settings.args.mode, settings.args.approve);
    asks.retain(|name| mode != WorkMode::Edits || !can_run_inside(settings, name));
    if asks.is_empty() || !matches!(mode, WorkMode::Ask | WorkMode::Edits) {
        return None;
    }
    let names = asks.join(", ");
    let but = if settings.rules.is_empty() { "" } else { ", but for what a rule allows" };
    Some(format!(
        "safepoint: no terminal for approvals: calls of {names} are denied{but} (--approve auto lets them run)"
    ))
}

/// What the mode refuses, the rules of the config file, and after them: what changes something is asked about.
pub(crate) fn ruled(
    builder: AgentBuilder,
    settings: &AgentSettings,
    tools: &[Arc<dyn Tool>],
    mode: &CurrentMode,
) -> Result<AgentBuilder, Usage> {
    let changing = changing(tools);
    let mut builder = settings.rules.over(mode.guard(builder, &changing), tools)?;
    for name in changing {
        if can_run_inside(settings, &name) {
            let (root, mode) = (settings.args.root.clone().unwrap_or_default(), mode.clone());
            let is_inside =
                move |args: &Value| mode.now() == WorkMode::Edits && repository::leaves_alone(&root, args);
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
pub(crate) fn approve(settings: &AgentSettings) -> Approve {
    settings.args.approve.unwrap_or(Approve::Ask)
}

/// Whether what this tool changes stays inside, so that it runs unasked in the mode that allows edits: files below the root,
/// and commands, where all of the sandbox is enforced.
pub(crate) fn can_run_inside(settings: &AgentSettings, tool: &str) -> bool {
    match tool {
        "write_file" | "edit_file" => true,
        "shell" => settings.sandbox.is_complete(),
        _ => false,
    }
}

/// The names of the tools that change something: they are asked about, where no rule says otherwise.
pub(crate) fn changing(tools: &[Arc<dyn Tool>]) -> Vec<String> {
    let specs = tools.iter().map(|tool| tool.spec());
    specs.filter(|spec| spec.effect != EffectClass::ReadOnly).map(|spec| spec.name.clone()).collect()
}
