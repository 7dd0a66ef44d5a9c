//! A server of Restate for one test, in a separate folder. It ends with this.

use std::{
    net::{SocketAddr, TcpListener},
    process::{Child, Command, Stdio},
};

use http::{Method, header};
use rustix::process::{Pid, Signal, kill_process};
use safepoint_testkit::wait;
use serde_json::json;
use tempfile::TempDir;
use url::Url;

/// Names the program. A test does not pass without one.
const PROGRAM: &str = "SAFEPOINT_RESTATE_SERVER";

pub(super) struct Engine {
    process: Child,
    ingress: u16,
    admin: u16,
    _folder: TempDir,
}

impl Engine {
    pub(super) async fn start() -> Self {
        let program = std::env::var_os(PROGRAM)
            .expect("SAFEPOINT_RESTATE_SERVER names the program `restate-server`: `cargo xtask peers restate` installs it");
        let folder = tempfile::tempdir().unwrap();
        let [ingress, admin, own] = [0; 3].map(|_| free());
        let mut command = Command::new(program);
        command.current_dir(folder.path()).env_clear().args(["--no-logo", "--listen-mode", "tcp"]);
        command.arg("--base-dir").arg(folder.path().join("data"));
        for (name, value) in [
            ("RESTATE_BIND_IP", "127.0.0.1".to_owned()),
            ("RESTATE_ADVERTISED_HOST", "127.0.0.1".to_owned()),
            ("RESTATE_BIND_PORT", own.to_string()),
            ("RESTATE_INGRESS__BIND_PORT", ingress.to_string()),
            ("RESTATE_ADMIN__BIND_PORT", admin.to_string()),
            ("RESTATE_DEFAULT_NUM_PARTITIONS", "2".to_owned()),
            ("RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE", "64 MiB".to_owned()),
            ("RESTATE_DISABLE_TELEMETRY", "true".to_owned()),
        ] {
            command.env(name, value);
        }
        let process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let engine = Self { process, ingress, admin, _folder: folder };
        for address in [engine.at(admin, "health"), engine.at(ingress, "restate/health")] {
            wait::asked(format_args!("{address} answers"), async || is_well(&address).await).await;
        }
        engine
    }

    pub(super) fn ingress(&self) -> Url {
        self.at(self.ingress, "")
    }

    /// Tells the engine where the nodes are, as an operator does.
    pub(super) async fn register(&self, nodes: SocketAddr) {
        let body = json!({"uri": format!("http://{nodes}"), "force": true}).to_string();
        let address = self.at(self.admin, "deployments");
        let registers = async || {
            let request = safepoint_http::shared().unwrap().request(Method::POST, &address);
            let request = request.header(header::CONTENT_TYPE, "application/json".parse().unwrap());
            let answer = request.body(body.clone()).send().await.map_err(|error| error.to_string())?;
            let status = answer.status();
            if status.is_success() { Ok(()) } else { Err(format!("{status}: {:?}", answer.bytes().await)) }
        };
        wait::asked("the nodes are registered", registers).await;
    }

    /// Ends it as a crash does.
    pub(super) fn kill(&mut self) {
        kill_process(Pid::from_child(&self.process), Signal::KILL).unwrap();
        self.process.wait().unwrap();
    }

    fn at(&self, port: u16, path: &str) -> Url {
        format!("http://127.0.0.1:{port}/{path}").parse().unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if matches!(self.process.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

async fn is_well(address: &Url) -> bool {
    let answer = safepoint_http::shared().unwrap().get(address).send().await;
    answer.is_ok_and(|answer| answer.status().is_success())
}

/// A port that is free now. Another program may take it before the server does, which then says so.
fn free() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
