//! What a model wrote as arguments, read and checked against the schema of its tool (S4.11).

use serde_json::Value;

use super::{Callable, Toolset};
use crate::value::json::{self, Unread};

/// What a model reads behind the reason why its arguments do not fit.
pub(crate) const AGAIN: &str = ". Correct them and call it again.";

impl Toolset {
    /// The tool of that name, if the arguments fit it (S4.11).
    ///
    /// # Errors
    /// Why the call cannot be passed to it: the text for the model.
    pub(crate) fn fit(&self, name: &str, args: &Value) -> Result<&Callable, String> {
        let entry = self.tools.get(name).ok_or_else(|| self.unknown(name))?;
        if let Err(misfit) = entry.fits.check(args) {
            return Err(format!("error: the arguments do not fit the tool `{name}`: {misfit}{AGAIN}"));
        }
        Ok(&entry.work)
    }

    fn unknown(&self, name: &str) -> String {
        let mut names: Vec<&str> = self.tools.keys().map(|name| &**name).collect();
        names.sort_unstable();
        match names.as_slice() {
            [] => format!("error: there is no tool `{name}`; this agent has no tools."),
            names => format!("error: there is no tool `{name}`. There are: {}.", names.join(", ")),
        }
    }
}

/// What a model wrote as arguments; nothing at all is an empty object.
///
/// # Errors
/// They cannot be read: the text for the model.
pub(crate) fn parse_args(name: &str, args: &str) -> Result<Value, String> {
    if args.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    json::read(args.as_bytes()).map_err(|unread| {
        let (what, then) = match &unread {
            Unread::NotJson(error) => (format!("not JSON ({error})"), "Correct them and call it again."),
            Unread::TooManyValues => (format!("too large: {unread}"), "Call it with less at once."),
        };
        format!("error: the arguments of `{name}` are {what}. {then}")
    })
}
