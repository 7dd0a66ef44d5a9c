//! The scripted model server behind an agent: `safepoint practice` as a child, and what its log says.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context as _;
use serde_json::Value;

use crate::peers::serving::Serving;

/// A model server with a script, on a separate port; ended when dropped.
pub(in crate::peers) struct Model {
    _serving: Serving,
    port: u16,
    log: PathBuf,
}

/// A request that it was sent, and what became of its answer.
#[derive(Clone, Debug)]
pub(in crate::peers) struct Request {
    pub(in crate::peers) body: Value,
    pub(in crate::peers) fate: Fate,
}

/// What became of an answer. Exhaustive: what the log tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::peers) enum Fate {
    /// Nothing of it was sent.
    Waits,
    /// It has begun, and not ended.
    Open,
    /// It was sent whole.
    Whole,
    /// The peer closed its connection before it was whole.
    Closed,
}

impl Model {
    /// Starts one; its script (as `safepoint_testkit::script::Script` has it) and its log lie in the folder.
    pub(in crate::peers) fn start(binary: &Path, folder: &Path, script: &Value) -> anyhow::Result<Self> {
        let (written, log) = (folder.join("script.json"), folder.join("model.log"));
        fs::write(&written, script.to_string())?;
        let mut command = Command::new(binary);
        command.arg("practice").arg("--script").arg(&written).arg("--log").arg(&log);
        let serving = Serving::practice(&mut command)?;
        let url = serving.at("");
        let port = url.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.with_context(|| format!("the model server listens at {url}"))?;
        Ok(Self { _serving: serving, port, log })
    }

    /// Where it listens on this machine.
    pub(in crate::peers) fn port(&self) -> u16 {
        self.port
    }

    /// Its requests so far, in order.
    pub(in crate::peers) fn requests(&self) -> Vec<Request> {
        requests(&fs::read_to_string(&self.log).unwrap_or_default())
    }

    /// How many answers of it have begun, or are waited for, and have not ended.
    pub(in crate::peers) fn open(&self) -> usize {
        let is_open = |request: &Request| matches!(request.fate, Fate::Waits | Fate::Open);
        self.requests().into_iter().filter(is_open).count()
    }
}

/// What a log says of its requests.
fn requests(log: &str) -> Vec<Request> {
    let mut requests = BTreeMap::new();
    for line in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(id) = line["id"].as_u64() else { continue };
        if line["type"] == "request" {
            requests.insert(id, Request { body: line["body"].clone(), fate: Fate::Waits });
        }
        let Some(request) = requests.get_mut(&id) else { continue };
        request.fate = match (line["type"].as_str(), request.fate) {
            (Some("sent"), Fate::Waits) => Fate::Open,
            (Some("completed"), Fate::Waits | Fate::Open) => Fate::Whole,
            (Some("peer_closed"), Fate::Waits | Fate::Open) => Fate::Closed,
            (_, fate) => fate,
        };
    }
    requests.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_says_what_became_of_each_request() {
        let log = r#"
            {"type":"request","id":0,"path":"/v1/responses","body":{"model":"m"}}
            {"type":"sent","id":0}
            {"type":"request","id":1,"path":"/v1/responses","body":{}}
            {"type":"completed","id":0}
            {"type":"peer_closed","id":0,"answered":true}
            {"type":"sent","id":1}
            {"type":"request","id":2,"path":"/v1/responses","body":{}}
            {"type":"peer_closed","id":1,"answered":false}
            {"type":"sent","#;
        let fates: Vec<Fate> = requests(log).into_iter().map(|request| request.fate).collect();
        assert_eq!(fates, [Fate::Whole, Fate::Closed, Fate::Waits]);
    }
}
