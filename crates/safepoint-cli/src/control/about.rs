//! What a running session says of itself.

use std::{fmt, time::Instant};

use serde_json::{Value, json};

/// What does not change while it runs.
pub(super) struct About {
    kind: &'static str,
    model: String,
    folder: String,
    began: Instant,
}

impl About {
    pub(super) fn new(kind: &'static str, model: String) -> Self {
        let folder = std::env::current_dir().map_or(String::new(), |folder| folder.display().to_string());
        Self { kind, model, folder, began: Instant::now() }
    }

    /// With what changes.
    pub(super) fn detail(&self, more: Value) -> Value {
        let mut detail = json!({
            "kind": self.kind, "model": self.model, "folder": self.folder,
            "pid": std::process::id(), "seconds": self.began.elapsed().as_secs(),
        });
        if let (Value::Object(detail), Value::Object(more)) = (&mut detail, more) {
            detail.extend(more);
        }
        detail
    }
}

impl fmt::Display for About {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.kind, self.folder)?;
        if self.model.is_empty() { Ok(()) } else { write!(f, " with {}", self.model) }
    }
}
