//! `safepoint run`: turns one after the other, each shown as it happens, each with its outcome.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use safepoint::{
    Agent, Limits, Outcome, RunHandle,
    approval::Unanswered,
    ids::SessionId,
    receipt::{Ending, Receipt},
};
use safepoint_tools::process::Processes;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::{
    approve,
    args::{AgentArgs, ResumeArgs, RunArgs},
    attach,
    config::Config,
    control::{self, Turns},
    conversation::{Conversation, Must},
    mcp::Used,
    model::{self, Chosen},
    prompts::{prompts, says_something},
    screen::Screen,
    signals::{LAST_CAP, Pressed, Signals},
    survivors, tools,
    view::View,
};

/// Runs the turns; the exit code is the last one's.
pub(crate) async fn run(mut args: Box<RunArgs>) -> anyhow::Result<ExitCode> {
    // First: a signal from now on is answered with an account.
    let mut signals = Signals::listen()?;
    let config = Config::load(args.agent.config.as_deref())?;
    config.fill(&mut args.agent);
    let asked = Arc::new(RunArgs::clone(&args));
    let read = tokio::task::spawn_blocking(move || prompts(&asked));
    let prompts = tokio::select! {
        biased;
        read = read => read.context("the prompt could not be read")??,
        // What was read so far is lost, and there is no run that could keep it.
        got = signals.next() => {
            eprintln!("safepoint: stopped before the prompt was read; no run began");
            return Ok(ExitCode::from(got.exit_code()));
        }
    };
    turns(&args, prompts.into_iter().map(Begin::Prompt).collect(), signals).await
}

/// Goes on with a kept session, and then takes the prompts, if there are any.
pub(crate) async fn resume(args: Box<ResumeArgs>) -> anyhow::Result<ExitCode> {
    let ResumeArgs { resumed, run: mut args } = *args;
    let signals = Signals::listen()?;
    let config = Config::load(args.agent.config.as_deref())?;
    config.fill(&mut args.agent);
    says_something(args.prompt.iter().chain(&args.then))?;
    args.session = Some(resumed);
    let prompts = args.prompt.iter().chain(&args.then).cloned().map(Begin::Prompt);
    let begins = std::iter::once(Begin::Again).chain(prompts).collect();
    turns(&args, begins, signals).await
}

/// How a turn begins. Exhaustive: with something new, or where the last one was.
enum Begin {
    Prompt(String),
    Again,
}

async fn turns(args: &RunArgs, begins: Vec<Begin>, mut signals: Signals) -> anyhow::Result<ExitCode> {
    let is_there = if matches!(begins[..], [Begin::Again, ..]) { Must::Exist } else { Must::BeMade };
    let mut attached = attach::parts(args)?;
    let screen = Screen::start(args.json);
    let processes = Processes::new(survivors::mark());
    let (agent, needs) = agent(args, &screen, &processes).await?;
    let mut conversation = Conversation::open(args, agent, is_there).await?;
    let session = conversation.id().cloned().unwrap_or_else(SessionId::fresh);
    let (turns, socket) = reachable(&session, &conversation, args, &screen).await;
    let mut view = View::new(args, Arc::clone(&screen), &session, conversation.id());
    let (mut code, mut earlier) = (ExitCode::SUCCESS, Vec::new());
    let last = begins.len() - 1;
    for (index, begin) in begins.into_iter().enumerate() {
        let handle = match begin {
            Begin::Prompt(text) => conversation.begin(attach::to(text, &mut attached)).await?,
            Begin::Again => match conversation.resume().await? {
                Some(handle) => handle,
                None => {
                    code = nothing_to_resume(&conversation, &screen).await;
                    continue;
                }
            },
        };
        view.begin(&handle);
        turns.begin(&handle);
        let mut turn =
            Turn { handle, signals: &mut signals, pressed: Pressed::default(), view: &mut view, args };
        turn.follow().await;
        let outcome = turn.handle.done().await;
        let is_last =
            index == last || turn.pressed.count > 1 || (turns.is_ending() || conversation.is_over());
        if is_last {
            turn.end_jobs(&processes, &earlier);
        }
        let receipt = turn.quiet(&outcome, is_last).await;
        let (pressed, handle) = (turn.pressed, turn.handle);
        if receipt.quiet_at.is_none() && !is_last {
            earlier.push(handle);
        }
        view.end(&outcome, &receipt);
        conversation.after(&outcome);
        code = exit_code(&outcome, pressed);
        if pressed.count > 1 || turns.is_ending() || conversation.is_over() {
            break;
        }
    }
    gone(&earlier, &mut signals).await;
    conversation.close().await;
    needs.servers.close().await;
    code = written(&screen, &mut signals, code).await;
    if let Some(socket) = socket {
        socket.finish().await;
    }
    Ok(code)
}

