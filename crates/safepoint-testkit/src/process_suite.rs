//! A suite for tools that run commands: is the whole tree of a command gone after a stop, members in sessions
//! of their own, deaf ones, and such as hold the pipe included?
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use std::sync::Arc;
//! use safepoint_testkit::process_suite;
//! use safepoint_tools::{Root, process::Processes, shell};
//! use serde_json::json;
//!
//! let root = Arc::new(Root::open(std::env::temp_dir()).unwrap());
//! let tool = shell(root, Processes::unguarded("doc"));
//! let closed = process_suite::stops_whole_trees(tool, |line| json!({ "command": line })).await.unwrap();
//! assert_eq!(closed.receipt.calls[0].processes.len(), 1);
//! # });
//! ```
//!
//! **Invariants**: whatever the tool under test leaves alive ends by itself when its [`Tree`] is dropped.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use safepoint::{Agent, StopRequest, Tool, approval::ApprovalMode};
use serde_json::Value;

use crate::{
    invariants::{BrokenInvariant, ClosedScenario, Invariant, Invariants},
    script::{Reply, Script},
    scripted::ScriptedModel,
};

/// How long, by the real clock, a tree may take to stand or to fall on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// The members of a tree: the command, a child that holds its pipe, and one in its own session that ignores
/// SIGINT and SIGTERM.
const MEMBERS: [&str; 3] = ["command", "child", "far"];

/// A tree of processes, which a command of the tool under test makes.
#[derive(Debug)]
pub struct Tree {
    place: PathBuf,
}

/// One process; its start time separates it from a later one with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeProcess {
    /// What it is in the tree.
    pub role: &'static str,
    /// Its process id.
    pub pid: u32,
    start: String,
}

impl Tree {
    /// A place where the members write who they are.
    ///
    /// # Errors
    /// If no directory can be made for that.
    pub fn plant() -> io::Result<Self> {
        let name = format!("safepoint-tree-{}-{:?}", std::process::id(), Instant::now());
        let name: String =
            name.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect();
        let place = std::env::temp_dir().join(name);
        fs::create_dir(&place)?;
        Ok(Self { place })
    }

    /// The line for `/bin/sh` that makes the tree. It does not end by itself while the tree is held.
    #[must_use]
    pub fn line(&self) -> String {
        let place = self.place.display();
        // Written beside and renamed, so that a number is never read in part.
        let note = |role: &str| format!("echo $$ > {place}/{role}.new; mv {place}/{role}.new {place}/{role}");
        let on = format!("while [ -d {place} ]; do sleep 0.05; done");
        let (command, child, far) = (note(MEMBERS[0]), note(MEMBERS[1]), note(MEMBERS[2]));
        format!("sh -c '{child}; {on}' & setsid sh -c 'trap \"\" INT TERM; {far}; {on}' & {command}; {on}")
    }

    /// Waits until the whole tree stands, and names its members.
    ///
    /// # Errors
    /// If it does not stand in time.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn stands(&self) -> io::Result<Vec<TreeProcess>> {
        let began = Instant::now();
        loop {
            let members: Vec<TreeProcess> = MEMBERS.iter().filter_map(|role| self.member(role)).collect();
            if members.len() == MEMBERS.len() {
                return Ok(members);
            }
            if began.elapsed() > PATIENCE {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("only {members:?} came up")));
            }
            tokio::task::yield_now().await;
        }
    }

    fn member(&self, role: &'static str) -> Option<TreeProcess> {
        let pid = fs::read_to_string(self.place.join(role)).ok()?.trim().parse().ok()?;
        Some(TreeProcess { role, pid, start: start_of(pid)? })
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if fs::remove_dir_all(&self.place).is_err() {
            // It is gone already: no member of it runs.
        }
    }
}

impl TreeProcess {
    /// Whether it still runs: a zombie does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        start_of(self.pid).as_ref() == Some(&self.start)
    }
}

/// When this process began, as the kernel counts it; none if it is gone or a zombie.
pub(crate) fn start_of(pid: u32) -> Option<String> {
    const START_AFTER_STATE: usize = 18;
    let stat = fs::read(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(START_AFTER_STATE)?;
    (!matches!(state, "Z" | "X")).then(|| start.to_owned())
}

/// Has `tool` run the command of a [`Tree`], stops the run `Now` while it stands, and checks that nothing of
/// it is alive once the run is quiet. `args` makes the tool's arguments of the command line.
///
/// # Errors
/// The invariant that does not hold: I5, if a member is alive and no survivor is named.
///
/// # Panics
/// Outside a tokio runtime.
///
/// # Cancel safety
/// What the tool has left ends by itself.
pub async fn stops_whole_trees(
    tool: impl Tool,
    args: impl FnOnce(String) -> Value,
) -> Result<ClosedScenario, BrokenInvariant> {
    let tree = Tree::plant().map_err(not_up)?;
    let call = Reply::call(tool.spec().name.clone(), args(tree.line()));
    let model = ScriptedModel::new(Script::of([call]));
    let agent = Agent::builder(model).approvals(ApprovalMode::Auto).tool(tool).build();
    let handle = agent.run("grow a tree").detach();
    let members = tree.stands().await.map_err(not_up)?;
    handle.stop(StopRequest::now());
    let closed = Invariants::of(&handle).check().await?;
    let alive: Vec<&TreeProcess> = members.iter().filter(|member| member.is_alive()).collect();
    let is_named = closed
        .receipt
        .calls
        .iter()
        .any(|call| call.processes.iter().any(|process| !process.survivors.is_empty()));
    if alive.is_empty() || is_named {
        return Ok(closed);
    }
    Err(BrokenInvariant { invariant: Invariant::I5, what: format!("quiet, and alive: {alive:?}") })
}

fn not_up(error: io::Error) -> BrokenInvariant {
    BrokenInvariant { invariant: Invariant::I5, what: format!("there is no tree to stop: {error}") }
}
