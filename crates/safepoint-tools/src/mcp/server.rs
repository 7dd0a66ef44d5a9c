//! The description of a server: where it is, which of its tools are wanted, and how far it is trusted.

use std::{ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

use super::{
    Client, McpError, address,
    error::Kind,
    names::{self, Pick},
};
use crate::{
    limits,
    process::{CommandEnvironment, CommandSpec, OutputTarget, Processes, Stdin},
};

/// Which protocol is spoken with a server.
///
/// Exhaustive: the newest, the ones before it, or what the server understands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The newest if the server knows it, else the older handshake.
    #[default]
    Auto,
    /// The older handshake, of 2025-11-25 and before: `initialize`.
    Initialize,
    /// Only 2026-07-28, which has no handshake.
    Newest,
}

/// What a server's word on its own tools is worth.
///
/// Exhaustive: it is believed or it is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Annotations {
    /// Every tool may change anything, whatever the server says.
    #[default]
    Ignored,
    /// A tool that is annotated as read-only or idempotent is taken as that: it may run without a question, beside
    /// others, and again after a crash.
    Trusted,
}

/// A server, described. [`Server::connect`] starts or reaches it.
///
/// ```
/// use std::time::Duration;
/// use safepoint_tools::mcp::Server;
/// let files = Server::stdio("files", "npx").args(["-y", "@modelcontextprotocol/server-filesystem", "."]).exclude(["write_*"]);
/// let tickets = Server::http("tickets", "https://mcp.example.com/mcp").call_within(Duration::from_secs(30));
/// ```
#[derive(Clone)]
#[must_use = "a setting returns the changed value"]
pub struct Server {
    pub(super) name: String,
    pub(super) endpoint: Endpoint,
    pub(super) pick: Pick,
    pub(super) protocol: Protocol,
    pub(super) annotations: Annotations,
    pub(super) start: Duration,
    pub(super) call: Option<Duration>,
    pub(super) processes: Option<Processes>,
}

/// Where it is. Exhaustive: a process of ours, or an address.
#[derive(Clone)]
pub(super) enum Endpoint {
    Stdio(Box<CommandSpec>),
    Http { url: String, headers: Vec<(String, String)>, token: Option<TokenSource> },
}

/// Gives the token of the next request, or says why there is none.
pub(super) type TokenSource = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

impl Server {
    /// A program that is started, and talked to over its standard input and output.
    pub fn stdio(name: impl Into<String>, program: impl Into<OsString>) -> Self {
        let (name, output) = (name.into(), OutputTarget::Pipe { errors: limits::MCP_ERROR_BYTES });
        let mut command = CommandSpec::new(program).stdin(Stdin::Pipe).output(output);
        command.label = format!("MCP server {name}");
        command.environment = Some(CommandEnvironment::core());
        Self::at(name, Endpoint::Stdio(Box::new(command)))
    }

    /// A server on the network, reached over Streamable HTTP.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::at(name.into(), Endpoint::Http { url: url.into(), headers: Vec::new(), token: None })
    }

    fn at(name: String, endpoint: Endpoint) -> Self {
        Self {
            name,
            endpoint,
            pick: Pick::default(),
            protocol: Protocol::default(),
            annotations: Annotations::default(),
            start: limits::MCP_START,
            call: None,
            processes: None,
        }
    }

    /// Adds arguments of the program. Nothing for a server on the network.
    pub fn args(mut self, more: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        if let Endpoint::Stdio(command) = &mut self.endpoint {
            command.args.extend(more.into_iter().map(Into::into));
        }
        self
    }

    /// Sets a variable of the program's environment. Beside these it gets only harmless ones of the runtime's, such as
    /// `PATH` and `HOME`. Nothing for a server on the network.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        if let Endpoint::Stdio(command) = &mut self.endpoint {
            command.env.push((name.into(), Some(value.into())));
        }
        self
    }

    /// Sets where the program runs. Nothing for a server on the network.
    pub fn cwd(mut self, place: impl Into<PathBuf>) -> Self {
        if let Endpoint::Stdio(command) = &mut self.endpoint {
            command.cwd = Some(place.into());
        }
        self
    }

    /// Sets a header of every request, such as `authorization`. Nothing for a program.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Endpoint::Http { headers, .. } = &mut self.endpoint {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// Sets where the bearer token of each request comes from, such as a login that is refreshed. A request for which there is
    /// none is not sent, and the error says why. Nothing for a program.
    ///
    /// A request that is dropped drops what waits for its token.
    pub fn bearer(
        mut self,
        token: impl Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync + 'static,
    ) -> Self {
        if let Endpoint::Http { token: source, .. } = &mut self.endpoint {
            *source = Some(Arc::new(token));
        }
        self
    }

    /// Offers only tools whose own names fit one of these patterns, in which `*` is any text.
    pub fn include(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.pick.include.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Offers no tool whose own name fits one of these patterns.
    pub fn exclude(mut self, patterns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.pick.exclude.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Offers a tool under exactly this name. The others are offered as `SERVER__TOOL`.
    pub fn rename(mut self, tool: impl Into<String>, name: impl Into<String>) -> Self {
        self.pick.rename.insert(tool.into(), name.into());
        self
    }

    /// Sets which protocol is spoken.
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// Sets what the server's word on its own tools is worth.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.annotations = annotations;
        self
    }

    /// Sets how long it may take to start, and to tell its tools. Default: 30 s.
    pub fn start_within(mut self, limit: Duration) -> Self {
        self.start = limit;
        self
    }

    /// Sets the time limit of each call. Default: the run's.
    pub fn call_within(mut self, limit: Duration) -> Self {
        self.call = Some(limit);
        self
    }

    /// Sets who holds the process: share one, and all servers and commands of a program have one guard.
    pub fn under(mut self, processes: &Processes) -> Self {
        self.processes = Some(processes.clone());
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Starts or reaches it, and waits until it can be used.
    ///
    /// # Errors
    /// A [`McpError`] that says what could not be done. Nothing is left of the server then.
    ///
    /// # Panics
    /// If there is no tokio runtime with IO and time.
    ///
    /// # Cancel safety
    /// What had been started is ended.
    pub async fn connect(self) -> Result<Client, McpError> {
        if !names::is_server_name(&self.name) {
            let rule = "cannot have that name: up to 32 letters, digits, `-` and single `_`";
            return Err(McpError::new(&self.name, Kind::Description, rule));
        }
        Client::connect(self).await
    }

    /// What its tools work on: the program with its arguments and where it runs, or the address. A yes that lasts does not
    /// hold for another server under the same name.
    pub(super) fn place(&self) -> String {
        match &self.endpoint {
            Endpoint::Stdio(command) => {
                let CommandSpec { program, args, cwd, .. } = &**command;
                let here = cwd.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default();
                let words: Vec<_> =
                    [program].into_iter().chain(args).map(|word| word.to_string_lossy()).collect();
                format!("{words:?} in {}", here.display())
            }
            Endpoint::Http { url, .. } => address::one(url),
        }
    }

    /// How its process is started.
    pub(super) fn command(&self) -> Option<CommandSpec> {
        match &self.endpoint {
            Endpoint::Stdio(command) => Some(CommandSpec::clone(command)),
            Endpoint::Http { .. } => None,
        }
    }
}

/// Without its secrets: neither the environment nor the headers are shown.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.endpoint {
            Endpoint::Stdio(command) => command.program.to_string_lossy().into_owned(),
            Endpoint::Http { url, .. } => address::one(url),
        };
        f.debug_struct("Server").field("name", &self.name).field("at", &place).finish_non_exhaustive()
    }
}
