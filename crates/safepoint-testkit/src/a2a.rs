//! A2A servers of every kind: honest ones, such as behave like servers that people run, and hostile ones; for testing
//! what an agent says of work that others do.
//!
//! What a server *says* of its work and what its work *does* are two things here: [`A2aServer::deeds`] is what was done,
//! and [`A2aServer::at_work`] how much of it goes on.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

mod card;
#[cfg(feature = "suites")]
mod probe;
mod serving;
mod task;
mod wire;
mod work;

use self::{task::Task, work::Yard};

/// The wire that a server speaks. Exhaustive: the two that there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Protocol 1.0.
    #[default]
    V1,
    /// Protocol 0.3.
    V03,
}

/// A step of a server's work. Exhaustive: a server is told these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Says more of its answer, as a part of an artifact.
    Say(String),
    /// Says something in passing, as the message of its status.
    Note(String),
    /// Goes on when the test [lets it](A2aServer::let_on).
    Wait,
    /// Asks a person something, and waits for the answer.
    Ask(String),
    /// Asks a person to sign in somewhere, and waits.
    SignIn(String),
    /// Fails.
    Fail(String),
}

impl Step {
    /// What it says.
    fn text(&self) -> &str {
        match self {
            Self::Say(text) | Self::Note(text) | Self::Ask(text) | Self::SignIn(text) | Self::Fail(text) => {
                text
            }
            Self::Wait => "",
        }
    }
}

/// What a server does when it is asked to stop. Exhaustive: a server is told one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCancel {
    /// It ends the work, and then says so.
    #[default]
    Ends,
    /// It says so while the work goes on, as Spring AI's executor does.
    Says,
    /// It says so while the work goes on, and its task is completed after all (a2aproject/a2a-js#132).
    SaysAndCompletes,
    /// It answers with the task as it is, and does nothing (Molecule-AI/molecule-core#173).
    Nods,
    /// It refuses, as Koog does where nothing else is written.
    Refuses,
    /// Nobody has written it: the request fails, as Embabel's does, and so does asking for the task.
    Unwritten,
    /// It marks the task as failed, with an error for an answer, and ends the work, as the PyPI `a2a-sdk` does where an
    /// executor raises `NotImplementedError` (google/adk-python#4127).
    EndsWithAnError,
    /// It refuses, and calls its task canceled all the same, while the work goes on.
    RefusesAndSays,
    /// It answers with another task, which is canceled, while the work goes on.
    SaysOfAnother,
    /// It never answers.
    Deaf,
    /// It hangs up.
    HangsUp,
}

/// How a server tells what it does. Exhaustive: a server is told one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tells {
    /// As a stream that begins with the task.
    #[default]
    Task,
    /// As a stream that begins with a status, and says what it was asked itself, as Embabel's does.
    Status,
    /// As a stream of one message, without any task.
    Message,
    /// It does not stream: its tasks can be looked at.
    Looks,
}

/// What is wrong with a server's streams. Exhaustive: a server is told one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// Nothing.
    #[default]
    Well,
    /// The first one is cut behind so many events; it can be taken up again.
    CutAfter(usize),
    /// The first one is cut behind so many events, and cannot be taken up again; the task can be looked at.
    CutForGood(usize),
    /// Each one is cut behind its first event, and nothing else is answered.
    CutAndGone,
    /// Each one is cut behind its first event, as by a proxy that is short of patience.
    CutEach,
    /// A message is answered with this HTTP status; from 500 on its work has begun by then.
    Status(u16),
    /// What comes is no JSON.
    Garbage,
    /// What comes is one event of so many bytes.
    Huge(usize),
    /// What comes is a web page.
    Page,
    /// What comes is not UTF-8.
    Binary,
    /// Nothing comes.
    Silent,
}

/// What is wrong with a server's card. Exhaustive: a server is told one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Card {
    /// Nothing.
    #[default]
    Well,
    /// It never ends.
    Endless,
    /// It never comes.
    Silent,
    /// It is no JSON.
    Garbage,
    /// It names no place where JSON-RPC is spoken.
    Elsewhere,
    /// It sends its callers, and what they send along, to somebody else.
    Abroad,
    /// There is none.
    Missing,
}

