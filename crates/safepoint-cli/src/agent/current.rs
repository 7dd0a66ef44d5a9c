//! The agent of a chat, which may change between turns, and the planner that uses whatever it is now.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, AgentBuilder, Tool,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, WithoutApprover},
    ids::TurnId,
    message::UserMessage,
    raw::remote::AfterWord,
    session::{ChatPlanner, Plan, PlanContext, Planner},
    stop::Failure,
};
use safepoint_testkit::server::ModelServer;
use safepoint_tools::process::Processes;
use tokio::time::timeout;

use crate::{
    agent::{approvals, attached::Attached, backend, limits::limits, mcp::Used, model, tools},
    args::agent::Approve,
    render::{prompt::Prompt, screen::Screen},
    settings::AgentSettings,
    signals::LAST_CAP,
    sync::lock,
};

/// Who parts, and what is needed to put another in their place.
pub(crate) struct CurrentAgent {
    settings: AgentSettings,
    own: Vec<Arc<dyn Tool>>,
    servers: Used,
    asking: Asking,
    /// The name of the model, as it is shown. It is changed a moment before `works`: no other lock is held
    /// then.
    name: Mutex<String>,
    /// Held to copy or to replace the agent and what it was made of, which change together; not across an
    /// await. `server` is taken under it.
    parts: Mutex<AgentParts>,
    /// Keeps the server of a practice model alive. Only ever replaced, under `works`.
    server: Mutex<Option<Arc<ModelServer>>>,
    /// What goes with messages of the chat.
    pub(crate) attached: Attached,
}

/// Who parts, and what it was made of.
struct AgentParts {
    agent: Agent,
    builder: AgentBuilder,
    tools: Vec<Arc<dyn Tool>>,
    /// How often the servers had changed their tools.
    changes: u64,
}

/// How a session asks for approvals. Exhaustive: on the screen; line by line, where the terminal cannot be
/// drawn on; not at all; or later, where a stored session waits for a decision.
#[derive(Clone)]
pub(crate) enum Asking {
    OnScreen,
    AtKeyboard(Arc<Screen>, WithoutApprover),
    NotAsked,
    Later,
}

impl CurrentAgent {
    /// The crew that the arguments name, and what the user should know about the choice.
    pub(crate) async fn choose(
        mut settings: AgentSettings,
        processes: &Processes,
        asking: Asking,
    ) -> anyhow::Result<(Arc<Self>, Option<String>)> {
        // An external agent brings its own tools.
        let all = if settings.args.backend.is_some() { "none" } else { "all" };
        settings.args.tools.get_or_insert_with(|| all.to_owned());
        let words = Mutex::new(Vec::new());
        let note = |word: &str| lock(&words).push(word.to_owned());
        settings.sandbox = tools::sandbox(&settings, note, processes).await?;
        let (own, servers) = tools::chosen(&settings, note, processes).await?;
        let chosen = backend::choose(&settings, processes, AfterWord::Listens).await?;
        let mut words = words.into_inner().unwrap_or_else(PoisonError::into_inner);
        words.extend(chosen.notice.clone());
        let notice = Some(words.join("\n")).filter(|words| !words.is_empty());
        let name = Mutex::new(chosen.name.clone());
        let tools: Vec<_> = own.iter().cloned().chain(servers.offered()).collect();
        let (builder, server) = (chosen.builder, Mutex::new(chosen._server));
        let agent = build(builder.clone(), &settings, &tools, &asking)?;
        let parts = Mutex::new(AgentParts { agent, builder, tools, changes: 0 });
        let attached = Attached::default();
        Ok((Arc::new(Self { settings, own, servers, asking, name, parts, server, attached }), notice))
    }

    /// Another model from the next turn on.
    pub(crate) async fn take_model(&self, named: &str) -> anyhow::Result<()> {
        let mut settings = self.settings.clone();
        (settings.args.model, settings.args.backend) = (Some(named.to_owned()), None);
        let wire = |name: &str| name.split(':').next().map(str::to_owned);
        if self.settings.args.model.as_deref().and_then(wire) != wire(named) {
            // They belong to the wire that was named with them.
            (settings.args.base_url, settings.args.api_key_env) = (None, None);
        }
        let chosen = model::choose(&settings).await?;
        *lock(&self.name) = chosen.name.clone();
        let mut parts = lock(&self.parts);
        parts.agent = build(chosen.builder.clone(), &settings, &parts.tools, &self.asking)?;
        parts.builder = chosen.builder;
        if chosen._server.is_some() {
            *lock(&self.server) = chosen._server;
        }
        Ok(())
    }

    /// The agent of the next turn: with the tools that the servers have now, where they say that they changed them.
    async fn next(&self) -> Agent {
        let changes = self.servers.changes();
        if changes != lock(&self.parts).changes {
            let tools: Vec<_> = self.own.iter().cloned().chain(self.servers.offers().await).collect();
            let mut parts = lock(&self.parts);
            parts.changes = changes;
            // Where no agent can be made with them, such as under a rule for one that is gone, they stay as they were.
            if let Ok(agent) = build(parts.builder.clone(), &self.settings, &tools, &self.asking) {
                (parts.agent, parts.tools) = (agent, tools);
            }
        }
        self.agent()
    }

