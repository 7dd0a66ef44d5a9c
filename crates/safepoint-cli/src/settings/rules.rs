//! The rules of the config file: which calls may run, are asked about, or may not run, by tool and arguments.
//!
//! **Invariants**: the first rule that fits decides; what an allowing rule's `*` stands for can be judged: it begins no
//! other command, is expanded by no shell, stays inside its word, and does not climb out of a directory.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use safepoint::{
    AgentBuilder, Tool,
    approval::{Rule, RuleAction},
};
use safepoint_tools::toolbox;
use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use crate::exit::Usage;

mod address;
mod pattern;
mod reading;
mod words;

use pattern::Pattern;
use reading::Reading;

/// The model's text for a call that a rule denies, where the rule has no message.
const DENIED: &str = "[denied: a rule of the user does not allow this call.]";
/// The tools that there always are: a rule may name them where they were not chosen.
const OURS: [&str; 9] = [
    "shell",
    "shell_outside",
    "read_file",
    "write_file",
    "edit_file",
    "list_dir",
    "search",
    "http_get",
    "sleep",
];
/// What calls of ours ask while they run: a rule may name it.
const ASKED: [&str; 3] = ["http_get/reach", "http_get/private", "read_file/secret"];
/// Between the name of a server and that of its tool, in the names of the tools of servers.
const OF_SERVER: &str = "__";

/// The rules, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    rules: Vec<OneRule>,
}

/// One `[[rules]]`.
#[derive(Clone, Debug)]
struct OneRule {
    /// The file, and the line in it.
    path: Arc<Path>,
    line: usize,
    tool: String,
    args: BTreeMap<String, Expected>,
    ruling: RuleAction,
}

/// One `[[rules]]` as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    tool: String,
    #[serde(default)]
    args: toml::Table,
    then: RuleWord,
    message: Option<String>,
}

/// What happens to a matching call. Exhaustive: the three words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleWord {
    Allow,
    Ask,
    Deny,
}

/// What an argument must be. Exhaustive: the forms of a value in the file.
#[derive(Clone, Debug)]
enum Expected {
    Like(Pattern),
    Exactly(Value),
    AnyOf(Vec<Expected>),
    With(BTreeMap<String, Expected>),
}

impl Expected {
    fn read(value: &toml::Value) -> Result<Self, String> {
        Ok(match value {
            toml::Value::String(text) => Self::Like(Pattern::of(text)),
            toml::Value::Integer(number) => Self::Exactly(Value::from(*number)),
            toml::Value::Float(number) => Self::Exactly(Value::from(*number)),
            toml::Value::Boolean(flag) => Self::Exactly(Value::from(*flag)),
            toml::Value::Array(any) => Self::AnyOf(any.iter().map(Self::read).collect::<Result<_, _>>()?),
            toml::Value::Table(fields) => Self::With(read_all(fields)?),
            toml::Value::Datetime(time) => {
                return Err(format!("{time} is a time; write it as text, \"{time}\""));
            }
        })
    }

    fn fits(&self, value: &Value, reading: Reading) -> bool {
        match (self, value) {
            (Self::Like(pattern), Value::String(text)) => reading.fits(pattern, text),
            (Self::Like(pattern), other) => reading.fits(pattern, &other.to_string()),
            (Self::Exactly(wanted), value) => is_same(wanted, value),
            (Self::AnyOf(any), value) => any.iter().any(|wanted| wanted.fits(value, reading)),
            (Self::With(fields), value) => all_fit(fields, value, |_| reading),
        }
    }

    /// Whether what it allows can be judged.
    fn check(&self, reading: Reading) -> Result<(), String> {
        match self {
            Self::Like(pattern) => reading.check(pattern),
            Self::Exactly(_) => Ok(()),
            Self::AnyOf(any) => any.iter().try_for_each(|wanted| wanted.check(reading)),
            Self::With(fields) => fields.values().try_for_each(|wanted| wanted.check(reading)),
        }
    }
}

fn read_all(fields: &toml::Table) -> Result<BTreeMap<String, Expected>, String> {
    fields.iter().map(|(name, value)| Ok((name.clone(), Expected::read(value)?))).collect()
}

fn all_fit(fields: &BTreeMap<String, Expected>, value: &Value, reading: impl Fn(&str) -> Reading) -> bool {
    let fits = |name: &str, wanted: &Expected| {
        value.get(name).is_some_and(|value| wanted.fits(value, reading(name)))
    };
    fields.iter().all(|(name, wanted)| fits(name, wanted))
}

/// How an argument is read where a rule on `tool` allows something. What a foreign tool does with text is
/// unknown: it may pass it to a shell.
fn careful(tool: &str, arg: &str) -> Reading {
    match (tool, arg) {
        ("read_file" | "write_file" | "edit_file" | "list_dir" | "search" | "read_file/secret", "path") => {
            Reading::Path
        }
        ("http_get" | "http_get/reach" | "http_get/private", "url" | "origin") => Reading::Address,
        ("http_get/private", _) => Reading::Anything,
        ("read_file" | "write_file" | "edit_file" | "list_dir" | "search" | "http_get" | "sleep", _) => {
            Reading::Anything
        }
        _ => Reading::Words,
    }
}

/// `5` and `5.0` are one number.
fn is_same(wanted: &Value, value: &Value) -> bool {
    wanted == value || wanted.as_f64().is_some_and(|wanted| value.as_f64() == Some(wanted))
}

