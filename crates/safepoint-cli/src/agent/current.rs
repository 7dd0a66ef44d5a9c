//! The agent of a chat, which may change between turns.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, AgentBuilder, Tool,
    approval::{ApprovalMode, ApprovalRequest, Approver, Decision, WithoutApprover},
    ids::TurnId,
    raw::remote::AfterWord,
    window::Window,
};
use safepoint_testkit::server::ModelServer;
use safepoint_tools::process::Processes;
use tokio::time::timeout;

use crate::{
    agent::{
        approvals,
        attached::Attached,
        backend,
        helpers::Helpers,
        known,
        limits::{limits, on_restart},
        mcp::Used,
        mode::{CurrentMode, PlanEnd},
        model, offered,
        own_turn::OwnTurn,
        status, todo, tools,
    },
    args::{agent::Approve, mode::WorkMode},
    prices::Figures,
    render::{
        chat::{choosing::OfferedModels, meter::table::Fixed, status::Status},
        prompt::Prompt,
        screen::Screen,
    },
    settings::{AgentSettings, project_files::ProjectText},
    signals::LAST_CAP,
    sync::lock,
};

/// Who parts, and what is needed to put another in their place.
pub(crate) struct CurrentAgent {
    settings: AgentSettings,
    own: Vec<Arc<dyn Tool>>,
    servers: Used,
    asking: Asking,
    mode: CurrentMode,
    helpers: Helpers,
    /// The name of the model, as it is shown. It is changed a moment before `works`: no other lock is held
    /// then.
    name: Mutex<String>,
    /// Held to copy or to replace the agent and what it was made of, which change together; not across an
    /// await. `server` is taken under it.
    parts: Mutex<AgentParts>,
    /// Keeps the server of a practice model alive. Only ever replaced, under `works`.
    server: Mutex<Option<Arc<ModelServer>>>,
    /// The last turn that another agent does. Held to copy or to replace it.
    pub(super) own_turn: Mutex<Option<(TurnId, OwnTurn)>>,
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
    /// Whether it was made for plan mode.
    is_for_plan: bool,
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
        (asking, plan_end): (Asking, PlanEnd),
    ) -> anyhow::Result<(Arc<Self>, Option<String>)> {
        known::summarise_by_default(&mut settings);
        // An external agent brings its own tools.
        let all = if settings.args.backend.is_some() { "none" } else { "all" };
        settings.args.tools.get_or_insert_with(|| all.to_owned());
        let words = Mutex::new(Vec::new());
        let note = |word: &str| lock(&words).push(word.to_owned());
        settings.sandbox = tools::sandbox(&settings, note, processes).await?;
        let (mut own, servers) = tools::chosen(&settings, note, processes).await?;
        let has_tools = settings.args.tools.as_deref().is_some_and(|list| list.trim() != "none");
        own.extend(has_tools.then(todo::tool));
        let chosen = backend::choose(&settings, processes, AfterWord::Listens).await?;
        let name = Mutex::new(chosen.name.clone());
        let tools: Vec<_> = own.iter().cloned().chain(servers.offered()).collect();
        let builder = known::windowed(chosen.builder, &settings, &chosen.name);
        let server = Mutex::new(chosen._server);
        let helpers = match settings.args.backend {
            Some(_) => Helpers::default(),
            None => Helpers::of(&settings, &tools, note).await,
        };
        let mut words = words.into_inner().unwrap_or_else(PoisonError::into_inner);
        words.extend(chosen.notice.clone());
        let notice = Some(words.join("\n")).filter(|words| !words.is_empty());
        let mode = CurrentMode::of(&settings.args, plan_end);
        let agent = build(
            builder.clone(),
            &tools,
            &Making { settings: &settings, asking: &asking, mode: &mode, helpers: &helpers },
        )?;
        let is_for_plan = mode.is_plan();
        let parts = Mutex::new(AgentParts { agent, builder, tools, changes: 0, is_for_plan });
        let (attached, own_turn) = (Attached::default(), Mutex::default());
        let this =
            Self { settings, own, servers, asking, mode, helpers, name, parts, server, own_turn, attached };
        Ok((Arc::new(this), notice))
    }

    /// Another model from the next turn on.
    pub(crate) async fn take_model(&self, named: &str) -> anyhow::Result<()> {
        let settings = self.settings.with_model(named);
        let chosen = model::choose(&settings).await?;
        let builder = known::windowed(chosen.builder, &settings, named);
        *lock(&self.name) = chosen.name.clone();
        let mut parts = lock(&self.parts);
        let is_for_plan = self.mode.is_plan();
        parts.agent = build(builder.clone(), &parts.tools, &Making { settings: &settings, ..self.making() })?;
        (parts.builder, parts.is_for_plan) = (builder, is_for_plan);
        if chosen._server.is_some() {
            *lock(&self.server) = chosen._server;
        }
        Ok(())
    }

    /// The models that can be taken.
    pub(crate) async fn offered_models(&self) -> OfferedModels {
        offered::models(&self.settings, &self.model()).await
    }

    /// The agent of the next turn: with the tools that the servers have now, where they say that they changed them, and with
    /// those that the mode offers.
    pub(super) async fn next(&self) -> Agent {
        let (changes, is_for_plan) = (self.servers.changes(), self.mode.is_plan());
        let (has_changed, is_other) = {
            let parts = lock(&self.parts);
            (changes != parts.changes, is_for_plan != parts.is_for_plan)
        };
        if has_changed || is_other {
            let tools: Vec<_> = match has_changed {
                true => self.own.iter().cloned().chain(self.servers.offers().await).collect(),
                false => lock(&self.parts).tools.clone(),
            };
            let mut parts = lock(&self.parts);
            (parts.changes, parts.is_for_plan) = (changes, is_for_plan);
            // Where no agent can be made with them, such as under a rule for one that is gone, they stay as they were.
            if let Ok(agent) = build(parts.builder.clone(), &tools, &self.making()) {
                (parts.agent, parts.tools) = (agent, tools);
            }
        }
        self.agent()
    }

    /// Changes the mode: from the next call on, also of a turn that is running. It answers no question.
    pub(crate) fn set_mode(&self, mode: WorkMode) {
        self.mode.set(mode);
    }

    /// The mode that holds, and the one that follows a plan.
    pub(crate) fn modes(&self) -> (WorkMode, WorkMode) {
        (self.mode.now(), WorkMode::base(self.settings.args.approve))
    }

    /// What the project and its user say: instructions, with their files and sizes, and slash commands.
    pub(crate) fn project(&self) -> &ProjectText {
        &self.settings.project
    }

    /// Whether an external agent does the work, with its own tools; it takes text alone.
    pub(crate) fn is_external(&self) -> bool {
        self.settings.args.backend.is_some()
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
        let said = self.settings.args.system.iter().cloned().chain(self.mode.instructions());
        let system = said.map(|text| text.len() as u64).sum();
        let of_project = self.settings.project.instructions.files();
        let files =
            of_project.iter().map(|file| (file.path.display().to_string(), file.bytes() as u64)).collect();
        let tools = self.mode.offered(&lock(&self.parts).tools);
        let (count, size) = known::size_of(&tools);
        let helpers: Vec<usize> = self.helpers.list().map(|(name, what)| name.len() + what.len()).collect();
        Fixed { system, tools: (count + helpers.len(), size + helpers.iter().sum::<usize>() as u64), files }
    }

    /// An agent that compacts the conversation and does nothing else; the usual one if none can be made.
    pub(super) fn compacting(&self, keep: &str) -> Agent {
        let window = Window::of(self.figures().window.unwrap_or(u64::MAX)).compact(keep);
        let parts = lock(&self.parts);
        let builder = parts.builder.clone().window(window);
        build(builder, &parts.tools, &self.making()).unwrap_or_else(|_| parts.agent.clone())
    }

    /// An agent whose tools read only, whatever the mode is.
    ///
    /// # Errors
    /// If none can be made.
    pub(super) fn reviewing(&self) -> anyhow::Result<Agent> {
        let parts = lock(&self.parts);
        let mode = CurrentMode::reviewing();
        build(parts.builder.clone(), &parts.tools, &Making { mode: &mode, ..self.making() })
    }

    /// What holds now.
    pub(crate) fn status(&self) -> Status {
        status::of(self, &self.settings, self.servers.counted())
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
        let mode = self.mode.now();
        let asks = match (mode, &self.asking) {
            (WorkMode::Plan, _) => "not in plan",
            (WorkMode::Ask | WorkMode::Edits, Asking::OnScreen | Asking::AtKeyboard(..) | Asking::Later) => {
                "asks first"
            }
            (WorkMode::Auto, _) => "runs unasked",
            (WorkMode::Deny, _) | (WorkMode::Ask | WorkMode::Edits, Asking::NotAsked) => "denied",
        };
        let runs_inside =
            |name: &str| mode == WorkMode::Edits && approvals::can_run_inside(&self.settings, name);
        let line = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            let asks = match changing.contains(&spec.name) {
                true if runs_inside(&spec.name) => "runs inside",
                true => asks,
                false => "only reads",
            };
            let what = spec.description.split(['.', '\n']).next().unwrap_or_default();
            format!("{:<11} {asks:<13} {what}", spec.name)
        };
        let rules = match self.settings.rules.len() {
            0 => None,
            1 => Some("first, a rule of the config file decides".to_owned()),
            many => Some(format!("first, {many} rules of the config file: the first that fits decides")),
        };
        let helpers = self.helpers.list().map(|(name, what)| format!("{name:<11} {:<13} {what}", "an agent"));
        tools.iter().map(line).chain(helpers).chain(rules).collect()
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

    fn making(&self) -> Making<'_> {
        let Self { settings, asking, mode, helpers, .. } = self;
        Making { settings, asking, mode, helpers }
    }

    pub(super) fn agent(&self) -> Agent {
        lock(&self.parts).agent.clone()
    }
}

