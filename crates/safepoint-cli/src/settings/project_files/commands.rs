//! Own slash commands: Markdown files, whose text is sent when a person names them.

use std::path::Path;

use super::{ProjectText, front, markdown};
use crate::render::chat::custom::CustomCommand;

pub(super) fn read(folder: &Path, inside: &Path, text: &mut ProjectText) {
    for (name, path, content) in markdown(folder, inside, &mut text.notes) {
        let (keys, body) = front::split(&content);
        let description = keys.get("description").cloned().unwrap_or_else(|| first_line(body));
        let command = CustomCommand { description, body: body.trim().to_owned() };
        if let Err(why) = text.commands.add(&name, command) {
            text.notes.push(format!("{} is left out: {why}", path.display()));
        }
    }
}

fn first_line(body: &str) -> String {
    body.trim().lines().next().unwrap_or_default().trim_start_matches(['#', ' ']).to_owned()
}
