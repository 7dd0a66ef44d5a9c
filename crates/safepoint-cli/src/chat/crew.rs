//! The agent of a chat, which may change between turns, and the planner that uses whatever it is now.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use safepoint::{
    Agent, Failure, Tool,
    approval::{ApprovalRequest, Approvals, Approver, Decision, Unanswered},
    ids::TurnId,
    message::UserMessage,
    session::{Chat, Plan, Planner, Situation},
};
use safepoint_testkit::server::ModelServer;
use safepoint_tools::process::Processes;

use crate::{
    approve,
    args::{AgentArgs, Approve},
    backend,
    model::{self, Chosen},
    run, tools,
};

/// Who works, and what is needed to put another in their place.
pub(super) struct Crew {
    args: AgentArgs,
    tools: Vec<Arc<dyn Tool>>,
    asking: Asking,
    name: Mutex<String>,
    agent: Mutex<Agent>,
    server: Mutex<Option<Arc<ModelServer>>>,
}

/// Whether somebody answers questions. Exhaustive: on the screen, nobody, or sooner or later somebody: where the session
/// is kept, it waits for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    OnScreen,
    Nobody,
    Later,
}

impl Crew {
    /// The crew that the arguments name, and what the user should know about the choice.
    pub(super) async fn choose(
        mut args: AgentArgs,
        processes: &Processes,
        asking: Asking,
    ) -> anyhow::Result<(Arc<Self>, Option<String>)> {
        // Somebody else's agent has tools of its own.
        let all = if args.backend.is_some() { "none" } else { "all" };
        args.tools.get_or_insert_with(|| all.to_owned());
        let words = Mutex::new(Vec::new());
        let note = |word: &str| words.lock().unwrap_or_else(PoisonError::into_inner).push(word.to_owned());
        // The tools keep their servers, until the last of them is gone.
        let (tools, _servers) = tools::chosen(&args, note, processes).await?;
        let chosen = backend::choose(&args, processes).await?;
        let mut words = words.into_inner().unwrap_or_else(PoisonError::into_inner);
        words.extend(chosen.notice.clone());
        let notice = Some(words.join("\n")).filter(|words| !words.is_empty());
        let name = Mutex::new(chosen.name.clone());
        let (agent, server) = build(chosen, &args, &tools, asking)?;
        let crew = Self { args, tools, asking, name, agent: Mutex::new(agent), server: Mutex::new(server) };
        Ok((Arc::new(crew), notice))
    }

    /// Another model from the next turn on.
    pub(super) async fn take_model(&self, named: &str) -> anyhow::Result<()> {
        let mut args = AgentArgs { model: Some(named.to_owned()), backend: None, ..self.args.clone() };
        let wire = |name: &str| name.split(':').next().map(str::to_owned);
        if self.args.model.as_deref().and_then(wire) != wire(named) {
            // They belong to the wire that was named with them.
            (args.base_url, args.api_key_env) = (None, None);
        }
        let chosen = model::choose(&args).await?;
        *self.name.lock().unwrap_or_else(PoisonError::into_inner) = chosen.name.clone();
        let (agent, server) = build(chosen, &args, &self.tools, self.asking)?;
        *self.agent.lock().unwrap_or_else(PoisonError::into_inner) = agent;
        if server.is_some() {
            *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
        }
        Ok(())
    }

    pub(super) fn model(&self) -> String {
        self.name.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Each tool in one line.
    pub(super) fn tools(&self) -> Vec<String> {
        let changing = approve::changing(&self.tools);
        let asks = match (self.args.approve.unwrap_or(Approve::Ask), self.asking) {
            (Approve::Ask, Asking::OnScreen | Asking::Later) => "asks first",
            (Approve::Auto, _) => "runs unasked",
            (Approve::Deny, _) | (Approve::Ask, Asking::Nobody) => "denied",
        };
        let line = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            let asks = if changing.contains(&spec.name) { asks } else { "only reads" };
            let what = spec.description.split(['.', '\n']).next().unwrap_or_default();
            format!("{:<11} {asks:<13} {what}", spec.name)
        };
        let rules = match self.args.rules.len() {
            0 => None,
            1 => Some("before that, a rule of the config file speaks".to_owned()),
            many => Some(format!(
                "before that, {many} rules of the config file speak; the first that fits decides"
            )),
        };
        self.tools.iter().map(line).chain(rules).collect()
    }

    fn agent(&self) -> Agent {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn build(
    chosen: Chosen,
    args: &AgentArgs,
    tools: &[Arc<dyn Tool>],
    asking: Asking,
) -> anyhow::Result<(Agent, Option<Arc<ModelServer>>)> {
    let mut builder = chosen.builder.limits(run::limits(args));
    if let Some(system) = &args.system {
        builder = builder.system(system.as_str());
    }
    builder = approve::ruled(builder, args, tools)?;
    let (person, unanswered): (Option<Arc<dyn Approver>>, _) = match asking {
        Asking::OnScreen => (Some(Arc::new(OnScreen)), Unanswered::Deny),
        Asking::Nobody => (None, Unanswered::Deny),
        // The screen asks what the suspended turn waits for.
        Asking::Later => (None, Unanswered::Suspend),
    };
    let builder = builder.approvals(match args.approve.unwrap_or(Approve::Ask) {
        Approve::Auto => Approvals::Auto,
        Approve::Deny => Approvals::Deny,
        Approve::Ask => Approvals::Ask(person, unanswered),
    });
    Ok((builder.tools(tools.iter().cloned()).try_build()?, chosen._server))
}

/// The person at the screen answers through the session; this only keeps the question open.
struct OnScreen;

impl Approver for OnScreen {
    fn ask(&self, _question: ApprovalRequest) -> BoxFuture<'static, Decision> {
        Box::pin(std::future::pending())
    }
}

/// Plans with whoever is the agent now.
pub(super) struct CrewPlanner(pub(super) Arc<Crew>);

impl Planner<String> for CrewPlanner {
    fn plan(&self, situation: Situation<String>) -> BoxFuture<'_, Result<Plan, Failure>> {
        let chat = Chat::new(self.0.agent());
        Box::pin(async move { chat.plan(situation).await })
    }

    fn steer(&self, item: &String) -> UserMessage {
        item.as_str().into()
    }

    fn resumes(&self, _turn: TurnId) -> Option<Agent> {
        Some(self.0.agent())
    }
}
