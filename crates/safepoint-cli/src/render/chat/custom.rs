//! Slash commands of the user and of the project: a text that is sent as if it had been typed.

use std::collections::BTreeMap;

use super::{
    commands,
    queue::PushKind,
    state::{Action, State, Tone},
};

/// Where the words behind the command go.
const ARGUMENTS: &str = "$ARGUMENTS";

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomCommand {
    pub(crate) description: String,
    pub(crate) body: String,
}

/// All of them, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct CustomCommands {
    by_name: BTreeMap<String, CustomCommand>,
}

impl CustomCommands {
    /// Adds one, unless a command of the program or an earlier one is called so.
    ///
    /// # Errors
    /// Why it is not added.
    pub(crate) fn add(&mut self, name: &str, command: CustomCommand) -> Result<(), String> {
        if commands::is_built_in(name) {
            return Err(format!("/{name} is a command of the program"));
        }
        if self.by_name.contains_key(name) {
            return Err(format!("you have a command /{name}"));
        }
        if command.body.is_empty() {
            return Err("it has no text to send".to_owned());
        }
        self.by_name.insert(name.to_owned(), command);
        Ok(())
    }

    /// Each name with what it does.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.iter().map(|(name, command)| (name.as_str(), command.description.as_str()))
    }

    /// What is sent for this command with these words behind it.
    pub(super) fn text(&self, name: &str, rest: &str) -> Option<String> {
        let body = &self.by_name.get(name)?.body;
        Some(match body.contains(ARGUMENTS) {
            true => body.replace(ARGUMENTS, rest),
            false if rest.is_empty() => body.clone(),
            false => format!("{body}\n\n{rest}"),
        })
    }
}

impl State {
    /// Sends the text of an own command; else there is no such command.
    pub(super) fn custom_command(&mut self, name: &str, rest: &str) {
        let Some(text) = self.custom.text(name, rest) else {
            let meant =
                commands::meant(name).map_or(String::new(), |meant| format!("; did you mean /{meant}?"));
            return self
                .tell(Tone::Bad, &format!("command /{name} not found{meant}; /help lists the commands"));
        };
        let steers = self.is_running() && self.pending_stop().is_none();
        self.handed.has_newer |= self.handed.is_asked;
        self.actions.push(Action::Push { text, how: if steers { PushKind::Steer } else { PushKind::Queue } });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_behind_a_command_go_where_it_says_or_to_its_end() {
        let mut own = CustomCommands::default();
        let command = |body: &str| CustomCommand { description: String::new(), body: body.into() };
        own.add("fix", command("Fix $ARGUMENTS, and test $ARGUMENTS.")).unwrap();
        own.add("tidy", command("Tidy up.")).unwrap();
        assert_eq!(own.text("fix", "a b").unwrap(), "Fix a b, and test a b.");
        assert_eq!(own.text("tidy", "").unwrap(), "Tidy up.");
        assert_eq!(own.text("tidy", "the docs").unwrap(), "Tidy up.\n\nthe docs");
        assert_eq!(own.text("none", ""), None);
        for (name, body) in [("stop", "x"), ("fix", "x"), ("empty", "")] {
            assert!(own.add(name, command(body)).is_err(), "{name}");
        }
    }
}
