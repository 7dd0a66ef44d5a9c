//! The peer `@copilotkit/aimock`, from npm: every wire, paced streams.

use std::path::Path;

use super::{Absent, Peer, Serving, node};

/// The version that the scenarios are known to fit.
const PACKAGE: &str = "@copilotkit/aimock@1.43.0";
const SERVER: &str = include_str!("aimock.mjs");
const FILE: &str = "server.mjs";

pub(super) struct Aimock;

impl Peer for Aimock {
    fn name(&self) -> &'static str {
        "aimock"
    }

    fn wires(&self) -> &'static [&'static str] {
        &["openai", "anthropic", "responses", "gemini"]
    }

    fn install(&self, cache: &Path) -> Result<(), Absent> {
        node::install(PACKAGE, cache)?;
        std::fs::write(cache.join(FILE), SERVER)
            .map_err(|error| Absent(format!("{} cannot be written: {error}", cache.display())))
    }

    fn serve(&self, cache: &Path) -> anyhow::Result<Serving> {
        Serving::start(node::node(cache).arg(cache.join(FILE)).current_dir(cache))
    }
}