/// Opens the socket over which other terminals reach the turns; without one the run goes on, and says so.
async fn reachable(
    session: &SessionId,
    conversation: &Conversation,
    args: &RunArgs,
    screen: &Screen,
) -> (Arc<Turns>, Option<control::Server>) {
    let turns = Arc::new(Turns::default());
    if let Some(look) = conversation.looker() {
        turns.on_look(look);
    }
    let model = args.agent.model.clone().unwrap_or_default();
    match control::open_run(session.as_str(), &turns, model).await {
        Ok(socket) => (turns, Some(socket)),
        Err(error) => {
            screen.note(&format!("safepoint: no other terminal can reach this run: {error:#}"));
            (turns, None)
        }
    }
}

/// Waits until all is written, however slowly it is read. A signal ends that, and then the exit code says so.
async fn written(screen: &Screen, signals: &mut Signals, code: ExitCode) -> ExitCode {
    tokio::select! {
        biased;
        () = screen.written() => code,
        // What is not yet written is lost.
        got = signals.next() => if code == ExitCode::SUCCESS { ExitCode::from(got.exit_code()) } else { code },
    }
}

/// Says what a session waits for that cannot be taken up: 11 if it waits for a decision.
async fn nothing_to_resume(conversation: &Conversation, screen: &Screen) -> ExitCode {
    let Some(id) = conversation.id() else { return ExitCode::SUCCESS };
    match conversation.open_questions().await {
        0 => {
            screen.note(&format!("safepoint: nothing of {id} is left to take up"));
            ExitCode::SUCCESS
        }
        open => {
            screen.note(&format!(
                "safepoint: {id} waits for {open} decision(s): safepoint approvals {id}, then approve, deny or respond"
            ));
            ExitCode::from(11)
        }
    }
}

/// Waits until nothing of these turns is alive: the jobs of an earlier one were told to end with the last. A signal ends
/// the wait, and the end of this program ends the rest.
async fn gone(turns: &[RunHandle], signals: &mut Signals) {
    const PATIENCE: Duration = Duration::from_secs(7);
    let began = Instant::now();
    let mut ticks = ticks();
    while turns.iter().any(|turn| !turn.alive().is_empty()) && began.elapsed() < PATIENCE {
        tokio::select! {
            biased;
            // Nothing is lost: there is no run that it could stop.
            _ = signals.next() => return,
            _ = ticks.tick() => {}
        }
    }
}

/// One turn while it is watched.
struct Turn<'a> {
    handle: RunHandle,
    signals: &'a mut Signals,
    pressed: Pressed,
    view: &'a mut View,
    args: &'a RunArgs,
}

