//! The tools of an agent by name, their schemas compiled once.

use std::{collections::HashMap, sync::Arc};

use crate::{
    contract::{
        model::ToolDecl,
        tool::{FnTool, Tool, ToolSpec},
    },
    definition::{answer::AnswerSchema, fits::Fits, secret::Secrets, subagent::Subagent},
    value::{
        approval::{hashed, sorted},
        receipt::CallKind,
    },
};

mod arguments;

pub(crate) use arguments::{AGAIN, parse_args};

/// The longest name of a tool that every provider takes, in bytes.
const NAME_MAX: usize = 64;

/// Whether every provider takes this as a tool's name.
fn is_tool_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// What does a call. A child is not a tool's future: it can suspend, and it resumes.
#[derive(Clone)]
pub(crate) enum Callable {
    Body(Arc<dyn Tool>),
    Child(Arc<Subagent>),
}

impl Callable {
    /// A tool whose declaration is read once: later changes have no effect and cannot panic in a run.
    pub(crate) fn body(tool: Arc<dyn Tool>) -> Self {
        Self::Body(FnTool::shared(tool.spec().clone(), move |cx, args| tool.call(cx, args)))
    }

    /// The same, with its output cleaned of the secrets.
    pub(crate) fn cleaned(self, secrets: &Secrets) -> Self {
        match self {
            Self::Body(inner) => {
                let secrets = secrets.clone();
                Self::Body(FnTool::shared(inner.spec().clone(), move |cx, args| {
                    let (done, secrets) = (inner.call(cx, args), secrets.clone());
                    Box::pin(async move { done.await.map(|output| secrets.clean_output(output)) })
                }))
            }
            Self::Child(child) => Self::Child(child),
        }
    }

    pub(crate) fn spec(&self) -> &ToolSpec {
        match self {
            Self::Body(tool) => tool.spec(),
            Self::Child(child) => child.spec(),
        }
    }

    pub(crate) fn kind(&self) -> CallKind {
        match self {
            Self::Body(_) => CallKind::Tool,
            Self::Child(child) => child.kind(),
        }
    }
}

/// An agent's tools.
#[derive(Clone, Default)]
pub(crate) struct Toolset {
    tools: HashMap<Arc<str>, ToolEntry>,
    decls: Arc<[ToolDecl]>,
}

#[derive(Clone)]
struct ToolEntry {
    work: Callable,
    fits: Fits,
    definition: Arc<str>,
}

impl Toolset {
    /// # Errors
    /// A name that no provider takes, or that two tools share, or a schema that is none.
    pub(crate) fn new(all: Vec<Callable>) -> Result<Self, String> {
        let mut toolset = Self::default();
        toolset.add_all(all)?;
        Ok(toolset)
    }

    /// Adds tools behind those that there are.
    ///
    /// # Errors
    /// As [`Toolset::new`].
    pub(crate) fn add_all(&mut self, more: Vec<Callable>) -> Result<(), String> {
        if more.is_empty() {
            return Ok(());
        }
        self.decls = self.decls.iter().cloned().chain(more.iter().map(|work| work.spec().decl())).collect();
        for work in more {
            let name = work.spec().name.clone();
            if !is_tool_name(&name) {
                return Err(format!(
                    "a tool cannot be named `{}`: providers take 1 to {NAME_MAX} letters, digits, `_` and `-`",
                    name.escape_debug()
                ));
            }
            let fits = Fits::of(work.spec())?;
            let definition = definition(work.spec()).into();
            if self.tools.insert(name.as_str().into(), ToolEntry { work, fits, definition }).is_some() {
                return Err(format!("two tools are named `{name}`"));
            }
        }
        Ok(())
    }

    /// Adds the tool by which a model answers; its name is not taken.
    pub(crate) fn add_form(&mut self, form: &Arc<AnswerSchema>) {
        self.decls = self.decls.iter().cloned().chain([form.spec().decl()]).collect();
        let (work, fits) = (Callable::Body(Arc::clone(form) as Arc<dyn Tool>), form.fits());
        let entry = ToolEntry { work, fits, definition: definition(form.spec()).into() };
        self.tools.insert(form.name().into(), entry);
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.tools.remove(name);
        self.decls = self.decls.iter().filter(|decl| decl.name != name).cloned().collect();
    }

    pub(crate) fn decls(&self) -> Arc<[ToolDecl]> {
        Arc::clone(&self.decls)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Callable> {
        self.tools.get(name).map(|entry| &entry.work)
    }

    /// The name of a tool, shared.
    pub(crate) fn name(&self, name: &str) -> Arc<str> {
        self.tools.get_key_value(name).map_or_else(|| name.into(), |(name, _)| Arc::clone(name))
    }

    /// The tool as it is declared, in a digest; empty where there is no such tool.
    pub(crate) fn definition(&self, name: &str) -> &str {
        self.tools.get(name).map_or("", |entry| &entry.definition)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(|name| &**name)
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = &Arc<Subagent>> {
        self.tools.values().filter_map(|entry| match &entry.work {
            Callable::Body(_) => None,
            Callable::Child(child) => Some(child),
        })
    }
}

/// A digest of a tool's declaration and place: with another description, other arguments, another effect or
/// another directory it is another tool.
fn definition(spec: &ToolSpec) -> String {
    let effect = format!("{:?}", spec.effect);
    let place = spec.place.as_deref().unwrap_or_default();
    hashed("sha256:", &[&spec.name, &spec.description, &sorted(&spec.parameters), &effect, place])
}