/// Who names a server's conversations. Exhaustive: a server is told one of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contexts {
    /// Whoever begins one.
    #[default]
    Callers,
    /// The server: a name that it does not know is another one there.
    Own,
}

/// How a server behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manners {
    /// What it speaks.
    pub wire: Wire,
    /// What its work is.
    pub plan: Vec<Step>,
    /// What it does when it is asked to stop.
    pub on_cancel: OnCancel,
    /// How it tells what it does.
    pub tells: Tells,
    /// What is wrong with its streams.
    pub streams: Streams,
    /// What is wrong with its card.
    pub card: Card,
    /// Who names its conversations.
    pub contexts: Contexts,
    /// How often somebody who looks at a task is told to come again later (429), before it is shown.
    pub busy: usize,
}

impl Manners {
    /// An honest server: it says `half`, waits, says ` done` and has completed its task; a stop ends its work.
    #[must_use]
    pub fn honest(wire: Wire) -> Self {
        let plan = vec![Step::Say("half".into()), Step::Wait, Step::Say(" done".into())];
        Self { wire, plan, ..Self::default() }
    }

    /// Like Spring AI's: 0.3 and no streams; a stop is only said.
    #[must_use]
    pub fn like_spring_ai() -> Self {
        Self { on_cancel: OnCancel::Says, tells: Tells::Looks, ..Self::honest(Wire::V03) }
    }

    /// Like Embabel's: 0.3; nobody has written what a stop does.
    #[must_use]
    pub fn like_embabel() -> Self {
        Self { on_cancel: OnCancel::Unwritten, tells: Tells::Status, ..Self::honest(Wire::V03) }
    }

    /// Like Koog's: 0.3; it refuses.
    #[must_use]
    pub fn like_koog() -> Self {
        Self { on_cancel: OnCancel::Refuses, ..Self::honest(Wire::V03) }
    }

    /// With another plan.
    #[must_use]
    pub fn plan(mut self, plan: impl IntoIterator<Item = Step>) -> Self {
        self.plan = plan.into_iter().collect();
        self
    }

    /// With another answer to a stop.
    #[must_use]
    pub fn on_cancel(mut self, on_cancel: OnCancel) -> Self {
        self.on_cancel = on_cancel;
        self
    }

    /// Telling it in another way.
    #[must_use]
    pub fn tells(mut self, tells: Tells) -> Self {
        self.tells = tells;
        self
    }

    /// With something wrong with its streams.
    #[must_use]
    pub fn streams(mut self, streams: Streams) -> Self {
        self.streams = streams;
        self
    }

    /// With conversations that it names by itself.
    #[must_use]
    pub fn contexts(mut self, contexts: Contexts) -> Self {
        self.contexts = contexts;
        self
    }

    /// Telling so many who look at a task to come again later.
    #[must_use]
    pub fn busy(mut self, looks: usize) -> Self {
        self.busy = looks;
        self
    }

    /// With something wrong with its card.
    #[must_use]
    pub fn card(mut self, card: Card) -> Self {
        self.card = card;
        self
    }
}

/// What a server was asked. Exhaustive: a request, or the end of an exchange before its answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// A request: its method, `card` for the card, and its parameters.
    Asked(String, Value),
    /// The client gave up the exchange of this method.
    GaveUp(String),
}

/// A server that listens until it is dropped.
#[derive(Debug)]
pub struct A2aServer {
    url: String,
    mind: Arc<Mind>,
    task: JoinHandle<()>,
}

/// What the server's connections share.
#[derive(Debug)]
struct Mind {
    manners: Manners,
    url: String,
    seen: Mutex<Vec<Seen>>,
    bearers: Mutex<Vec<String>>,
    tasks: Mutex<Vec<Arc<Task>>>,
    yard: Yard,
    /// How often streams were cut on purpose.
    cuts: watch::Sender<usize>,
}

