//! What a model asks a target to do, and how a target is asked to run a command.

use std::path::Path;

use safepoint_testkit::script::Reply;
use serde_json::{Value, json};

use crate::scenario::StopMoment;

/// The file without which no command runs on.
pub(super) const ON: &str = "on";

/// What each command has in its line.
const MARK: &str = "stop-test-";

/// The tool by which a target runs commands, as it offers it to its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandTool {
    name: String,
    argument: String,
    is_list: bool,
    /// What else it wants, with a value for it.
    more: Vec<(String, Value)>,
}

/// What a tool that fetches an address calls it.
const ADDRESSES: [&str; 2] = ["url", "uri"];

/// What a tool that runs a command calls it.
const ARGUMENTS: [&str; 5] = ["command", "cmd", "commands", "script", "line"];

impl CommandTool {
    /// The first tool in a request, of any wire, that takes a command.
    pub(super) fn of(request: &Value) -> Option<Self> {
        declared(request).iter().find_map(Self::read)
    }

    fn read(tool: &Value) -> Option<Self> {
        let schemas = ["parameters", "input_schema", "parametersJsonSchema"];
        let schema =
            schemas.into_iter().map(|name| &tool[name]).find(|schema| schema["properties"].is_object())?;
        let properties = schema["properties"].as_object()?;
        let argument = ARGUMENTS.into_iter().find(|name| properties.contains_key(*name))?;
        let kind = properties[argument]["type"].as_str().unwrap_or_default();
        let is_list = kind.eq_ignore_ascii_case("array");
        let wanted = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let more = wanted.filter(|name| *name != argument);
        let more = more
            .filter_map(|name| Some((name.to_owned(), of_kind(&properties.get(name)?["type"])?)))
            .collect();
        Some(Self { name: tool["name"].as_str()?.to_owned(), argument: argument.to_owned(), is_list, more })
    }

    /// The arguments of a call that runs this line.
    fn arguments(&self, line: &str) -> Value {
        let command = match (self.is_list, self.argument.as_str()) {
            (false, _) => json!(line),
            // A list of lines, and not of the words of one.
            (true, "commands") => json!([line]),
            (true, _) => json!(["sh", "-c", line]),
        };
        let mut arguments = json!({ self.argument.as_str(): command });
        for (name, value) in &self.more {
            arguments[name] = value.clone();
        }
        arguments
    }
}

/// A value for an argument that a tool wants beside its command: of a time, a long one.
fn of_kind(kind: &Value) -> Option<Value> {
    match kind.as_str()?.to_ascii_lowercase().as_str() {
        "string" => Some(json!("it")),
        "boolean" => Some(json!(false)),
        "number" | "integer" => Some(json!(60_000)),
        _ => None,
    }
}

/// The tools that a request of any wire declares.
pub(super) fn declared(request: &Value) -> Vec<Value> {
    let tools = request["tools"].as_array().into_iter().flatten();
    let of = |tool: &Value| match (tool["functionDeclarations"].as_array(), &tool["function"]) {
        (Some(declared), _) => declared.clone(),
        (None, function @ Value::Object(_)) => vec![function.clone()],
        (None, _) => vec![tool.clone()],
    };
    tools.flat_map(of).collect()
}

/// A request without the tools that it declares.
pub(super) fn history(body: &Value) -> String {
    let mut body = body.clone();
    if let Value::Object(body) = &mut body {
        body.remove("tools");
    }
    body.to_string()
}

/// What the model asks for so that a moment comes, and what is under way then.
pub(crate) struct AskedWork {
    pub(super) reply: Reply,
    /// Commands that run then, and calls of the stage's own tools that have begun.
    pub(super) commands: BegunWork,
    pub(super) calls: BegunWork,
    /// How many of these calls, the first, are released.
    pub(super) released: usize,
    /// What a history has that holds one of these calls.
    pub(super) word: &'static str,
}