impl Turn<'_> {
    /// Shows events until the run has settled; signals and a lost reader are acted on at once.
    async fn follow(&mut self) {
        let mut events = self.handle.events();
        let mut closed = std::pin::pin!(self.view.closed());
        let mut reader = Reader::There;
        let mut ticks = ticks();
        loop {
            tokio::select! {
                biased;
                // Losing this branch loses nothing: the signal stays pending.
                got = self.signals.next() => {
                    if let Some(strength) = self.pressed.ask(got, &self.handle, self.args) {
                        self.view.asked(strength);
                    }
                }
                // Losing this one loses nothing: the flag stays set.
                () = &mut closed, if reader == Reader::There => {
                    reader = Reader::Gone;
                    self.pressed.disconnect(&self.handle, self.args, "stdout was closed");
                }
                // Losing this one loses nothing: the reader's place moves only when an event is returned.
                event = events.next() => match event {
                    Some(event) => self.view.event(&event, &self.handle),
                    None => return,
                },
                // Losing this one loses nothing: the next tick is as good.
                _ = ticks.tick() => self.view.live(&self.handle),
            }
        }
    }

    /// Nothing outlives this program: a declared background job ends with the last turn, and that is said.
    fn end_jobs(&self, processes: &Processes, earlier: &[RunHandle]) {
        let alive = earlier.iter().chain([&self.handle]).flat_map(RunHandle::alive);
        for job in alive.filter(|label| is_job(label)) {
            self.view.note(&format!("the {job} ends with this run"));
        }
        processes.end_jobs();
    }

    /// Waits for quiet, and says what for. After another signal it waits only a moment longer; a background job is
    /// waited for only where it was told to end.
    async fn quiet(&mut self, outcome: &Outcome, is_last: bool) -> Arc<Receipt> {
        const PATIENCE: Duration = Duration::from_secs(1);
        let settled = Instant::now();
        let mut ticks = ticks();
        let mut told = Told::No;
        let mut leave = None;
        loop {
            tokio::select! {
                biased;
                // Losing this branch loses nothing: the signal stays pending.
                got = self.signals.next() => {
                    self.pressed.ask(got, &self.handle, self.args);
                    leave.get_or_insert(Instant::now() + LAST_CAP);
                }
                // Losing this one loses nothing: quiet can be awaited again.
                quiet = self.handle.quiet() => return Arc::clone(quiet.receipt()),
                // Losing this one loses nothing: the next tick is as good.
                _ = ticks.tick() => {}
            }
            let alive = self.handle.alive();
            let are_jobs = !is_last && !alive.is_empty() && alive.iter().all(|label| is_job(label));
            if are_jobs && settled.elapsed() >= TICK || leave.is_some_and(|leave| Instant::now() >= leave) {
                return Arc::new(Receipt { survivors: alive, ..Receipt::clone(outcome.receipt()) });
            }
            self.view.live(&self.handle);
            if told == Told::No && settled.elapsed() >= PATIENCE {
                told = Told::Yes;
                self.view.waits(&alive);
            }
        }
    }
}

/// Whether it was said what a turn that has ended waits for. Exhaustive: not yet, or it was.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    No,
    Yes,
}

/// Whether this is the shell tool's name for a declared background job.
fn is_job(label: &str) -> bool {
    label.starts_with("background command")
}

const TICK: Duration = Duration::from_millis(200);

fn ticks() -> Interval {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Whether stdout is still read. Exhaustive: it is or it is not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

fn exit_code(outcome: &Outcome, pressed: Pressed) -> ExitCode {
    ExitCode::from(match (outcome.ending(), pressed.first) {
        (Ending::Done, _) => 0,
        (Ending::Failed, _) => 1,
        (Ending::Suspended, _) => 11,
        (Ending::Stopped, Some(got)) => got.exit_code(),
        (Ending::Stopped, None) => 10,
    })
}

/// What a run needs beside its agent, for as long as it lasts.
struct Needs {
    servers: Used,
    _practice: Option<Arc<safepoint_testkit::server::ModelServer>>,
}

async fn agent(
    args: &RunArgs,
    screen: &Arc<Screen>,
    processes: &Processes,
) -> anyhow::Result<(Agent, Needs)> {
    let (tools, servers) =
        tools::chosen(&args.agent, |word| screen.note(&format!("safepoint: {word}")), processes).await?;
    let Chosen { mut builder, notice, _server, .. } = model::choose(&args.agent).await?;
    if let Some(notice) = notice {
        screen.note(&format!("safepoint: {notice}"));
    }
    builder = builder.limits(limits(&args.agent));
    if let Some(system) = &args.agent.system {
        builder = builder.system(system.as_str());
    }
    let keeps = args.session.is_some() || args.store.is_some();
    let unanswered = if keeps { Unanswered::Suspend } else { Unanswered::Deny };
    builder = approve::under(builder, (&args.agent, unanswered), &tools, screen)?;
    Ok((builder.tools(tools).try_build()?, Needs { servers, _practice: _server }))
}

pub(crate) fn limits(args: &AgentArgs) -> Limits {
    let defaults = Limits::default();
    Limits {
        max_rounds: args.max_rounds.unwrap_or(defaults.max_rounds),
        wall_time: args.timeout,
        parallel_calls: args.parallel.unwrap_or(defaults.parallel_calls),
        call_timeout: args.tool_timeout,
        ..defaults
    }
}