impl A2aServer {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// If there is no port.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(manners: Manners) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let url = format!("http://{}", listener.local_addr()?);
        let mind = Arc::new(Mind {
            manners,
            url: url.clone(),
            seen: Mutex::default(),
            bearers: Mutex::default(),
            tasks: Mutex::default(),
            yard: Yard::default(),
            cuts: watch::Sender::new(0),
        });
        let for_task = Arc::clone(&mind);
        let task = tokio::spawn(async move {
            // Dropped with this task: a server that is gone answers on no connection that it still had.
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let mind = Arc::clone(&for_task);
                connections.spawn(async move {
                    if serving::serve(socket, &mind).await.is_err() {
                        // The client is gone.
                    }
                });
            }
        });
        Ok(Self { url, mind, task })
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it was asked so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.mind.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often it was asked by this method, as 1.0 names it.
    #[must_use]
    pub fn asked(&self, method: &str) -> usize {
        self.seen().iter().filter(|seen| matches!(seen, Seen::Asked(name, _) if name == method)).count()
    }

    /// The `authorization` of each request that had one.
    #[must_use]
    pub fn bearers(&self) -> Vec<String> {
        self.mind.bearers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether anybody gave up an exchange.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.seen().iter().any(|seen| matches!(seen, Seen::GaveUp(_)))
    }

    /// What its work really did, in order: `began`, `said TEXT`, `was told TEXT`, `torn down`, `ended`, and `unheard
    /// TEXT` for what it said behind the end of its task.
    #[must_use]
    pub fn deeds(&self) -> Vec<String> {
        self.mind.yard.deeds()
    }

    /// How much work goes on.
    #[must_use]
    pub fn at_work(&self) -> usize {
        self.mind.yard.at_work()
    }

    /// Waits until so many works in all have come to a [`Step::Wait`], a [`Step::Ask`] or a [`Step::SignIn`].
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn came(&self, works: usize) {
        self.mind.yard.came(works).await;
    }

    /// Waits until no work goes on.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn idle(&self) {
        self.mind.yard.idle().await;
    }

    /// Waits until it cut so many streams in all.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn cut(&self, streams: usize) {
        let mut cuts = self.mind.cuts.subscribe();
        if cuts.wait_for(|cuts| *cuts >= streams).await.is_err() {
            // The server is gone with `self`, which is here.
        }
    }

    /// Lets one work that waits, now or later, go on.
    pub fn let_on(&self) {
        self.mind.yard.let_on(1);
    }

    /// Lets all work go on, also what is yet to come.
    pub fn let_all_on(&self) {
        const ALL: usize = 1 << 20;
        self.mind.yard.let_on(ALL);
    }

    /// How much work was begun.
    #[must_use]
    pub fn begun(&self) -> usize {
        self.mind.tasks().len()
    }
}

impl Drop for A2aServer {
    fn drop(&mut self) {
        self.task.abort();
        for task in self.mind.tasks() {
            task.tear_down();
        }
    }
}

impl Mind {
    fn note(&self, seen: Seen) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }

    fn tasks(&self) -> Vec<Arc<Task>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn task(&self, id: &str) -> Option<Arc<Task>> {
        self.tasks().into_iter().find(|task| task.id == id)
    }

    /// A new task, whose work begins.
    fn begin(self: &Arc<Self>, context: Option<&str>) -> Arc<Task> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let number = tasks.len() + 1;
        let is_known = |context: &&str| tasks.iter().any(|task| task.context == **context);
        let named = match self.manners.contexts {
            Contexts::Callers => context,
            Contexts::Own => context.filter(is_known),
        };
        let context = named.map_or_else(|| format!("context-{number}"), str::to_owned);
        let task = Arc::new(Task::new(format!("task-{number}"), context));
        tasks.push(Arc::clone(&task));
        work::begin(Arc::clone(self), Arc::clone(&task));
        task
    }
}