/// How many have begun: fewer of what a target does one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BegunWork {
    pub(super) least: usize,
    pub(super) most: usize,
}

impl BegunWork {
    const NONE: Self = Self { least: 0, most: 0 };

    const fn all(number: usize) -> Self {
        Self { least: number, most: number }
    }
}

/// The stage's own tools: one is given the target's way to cancel, the other is not.
const TOOL: &str = "work";
const TOOL_DEAF: &str = "deaf";

impl AskedWork {
    /// What is asked of a target with these tools.
    ///
    /// # Errors
    /// Which tool it does not offer.
    pub(super) fn of(moment: StopMoment, request: &Value, folder: &Path) -> Result<Self, &'static str> {
        let tool = CommandTool::of(request);
        match moment {
            StopMoment::Tool => Self::calls(request, TOOL, 1),
            StopMoment::ToolDeaf => Self::calls(request, TOOL_DEAF, 1),
            StopMoment::OneOfThree => match &tool {
                Some(tool) => {
                    let lines = ["echo done".to_owned(), waits(folder), waits(folder)];
                    Ok(Self::commands(tool, &lines, BegunWork { least: 1, most: 2 }))
                }
                None => {
                    let calls = BegunWork { least: 2, most: 3 };
                    Ok(Self { calls, released: 1, ..Self::calls(request, TOOL, 3)? })
                }
            },
            StopMoment::CommandApart => {
                Ok(Self::commands(&tool.ok_or(NO_COMMANDS)?, &[waits_apart(folder)], BegunWork::all(2)))
            }
            StopMoment::AfterEnd => match &tool {
                Some(tool) => Ok(Self::commands(tool, &[done(folder)], BegunWork::NONE)),
                None => Ok(Self { calls: BegunWork::NONE, released: 1, ..Self::calls(request, TOOL, 1)? }),
            },
            _ => Ok(Self::commands(&tool.ok_or(NO_COMMANDS)?, &[waits(folder)], BegunWork::all(1))),
        }
    }

    /// What is called of a server that offers these tools itself. One that fetches an address fetches one of the stage's own.
    ///
    /// # Errors
    /// Which tool it does not offer.
    pub(super) fn of_server(
        moment: StopMoment,
        offered: &Value,
        (folder, tools): (&Path, &str),
    ) -> Result<Self, &'static str> {
        let moment = match moment {
            // Whatever works is stopped at once, or twice.
            StopMoment::AtOnce | StopMoment::StreamSilent | StopMoment::StreamDrips => {
                let is_command = CommandTool::of(offered).is_some();
                if is_command { StopMoment::Command } else { StopMoment::Tool }
            }
            moment => moment,
        };
        let lacks = match moment {
            StopMoment::Tool | StopMoment::OneOfThree | StopMoment::AfterEnd => {
                "it offers no tool that fetches an address, and none of the test's own"
            }
            StopMoment::ToolDeaf => "it offers no tool of the test's own",
            _ => "it offers no tool that runs a command",
        };
        let asked = Self::of(moment, offered, folder).ok();
        asked.or_else(|| Self::fetches(moment, offered, tools)).ok_or(lacks)
    }

    /// The same by a tool that fetches an address.
    fn fetches(moment: StopMoment, offered: &Value, tools: &str) -> Option<Self> {
        let (number, calls, released) = match moment {
            StopMoment::Tool => (1, BegunWork::all(1), 0),
            StopMoment::OneOfThree => (3, BegunWork { least: 2, most: 3 }, 1),
            // It may fetch more than it is asked to, such as what robots may fetch.
            StopMoment::AfterEnd => (1, BegunWork::NONE, usize::MAX),
            _ => return None,
        };
        let tools_offered = declared(offered);
        let (name, argument) = tools_offered.iter().find_map(|tool| {
            let of = tool["input_schema"]["properties"].as_object()?;
            let argument = ADDRESSES.into_iter().find(|name| of.contains_key(*name))?;
            Some((tool["name"].as_str()?, argument))
        })?;
        let ask = |reply: Reply, _| reply.and_call(name, json!({ argument: format!("{tools}/{TOOL}") }));
        let reply = (0..number).fold(Reply::default(), ask);
        Some(Self { reply, commands: BegunWork::NONE, calls, released, word: TOOL })
    }

    fn calls(request: &Value, name: &'static str, calls: usize) -> Result<Self, &'static str> {
        let tools = declared(request);
        let mut names = tools.iter().filter_map(|tool| tool["name"].as_str());
        let as_offered =
            names.find(|offered| is_called(offered, name)).ok_or("it has no tool of the test's own")?;
        let ask = |reply: Reply, _| reply.and_call(as_offered, json!({ "what": "it" }));
        let reply = (0..calls).fold(Reply::default(), ask);
        Ok(Self { reply, commands: BegunWork::NONE, calls: BegunWork::all(calls), released: 0, word: name })
    }

    fn commands(tool: &CommandTool, lines: &[String], commands: BegunWork) -> Self {
        let ask = |reply: Reply, line: &String| reply.and_call(tool.name.as_str(), tool.arguments(line));
        let reply = lines.iter().fold(Reply::default(), ask);
        Self { reply, commands, calls: BegunWork::NONE, released: 0, word: MARK }
    }
}

