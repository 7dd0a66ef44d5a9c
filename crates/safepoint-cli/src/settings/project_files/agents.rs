//! Own agents: Markdown files, each offered to the model as a tool that hands a task over.

use std::path::Path;

use super::{ProjectText, front, markdown};

/// An agent as its file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentFile {
    pub(crate) name: String,
    pub(crate) description: String,
    /// The tools that it is given of those that the conversation has; all of them where the file names none.
    pub(crate) tools: Option<Vec<String>>,
    /// Its model, if it is not the conversation's.
    pub(crate) model: Option<String>,
    pub(crate) instructions: String,
}

pub(super) fn read(folder: &Path, inside: &Path, text: &mut ProjectText) {
    for (file, path, content) in markdown(folder, inside, &mut text.notes) {
        let (keys, body) = front::split(&content);
        let key = |name: &str| keys.get(name).filter(|value| !value.is_empty()).cloned();
        let agent = AgentFile {
            name: key("name").unwrap_or(file),
            description: key("description").unwrap_or_default(),
            tools: keys.get("tools").map(|tools| front::list(tools)),
            model: key("model").filter(|model| model != "inherit"),
            instructions: body.trim().to_owned(),
        };
        let why = if !super::is_name(&agent.name) {
            "its `name` has letters, digits, `-` and `_` only"
        } else if agent.description.is_empty() {
            "it has no `description` between two `---` at its head, by which the model chooses it"
        } else if text.agents.iter().any(|other| other.name == agent.name) {
            "there is an agent of that name"
        } else {
            text.agents.push(agent);
            continue;
        };
        text.notes.push(format!("{} is left out: {why}", path.display()));
    }
}
