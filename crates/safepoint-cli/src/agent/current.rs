//! The agent of a chat, which may change between turns, and the planner that uses whatever it is now.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, AgentBuilder, Tool,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, WithoutApprover},
    ids::TurnId,
    message::UserMessage,
    raw::remote::AfterWord,
    session::{ChatPlanner, Plan, PlanContext, Planner},
    stop::Failure,
    window::Window,
};
use safepoint_testkit::server::ModelServer;
use safepoint_tools::process::Processes;
use tokio::time::timeout;

use crate::{
    agent::{approvals, backend, known, limits::limits, mcp::Used, model, tools},
    args::agent::Approve,
    prices::Figures,
    render::{
        chat::{compact, meter::table::Fixed},
        prompt::Prompt,
        screen::Screen,
    },
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
    /// The turn that compacts the conversation, and what its summary keeps. Held to copy or to replace it.
    compacts: Mutex<Option<(TurnId, String)>>,
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
        known::summarise_by_default(&mut settings);
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
        let (builder, server) = (known::windowed(chosen.builder, &settings, &chosen.name), Mutex::new(chosen._server));
        let agent = build(builder.clone(), &settings, &tools, &asking)?;
        let parts = Mutex::new(AgentParts { agent, builder, tools, changes: 0 });
        let compacts = Mutex::default();
        Ok((Arc::new(Self { settings, own, servers, asking, name, parts, server, compacts }), notice))
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
        let builder = known::windowed(chosen.builder, &settings, named);
        *lock(&self.name) = chosen.name.clone();
        let mut parts = lock(&self.parts);
        parts.agent = build(builder.clone(), &settings, &parts.tools, &self.asking)?;
        parts.builder = builder;
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

    /// What is known of the model's window, and of prices.
    pub(crate) fn figures(&self) -> Figures {
        known::figures(&self.settings, &self.model())
    }

    /// What each request holds beside the conversation.
    pub(crate) fn fixed(&self) -> Fixed {
        let system = self.settings.args.system.as_ref().map_or(0, |system| system.len() as u64);
        let tools = lock(&self.parts).tools.clone();
        Fixed { system, tools: known::size_of(&tools), files: Vec::new() }
    }

    /// Whether an external agent does the work, which keeps its own context.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.settings.args.backend.is_some()
    }

    /// An agent that compacts the conversation and does nothing else; the usual one if none can be made.
    fn compacting(&self, keep: &str) -> Agent {
        let window = Window::of(self.figures().window.unwrap_or(u64::MAX)).compact(keep);
        let parts = lock(&self.parts);
        let builder = parts.builder.clone().window(window);
        build(builder, &self.settings, &parts.tools, &self.asking).unwrap_or_else(|_| parts.agent.clone())
    }

    /// Whether a tool, or an external agent with its own, could change files.
    pub(crate) fn may_change_files(&self) -> bool {
        self.settings.args.backend.is_some() || !approvals::changing(&lock(&self.parts).tools).is_empty()
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
            (Some(Prompt::approver(Arc::clone(screen), *unanswered)), *unanswered)
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
            let number = situation.turn;
            let mut plan = ChatPlanner::new(self.0.next().await).plan(situation).await?;
            if let Plan::Turn(turn) = &mut plan
                && let Some(keep) = turn.input.first().and_then(|message| compact::keep(&message.text))
            {
                turn.agent = self.0.compacting(keep);
                *lock(&self.0.compacts) = Some((number, keep.to_owned()));
            }
            Ok(plan)
        })
    }

    fn steer(&self, item: &String) -> UserMessage {
        item.as_str().into()
    }

    fn resumes(&self, turn: TurnId) -> Option<Agent> {
        let compacts = lock(&self.0.compacts).clone().filter(|(number, _)| *number == turn);
        Some(compacts.map_or_else(|| self.0.agent(), |(_, keep)| self.0.compacting(&keep)))
    }
}