impl Rules {
    /// Reads what is written in the file of this path and text.
    ///
    /// # Errors
    /// What is wrong, in which line, and what to do.
    pub(crate) fn read(path: PathBuf, text: &str, written: Vec<Spanned<Written>>) -> Result<Self, Usage> {
        let path: Arc<Path> = path.into();
        let mut rules = Self::default();
        for one in written {
            let line = text.get(..one.span().start).map_or(0, |before| before.matches('\n').count()) + 1;
            let Written { tool, args, then, message } = one.into_inner();
            let wrong = |why: String| wrong((&path, line), &why);
            let ruling = match (then, message) {
                (RuleWord::Allow, None) => RuleAction::Allow,
                (RuleWord::Ask, None) => RuleAction::Ask,
                (RuleWord::Deny, message) => {
                    RuleAction::Deny(message.map_or_else(|| DENIED.into(), |why| format!("[denied: {why}]")))
                }
                (RuleWord::Allow | RuleWord::Ask, Some(_)) => {
                    let why = "`message` is the text for the model about a denied call: it goes with then = \"deny\"";
                    return Err(wrong(why.into()));
                }
            };
            if tool.trim().is_empty() {
                return Err(wrong("`tool` is empty; name a tool, or write \"*\" for every tool".into()));
            }
            let args = read_all(&args).map_err(wrong)?;
            let rule = OneRule { path: Arc::clone(&path), line, tool, args, ruling };
            rule.args.iter().try_for_each(|(arg, wanted)| wanted.check(rule.reading(arg))).map_err(wrong)?;
            rules.rules.push(rule);
        }
        Ok(rules)
    }

    /// With those of a project: what it denies comes first, and what it asks about or allows comes after all of these, so that it
    /// weakens none of them.
    pub(super) fn beside(self, project: Self) -> Self {
        let denies = |rule: &OneRule| matches!(rule.ruling, RuleAction::Deny(_));
        let (first, last): (Vec<_>, Vec<_>) = project.rules.into_iter().partition(denies);
        Self { rules: first.into_iter().chain(self.rules).chain(last).collect() }
    }

    /// Puts the agent under them: they speak before everything else that rules on a call.
    ///
    /// # Errors
    /// A rule that could never speak: it names a tool or an argument that there is not.
    pub(crate) fn over(
        &self,
        mut builder: AgentBuilder,
        tools: &[Arc<dyn Tool>],
    ) -> Result<AgentBuilder, Usage> {
        let known = self.known(tools)?;
        for rule in &self.rules {
            self.check(rule, &known)?;
            builder = rule.as_rules().into_iter().fold(builder, AgentBuilder::rule);
        }
        Ok(builder)
    }

    /// The tools that are offered, and those that there always are: a rule of one that was not chosen is checked too.
    fn known(&self, tools: &[Arc<dyn Tool>]) -> Result<Vec<Arc<dyn Tool>>, Usage> {
        let all = match self.rules.is_empty() {
            true => Vec::new(),
            false => toolbox("/").map_err(|error| Usage(error.to_string()))?.all(),
        };
        Ok(tools.iter().cloned().chain(all).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    fn check(&self, rule: &OneRule, tools: &[Arc<dyn Tool>]) -> Result<(), Usage> {
        if rule.tool.contains('*') {
            return Ok(());
        }
        let Some(tool) = tools.iter().find(|tool| tool.spec().name == rule.tool) else {
            let is_ours = OURS.iter().chain(&ASKED).any(|ours| *ours == rule.tool);
            if is_ours || rule.tool.contains(OF_SERVER) {
                return Ok(());
            }
            let (tool, ours) = (&rule.tool, OURS.join(", "));
            let why = format!(
                "there is no tool `{tool}`, so this rule would never apply; there are {ours}, and SERVER{OF_SERVER}TOOL \
                 of the config file's servers"
            );
            return Err(wrong((&rule.path, rule.line), &why));
        };
        let Some(known) = tool.spec().parameters["properties"].as_object().filter(|known| !known.is_empty())
        else {
            return Ok(());
        };
        let Some(unknown) = rule.args.keys().find(|name| !known.contains_key(*name)) else { return Ok(()) };
        let (tool, known) = (&rule.tool, known.keys().map(String::as_str).collect::<Vec<_>>().join(", "));
        let why =
            format!("{tool} has no argument `{unknown}`, so this rule would never apply; it has {known}");
        Err(wrong((&rule.path, rule.line), &why))
    }
}

fn wrong((path, line): (&Path, usize), why: &str) -> Usage {
    Usage(format!("the config {}, the [[rules]] of line {line}: {why}", path.display()))
}

impl OneRule {
    /// A rule on a tool speaks of what its calls ask while they run, too: of the origins that one is led to, and of files
    /// that commonly hold secrets. What is not public takes a rule that names that.
    fn as_rules(&self) -> Vec<Rule> {
        let asked = match self.tool.as_str() {
            "http_get" => Some("http_get/reach"),
            "read_file" => Some("read_file/secret"),
            _ => None,
        };
        std::iter::once(self.tool.as_str()).chain(asked).map(|name| self.as_rule(name)).collect()
    }

    fn as_rule(&self, name: &str) -> Rule {
        let rule = Rule::on(name, self.ruling.clone());
        if self.args.is_empty() {
            return rule;
        }
        let this = self.clone();
        rule.when(move |given| all_fit(&this.args, given, |arg| this.reading(arg)))
    }

    fn reading(&self, arg: &str) -> Reading {
        match self.ruling {
            RuleAction::Allow => careful(&self.tool, arg),
            RuleAction::Ask | RuleAction::Deny(_) => Reading::Anything,
        }
    }
}

#[cfg(test)]
mod tests;