    pub(crate) fn model(&self) -> String {
        lock(&self.name).clone()
    }

    /// Whether an external agent works, which takes text alone.
    pub(crate) fn is_external(&self) -> bool {
        self.settings.args.backend.is_some()
    }

    /// Whether a tool, or an external agent with its own, could change files.
    pub(crate) fn may_change_files(&self) -> bool {
        self.settings.args.backend.is_some() || !approvals::changing(&lock(&self.parts).tools).is_empty()
    }

    /// Where its tools edit files; none where an external agent brings its own tools.
    pub(crate) fn edit_root(&self) -> Option<PathBuf> {
        edit_root(&self.settings)
    }

    /// Each tool in one line.
    pub(crate) fn tools(&self) -> Vec<String> {
        let tools = lock(&self.parts).tools.clone();
        let changing = approvals::changing(&tools);
        let mode = approvals::mode(&self.settings);
        let asks = match (mode, &self.asking) {
            (Approve::Ask | Approve::Edits, Asking::OnScreen | Asking::AtKeyboard(..) | Asking::Later) => {
                "asks first"
            }
            (Approve::Auto, _) => "runs unasked",
            (Approve::Deny, _) | (Approve::Ask | Approve::Edits, Asking::NotAsked) => "denied",
        };
        let line = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            let asks = match changing.contains(&spec.name) {
                true if approvals::runs_inside(&self.settings, &spec.name) => "runs inside",
                true => asks,
                false => "only reads",
            };
            let what = spec.description.split(['.', '\n']).next().unwrap_or_default();
            format!("{:<11} {asks:<13} {what}", spec.name)
        };
        let rules = match self.settings.rules.len() {
            0 => None,
            1 => Some("before that, a rule of the config file speaks".to_owned()),
            many => Some(format!(
                "before that, {many} rules of the config file speak; the first that fits decides"
            )),
        };
        tools.iter().map(line).chain(rules).collect()
    }

    /// The note for a session without an approver.
    pub(crate) fn denied(&self) -> Option<String> {
        match self.asking {
            Asking::NotAsked => approvals::denied(&self.settings, &lock(&self.parts).tools),
            Asking::OnScreen | Asking::AtKeyboard(..) | Asking::Later => None,
        }
    }

    /// Ends the servers; what is not gone after a moment is left to the guard.
    pub(crate) async fn leave(&self) {
        if timeout(LAST_CAP, self.servers.close()).await.is_err() {
            // The process continues to end, and is killed with this program.
        }
    }

    fn agent(&self) -> Agent {
        lock(&self.parts).agent.clone()
    }
}

/// Where the tools of these settings edit files.
fn edit_root(settings: &AgentSettings) -> Option<PathBuf> {
    settings.args.backend.is_none().then(|| tools::root(settings).ok()).flatten()
}

/// The agent of these settings.
pub(crate) fn build(
    builder: AgentBuilder,
    settings: &AgentSettings,
    tools: &[Arc<dyn Tool>],
    asking: &Asking,
) -> anyhow::Result<Agent> {
    let mut builder = builder.limits(limits(&settings.args));
    if let Some(system) = &settings.args.system {
        builder = builder.system(system.as_str());
    }
    builder = approvals::ruled(builder, settings, tools)?;
    let (person, unanswered): (Option<Arc<dyn Approver>>, _) = match asking {
        Asking::OnScreen => (Some(Arc::new(OnScreen)), WithoutApprover::Deny),
        Asking::AtKeyboard(screen, unanswered) => {
            let root = edit_root(settings);
            (Some(Prompt::approver(Arc::clone(screen), *unanswered, root)), *unanswered)
        }
        Asking::NotAsked => (None, WithoutApprover::Deny),
        // The screen asks what the suspended turn waits for.
        Asking::Later => (None, WithoutApprover::Suspend),
    };
    let builder = builder.approvals(match approvals::mode(settings) {
        Approve::Auto => ApprovalMode::Auto,
        Approve::Deny => ApprovalMode::Deny,
        Approve::Ask | Approve::Edits => ApprovalMode::Ask(person, unanswered),
    });
    Ok(builder.tools(tools.iter().cloned()).try_build()?)
}

/// The person at the screen answers through the session; this only keeps the question open.
struct OnScreen;

impl Approver for OnScreen {
    fn ask(&self, _question: ApprovalRequest) -> BoxFuture<'static, Decision> {
        Box::pin(std::future::pending())
    }
}

/// Plans turns with the current agent.
pub(crate) struct CurrentPlanner(pub(crate) Arc<CurrentAgent>);

impl Planner<String> for CurrentPlanner {
    fn plan(&self, situation: PlanContext<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        Box::pin(async move {
            let mut plan = ChatPlanner::new(self.0.next().await).plan(situation).await?;
            if let Plan::Turn(turn) = &mut plan {
                turn.input.iter_mut().for_each(|message| self.0.attached.put_into(message));
            }
            Ok(plan)
        })
    }

    fn steer(&self, item: &String) -> UserMessage {
        let mut message = item.as_str().into();
        self.0.attached.put_into(&mut message);
        message
    }

    fn resumes(&self, _turn: TurnId) -> Option<Agent> {
        Some(self.0.agent())
    }
}