/// Whether a tool is offered by this name; some libraries put another one before it.
fn is_called(offered: &str, name: &str) -> bool {
    let before = offered.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with(['-', '_', '.', '/']))
}

const NO_COMMANDS: &str = "it offers its model no tool that runs a command";

/// A line that runs until its folder has no file [`ON`] any more. Its processes are known by that name.
fn waits(folder: &Path) -> String {
    format!("while [ -e {}/{ON} ]; do sleep 0.05; done", folder.display())
}

/// A line that is done at once.
fn done(folder: &Path) -> String {
    format!("test -e {}/{ON}", folder.display())
}

/// The same as [`waits`], with a process that has left its session and ignores what asks it to end.
fn waits_apart(folder: &Path) -> String {
    let line = waits(folder);
    format!("setsid sh -c 'trap \"\" INT TERM HUP; {line}' & {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_takes_a_command_is_found_on_each_wire() {
        let schema = json!({"type": "object", "properties": {"command": {"type": "string"}}});
        let other = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let wires = [
            json!({"tools": [{"function": {"name": "read", "parameters": other}}, {"function": {"name": "sh", "parameters": schema}}]}),
            json!({"tools": [{"name": "read", "input_schema": other}, {"name": "sh", "input_schema": schema}]}),
            json!({"tools": [{"type": "function", "name": "sh", "parameters": schema}]}),
            json!({"tools": [{"functionDeclarations": [{"name": "read", "parameters": other}, {"name": "sh", "parameters": schema}]}]}),
        ];
        for request in wires {
            let tool = CommandTool::of(&request).unwrap();
            assert_eq!((&*tool.name, tool.arguments("ls")), ("sh", json!({"command": "ls"})), "{request}");
        }
        assert_eq!(CommandTool::of(&json!({"tools": [{"name": "read", "input_schema": other}]})), None);
        assert_eq!(CommandTool::of(&json!({})), None);
    }

    #[test]
    fn a_tool_is_found_behind_the_name_of_its_group() {
        for offered in ["work", "tools-work", "mcp__tools__work", "tools.work"] {
            assert!(is_called(offered, "work"), "{offered}");
        }
        assert!(!is_called("network", "work"));
        assert!(!is_called("work-deaf", "work"));
    }

    #[test]
    fn a_command_that_is_a_list_of_words_is_one_of_a_shell() {
        let schema = json!({"properties": {"command": {"type": "array"}}});
        let tool = CommandTool::of(&json!({"tools": [{"name": "shell", "parameters": schema}]})).unwrap();
        assert_eq!(tool.arguments("a b"), json!({"command": ["sh", "-c", "a b"]}));
    }
}
