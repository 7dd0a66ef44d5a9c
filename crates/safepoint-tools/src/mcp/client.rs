//! A server in use: its tools, a call of one, and its end.

use std::{fmt, sync::Arc};

use safepoint::{
    Reason, StopRequest, Tool,
    stop::{Code, Failure, Scope, StopHandle},
};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{
    McpError, Offer, Server,
    content::{self, Called},
    error::Kind,
    exchange::Fault,
    link::{self, Link, Pauses},
    listing,
    notices::{Afterwards, Sink},
    tool::McpTool,
};
use crate::{limits, process::CommandReport};

/// A server that was started or reached. Cheap to clone; its tools are clones of it too. When it is lost, the next call
/// starts or reaches it again.
///
/// When the last clone and the last tool are gone, the server is ended; [`Client::close`] also waits for that.
#[derive(Clone)]
pub struct Client {
    owner: Arc<Owner>,
}

struct Owner {
    link: Arc<Link>,
    stop: StopHandle,
}

impl Drop for Owner {
    fn drop(&mut self) {
        end(&self.stop);
    }
}

fn end(stop: &StopHandle) {
    let reason = Reason::new(Code::SHUTDOWN).with_text("this server is no longer used");
    let _any_answer_will_do = stop.stop(StopRequest::now().with_reason(reason));
}

/// What is left of a server after its end.
#[derive(Clone, Debug, Default)]
pub struct ServerEnd {
    /// The end of its process, with what may be alive of it; none for a server on the network.
    pub process: Option<CommandReport>,
}

