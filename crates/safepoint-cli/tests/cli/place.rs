//! A home with a project in it, and a scripted model: what a chat on a terminal needs.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::terminal::Terminal;
use crate::Practice;

/// What stands below the input of a chat that waits for its person.
pub(crate) const IDLE: &str = "Enter sends";

pub(crate) struct Place {
    folder: tempfile::TempDir,
    pub(crate) server: Practice,
}

impl Place {
    /// A model with these replies; the project is the folder `work` in the home.
    pub(crate) fn new(replies: &Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder, server: Practice::start(&json!({ "replies": replies }).to_string()) }
    }

    /// A path in the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A chat about the project, once it waits for its person.
    pub(crate) fn chat(&self, more: &[&str], variables: &[(&str, &str)]) -> Terminal {
        let (home, root) = (self.text(""), self.text("work"));
        let chat = ["chat", "--base-url", &self.server.url, "--model", "openai:x", "--root", &root];
        let usual = [("TERM", "xterm"), ("HOME", &*home), ("XDG_RUNTIME_DIR", &*home), ("TMPDIR", &*home)];
        let chat = Terminal::spawn(&[&chat[..], more].concat(), &[&usual[..], variables].concat());
        chat.until(IDLE);
        chat
    }

    /// The bodies of the requests to the model.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let lines = self.server.logged().into_iter().filter(|line| line["type"] == "request");
        lines.map(|line| line["body"].clone()).collect()
    }
}