/// Where the tools of these settings edit files.
fn edit_root(settings: &AgentSettings) -> Option<PathBuf> {
    settings.args.backend.is_none().then(|| tools::root(settings).ok()).flatten()
}

/// What an agent is made with beside its model and its tools.
#[derive(Clone, Copy)]
pub(crate) struct Making<'a> {
    pub(crate) settings: &'a AgentSettings,
    pub(crate) asking: &'a Asking,
    pub(crate) mode: &'a CurrentMode,
    pub(crate) helpers: &'a Helpers,
}

/// The agent of these settings.
pub(crate) fn build(
    builder: AgentBuilder,
    tools: &[Arc<dyn Tool>],
    making: &Making<'_>,
) -> anyhow::Result<Agent> {
    let Making { settings, mode, helpers, .. } = making;
    let usual = builder.clone();
    let mut builder = builder.limits(limits(&settings.args)).on_restart(on_restart(&settings.args));
    let instructions: Vec<String> = settings.instructions().chain(mode.instructions()).collect();
    if !instructions.is_empty() {
        builder = builder.system(instructions.join("\n\n"));
    }
    builder = approvals::ruled(builder, settings, tools, mode)?.approvals(making.approvals());
    builder = helpers.join(builder, &usual, tools, making)?;
    Ok(builder.tools(mode.offered(tools)).try_build()?)
}

impl Making<'_> {
    /// Who decides about calls that need approval.
    pub(crate) fn approvals(&self) -> ApprovalMode {
        let (person, unanswered): (Option<Arc<dyn Approver>>, _) = match self.asking {
            Asking::OnScreen => (Some(Arc::new(OnScreen)), WithoutApprover::Deny),
            Asking::AtKeyboard(screen, unanswered) => {
                let root = edit_root(self.settings);
                (Some(Prompt::approver(Arc::clone(screen), *unanswered, root)), *unanswered)
            }
            Asking::NotAsked => (None, WithoutApprover::Deny),
            // The screen asks what the suspended turn waits for.
            Asking::Later => (None, WithoutApprover::Suspend),
        };
        match approvals::approve(self.settings) {
            Approve::Auto => ApprovalMode::Auto,
            Approve::Deny => ApprovalMode::Deny,
            Approve::Ask | Approve::Edits => ApprovalMode::Ask(person, unanswered),
        }
    }
}

/// The person at the screen answers through the session; this only keeps the question open.
struct OnScreen;

impl Approver for OnScreen {
    fn ask(&self, _question: ApprovalRequest) -> BoxFuture<'static, Decision> {
        Box::pin(std::future::pending())
    }
}