impl Client {
    pub(super) async fn connect(server: Server) -> Result<Self, McpError> {
        let (scope, stop) = Scope::root();
        let link = Arc::new(Link::new(server));
        let client = Self { owner: Arc::new(Owner { link: Arc::clone(&link), stop: stop.clone() }) };
        let label = format!("MCP server {}", link.server.name);
        // It ends with its scope, which the owner stops.
        drop(scope.clone().spawn(label, link::keep(Arc::clone(&link), scope, stop)));
        link.live().await?;
        Ok(client)
    }

    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.owner.link.server.name
    }

    /// The version of the protocol that is spoken; none while the server is lost.
    #[must_use]
    pub fn protocol(&self) -> Option<String> {
        let (live, _) = self.owner.link.up()?;
        let info = live.peer.peer_info()?;
        Some(info.protocol_version.as_str().to_owned())
    }

    /// The process of the server; none on the network, or while it is lost.
    #[must_use]
    pub fn pid(&self) -> Option<i32> {
        self.owner.link.up()?.1
    }

    /// How often the server has said that its tools changed, or may have said so unheard: where the protocol wants to be
    /// asked for such notices, a broken stream of them is asked for again, and that counts too. A run keeps the tools
    /// that it was given: ask for [`Client::tools`] again before the next one.
    #[must_use]
    pub fn changes(&self) -> u64 {
        *self.owner.link.changes.borrow()
    }

    /// Waits until [`Client::changes`] is more than `seen`, and gives it.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn changed(&self, seen: u64) -> u64 {
        let mut changes = self.owner.link.changes.subscribe();
        match changes.wait_for(|count| *count > seen).await {
            Ok(count) => *count,
            // It cannot be: the sender is held by `self`.
            Err(_) => seen,
        }
    }

    /// The tools that an agent can be given, as the server has them now. What is refused is logged.
    ///
    /// # Errors
    /// As [`Client::offer`].
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, McpError> {
        let offer = self.offer().await?;
        for refused in &offer.refused {
            tracing::warn!(server = self.name(), tool = refused.name, why = refused.why, "tool not offered");
        }
        for what in &offer.unmatched {
            tracing::warn!(server = self.name(), what, "of the choice of its tools");
        }
        Ok(offer.tools)
    }

    /// The tools that an agent can be given, and those that it cannot.
    ///
    /// # Errors
    /// A [`McpError`], if the server is lost and cannot be had again, or gives no list in time.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn offer(&self) -> Result<Offer, McpError> {
        let link = &self.owner.link;
        let wrong = |kind, what: String| McpError::new(self.name(), kind, what);
        let live = link.live().await?;
        let listed = timeout(link.server.start, listing::all(&live)).await;
        let slow =
            |_elapsed| wrong(Kind::Slow, format!("did not tell its tools within {:?}", link.server.start));
        let reported = listed.map_err(slow)?.map_err(|fault| match fault {
            Fault::NotSent(why) => wrong(Kind::Unreachable, format!("cannot be reached: {why}")),
            Fault::Unauthorized => wrong(Kind::Wrong, link::UNAUTHORIZED.to_owned()),
            Fault::Refused(why) | Fault::Lost(why) | Fault::Answered { ours: why, .. } => {
                wrong(Kind::Wrong, format!("did not tell its tools: {why}"))
            }
            Fault::Cut => wrong(Kind::Wrong, format!("did not tell its tools: {CUT}")),
        })?;
        let names: Vec<String> =
            reported.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect();
        let unmatched = link.server.pick.unmatched(&names);
        let (good, refused) = listing::check(&link.server, reported);
        let own_names = good.iter().map(|reported| reported.name.clone()).collect();
        let tools = good.into_iter().map(|reported| -> Arc<dyn Tool> {
            Arc::new(McpTool::new(self.clone(), &link.server, reported))
        });
        Ok(Offer { tools: tools.collect(), own_names, refused, names, unmatched })
    }

    /// Calls a tool by the server's own name for it, if the choice of tools leaves it in. `on_progress` gets a line for each
    /// notice.
    ///
    /// # Errors
    /// A [`Failure`]: it is [unreachable](Failure::is_unreachable) where the call certainly was not sent.
    ///
    /// # Cancel safety
    /// The server gets a notice that the call is abandoned. What the server then does is unknown.
    pub async fn call(
        &self,
        tool: &str,
        args: Value,
        on_progress: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<Called, Failure> {
        if !self.owner.link.server.pick.takes(tool) {
            let what = format!("leaves the tool `{tool}` out: it was not called");
            return Err(self.wrong(what).without_effect());
        }
        let learn = |what: Afterwards<'_>| tracing::debug!(?what, "of an abandoned call");
        self.exchange(tool, args, Sink::new(on_progress, learn)).await
    }

    pub(super) async fn exchange(&self, tool: &str, args: Value, sink: Sink) -> Result<Called, Failure> {
        let Value::Object(args) = args else {
            return Err(Failure::new("the arguments of a tool are an object").without_effect());
        };
        let link = &self.owner.link;
        let mut pauses = Pauses::default();
        for _try in 0..limits::MCP_TRIES {
            let live = link.live().await.map_err(McpError::into_failure)?;
            match live.call(tool, args.clone(), &sink).await {
                Ok(result) => {
                    return content::read(result).map_err(|what| self.wrong(format!("answered, but {what}")));
                }
                Err(Fault::NotSent(why)) => {
                    tracing::debug!(server = self.name(), why, "a call was not sent");
                    sleep(pauses.take()).await;
                }
                Err(Fault::Unauthorized) => return Err(self.wrong(link::UNAUTHORIZED).without_effect()),
                Err(Fault::Refused(why)) => return Err(self.answered("answered with an error", &why)),
                Err(Fault::Answered { ours, theirs }) => return Err(self.answered(&ours, &theirs)),
                Err(Fault::Cut) => {
                    let lost = link.why_lost(live.number).await;
                    return Err(lost.map_or_else(|| self.answered(CUT, ""), |why| self.lost(&why)));
                }
                Err(Fault::Lost(why)) => {
                    return Err(self.lost(&link.why_lost(live.number).await.unwrap_or(why)));
                }
            }
        }
        let what = "cannot be reached; the call was not sent";
        Err(McpError::new(self.name(), Kind::Unreachable, what).into_failure())
    }

    /// The end of a call that was answered, but not by a result: in our words, and then the server's own as what they are.
    fn answered(&self, ours: &str, theirs: &str) -> Failure {
        let what = format!("{ours}; what it did is not known");
        let what = McpError::new(self.name(), Kind::Wrong, what).to_string();
        match theirs.trim() {
            "" => Failure::new(what),
            _ => Failure::new(format!("error: {what}\n{}", content::fence(self.name(), theirs))),
        }
    }

    /// The end of a call whose server was lost before it answered.
    fn lost(&self, why: &str) -> Failure {
        self.wrong(format!("was lost before it answered ({why}); what it did is not known"))
    }

    /// The end of a call to a server that answered, but not as it should.
    fn wrong(&self, what: impl Into<String>) -> Failure {
        Failure::new(McpError::new(self.name(), Kind::Wrong, what).to_string())
    }

    /// Ends the server, also for every clone and tool, and waits until it is gone or what is left of it is named. Its
    /// input is closed first; then it climbs the ladder of any command.
    ///
    /// # Cancel safety
    /// The end continues.
    pub async fn close(&self) -> ServerEnd {
        end(&self.owner.stop);
        self.owner.stop.quiet().await;
        ServerEnd { process: self.owner.link.last_end() }
    }
}

/// What is known of an answer that broke off while its server can still be reached.
const CUT: &str = "began to answer, and its answer broke off";

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.owner.link.server).finish_non_exhaustive()
    }
}
