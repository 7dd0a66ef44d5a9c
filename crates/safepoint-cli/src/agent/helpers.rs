//! The agents that a project or its user describes in files: each a tool of the conversation's own agent.
//!
//! **Invariants**: a helper has no tool that the conversation has not, and its calls are under the same rules, mode and person.

use std::sync::Arc;

use safepoint::{AgentBuilder, Tool};
use safepoint_testkit::server::ModelServer;

use crate::{
    agent::{approvals, current::Making, limits::limits, mode, model},
    settings::{AgentSettings, project_files::AgentFile},
};

/// The helpers of a conversation.
#[derive(Clone, Default)]
pub(crate) struct Helpers {
    helpers: Vec<Helper>,
}

#[derive(Clone)]
struct Helper {
    file: AgentFile,
    /// Its own model, where its file names one.
    model: Option<AgentBuilder>,
    /// Keeps the server of a practice model alive.
    _server: Option<Arc<ModelServer>>,
}

impl Helpers {
    /// Makes the models that files name; what is left out is given to `note`.
    pub(crate) async fn of(settings: &AgentSettings, tools: &[Arc<dyn Tool>], note: impl Fn(&str)) -> Self {
        let mut helpers = Vec::new();
        for file in &settings.project.agents {
            let name = &file.name;
            if tools.iter().any(|tool| tool.spec().name == *name) {
                note(&format!("the agent {name} is left out: a tool has that name"));
                continue;
            }
            let unknown = file
                .tools
                .iter()
                .flatten()
                .find(|named| tools.iter().all(|tool| tool.spec().name != **named));
            if let Some(unknown) = unknown {
                note(&format!("the agent {name}: there is no tool `{unknown}` here; it works without that"));
            }
            let (model, _server) = match &file.model {
                None => (None, None),
                Some(named) => match model::choose(&settings.with_model(named)).await {
                    Ok(chosen) => (Some(chosen.builder), chosen._server),
                    Err(error) => {
                        note(&format!("the agent {name} is left out: {error:#}"));
                        continue;
                    }
                },
            };
            helpers.push(Helper { file: file.clone(), model, _server });
        }
        Self { helpers }
    }

    /// Each with what it does.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&str, &str)> {
        self.helpers.iter().map(|helper| (helper.file.name.as_str(), helper.file.description.as_str()))
    }

    /// Gives them to the agent that is built.
    pub(crate) fn join(
        &self,
        mut builder: AgentBuilder,
        usual: &AgentBuilder,
        tools: &[Arc<dyn Tool>],
        making: &Making<'_>,
    ) -> anyhow::Result<AgentBuilder> {
        for Helper { file, model, .. } in &self.helpers {
            let named = |tool: &&Arc<dyn Tool>| {
                file.tools.as_ref().is_none_or(|names| names.contains(&tool.spec().name))
            };
            let is_plan = making.mode.is_plan();
            let may_be_offered = |tool: &&Arc<dyn Tool>| !is_plan || mode::only_reads(tool.as_ref());
            let offered = tools.iter().filter(named).filter(may_be_offered).cloned();
            let own = model.clone().unwrap_or_else(|| usual.clone()).limits(limits(&making.settings.args));
            let said = [file.instructions.clone()].into_iter().chain(making.mode.reading_only());
            let own = own.system(said.collect::<Vec<_>>().join("\n\n"));
            let own = approvals::ruled(own, making.settings, tools, making.mode)?;
            let own = own.approvals(making.approvals()).tools(offered).try_build()?;
            builder = builder.child(own.as_subagent(file.name.as_str(), file.description.as_str()));
        }
        Ok(builder)
    }
}
