//! `safepoint run`: turns one after the other, each shown as it happens, each with its outcome.

use std::{collections::VecDeque, process::ExitCode, sync::Arc};

use anyhow::Context as _;
use safepoint::{Agent, approval::WithoutApprover, ids::SessionId, raw::remote::AfterWord};
use safepoint_testkit::{replay::Replay, server::ModelServer};
use safepoint_tools::process::{Deadline, Processes};

mod turn;
mod turns;

use turn::gone;
use turns::{Begin, TurnQueue};

use crate::{
    agent::{
        approvals, backend,
        current::{Asking, Making, build},
        helpers::Helpers,
        mcp::Used,
        mode::{CurrentMode, PlanEnd},
        model::Chosen,
        tools,
    },
    args::run::{ResumeArgs, RunArgs},
    command::leaving::CommandEnd,
    control::{self, Inlet, Turns},
    exit, output,
    render::{approval, keyboard::Keyboard, screen::Screen, turn::View},
    session::{
        attachments,
        conversation::{Conversation, EarlyStop, First},
        processes,
        prompts::{prompts, says_something},
    },
    settings::{AgentSettings, store::kept_in},
    signals::{LAST_CAP, Signal, Signals},
};

/// Runs the turns; the exit code is the last one's.
pub(crate) async fn run(mut args: Box<RunArgs>) -> anyhow::Result<ExitCode> {
    // First: a signal from now on is answered with a receipt.
    let mut signals = Signals::listen(args.on_disconnect)?;
    let settings = settled(&mut args).await?;
    let asked = Arc::new(RunArgs::clone(&args));
    let read = tokio::task::spawn_blocking(move || prompts(&asked));
    let prompts = tokio::select! {
        biased;
        // First: a prompt that is read is not thrown away; the signal stays pending, and stops its turn. Losing this
        // branch leaves the thread reading, until the end of this program.
        read = read => read.context("the prompt could not be read")??,
        // The input read so far is lost: there is no run to store it.
        got = signals.next() => {
            output::tell("safepoint: stopped before the prompt was read; no run began");
            return Ok(exit::with(got.exit_code()));
        }
    };
    turns((&args, &settings), prompts.into_iter().map(Begin::Prompt).collect(), signals).await
}

/// Resumes a stored session, then runs the prompts.
pub(crate) async fn resume(args: Box<ResumeArgs>) -> anyhow::Result<ExitCode> {
    let ResumeArgs { resumed, run: mut args } = *args;
    let signals = Signals::listen(args.on_disconnect)?;
    says_something(args.prompt.iter().chain(&args.then))?;
    args.session = Some(resumed);
    let settings = settled(&mut args).await?;
    let prompts = args.prompt.iter().chain(&args.then).cloned().map(Begin::Prompt);
    let begins = std::iter::once(Begin::Again).chain(prompts).collect();
    turns((&args, &settings), begins, signals).await
}

/// Reads the config file and the remembered settings, and fills in what the command line left open.
async fn settled(args: &mut RunArgs) -> anyhow::Result<AgentSettings> {
    let (session, store) = (args.session.as_ref(), args.store.as_ref());
    let settings = AgentSettings::complete(args.agent.clone(), session, store, None).await?;
    args.agent = settings.args.clone();
    Ok(settings)
}

async fn turns(
    (args, settings): (&RunArgs, &AgentSettings),
    begins: VecDeque<Begin>,
    mut signals: Signals,
) -> anyhow::Result<ExitCode> {
    let attached = attachments::parts(args)?;
    let screen = Screen::start(args.json);
    let (processes, deadline) = processes::processes(settings).await;
    let first = match begins.front() {
        Some(Begin::Prompt(text)) => First::Prompt(text),
        Some(Begin::Again) | None => First::Resume,
    };
    let ready = ready((args, settings), first, (&screen, &processes, deadline), &mut signals);
    let (conversation, needs) = match ready.await? {
        Ok(ready) => ready,
        Err(got) => {
            screen.note("safepoint: stopped before a turn began");
            let code = exit::with(got.exit_code());
            let over = CommandEnd { code, ending: None, kept: None, on_disconnect: args.on_disconnect };
            return Ok(over.leave(&mut signals, &screen).await);
        }
    };
    let session = conversation.stored().map_or_else(SessionId::fresh, |stored| stored.id.clone());
    tell_earlier(&conversation, &session, &screen).await;
    let (turns, socket) = reachable(&session, &conversation, args, &screen).await;
    let view = View::new(
        args,
        Arc::clone(&screen),
        &session,
        conversation.stored().map(|kept| (kept.epoch, Arc::clone(&kept.store))),
    );
    let mut course = TurnQueue {
        args,
        signals: &mut signals,
        conversation,
        view,
        screen: &screen,
        turns,
        processes: &processes,
        attached,
        begins,
        earlier: Vec::new(),
        code: ExitCode::SUCCESS,
        ending: None,
    };
    let went = course.go().await;
    let TurnQueue { conversation, earlier, code, ending, .. } = course;
    signals.turns_are_over();
    gone(&earlier, &mut signals).await;
    let kept = conversation.stored().map(|stored| stored.id.clone());
    if let Some(word) = needs.left() {
        screen.note(&word);
    }
    end(conversation, needs, &mut signals).await;
    let over = CommandEnd { code, ending, kept: kept.as_ref(), on_disconnect: args.on_disconnect };
    let code = over.leave(&mut signals, &screen).await;
    went?;
    if let Some(socket) = socket {
        socket.finish().await;
    }
    Ok(code)
}

/// What the turns need, unless a signal is first.
async fn ready(
    (args, settings): (&RunArgs, &AgentSettings),
    first: First<'_>,
    (screen, processes, deadline): (&Arc<Screen>, &Processes, Deadline),
    signals: &mut Signals,
) -> anyhow::Result<Result<(Conversation, Needs), Signal>> {
    let (agent, needs) = tokio::select! {
        biased;
        // First: what is ready is used, and closed in order; the signal stays pending.
        chosen = agent((args, settings), screen, processes) => chosen?,
        // Nothing is stored yet.
        got = signals.next() => return Ok(Err(got)),
    };
    let opening = Conversation::open((args, settings), agent, first, deadline);
    Ok(opened(opening, signals, screen).await?.map(|conversation| (conversation, needs)))
}

/// Opens the conversation, unless a signal is first. The prompt that a new session was created with is
/// withdrawn then, which a second signal does not wait for.
async fn opened(
    opening: impl Future<Output = anyhow::Result<Conversation>>,
    signals: &mut Signals,
    screen: &Screen,
) -> anyhow::Result<Result<Conversation, Signal>> {
    let mut opening = std::pin::pin!(opening);
    let got = tokio::select! {
        biased;
        opened = &mut opening => return opened.map(Ok),
        // Losing this branch loses nothing: the signal stays pending.
        got = signals.next() => got,
    };
    let left = async {
        if let Ok(conversation) = opening.await {
            conversation.leave_unsaid().await;
        }
    };
    tokio::select! {
        biased;
        () = left => return Ok(Err(got)),
        // Losing either loses nothing: this program ends.
        _ = signals.next() => {}
        () = tokio::time::sleep(LAST_CAP) => {}
    }
    screen.note("safepoint: the store did not answer; the prompt may wait in its session");
    Ok(Err(got))
}

/// Shows the open work from the session's earlier processes.
async fn tell_earlier(conversation: &Conversation, session: &SessionId, screen: &Screen) {
    let Some(stored) = conversation.stored() else { return };
    for lost in stored.lost() {
        screen.note(&format!("safepoint: {}", approval::lost(&lost)));
    }
    for (number, why) in stored.undeliverable().await {
        screen.note(&format!(
            "safepoint: item-{number} is not delivered, {why}; safepoint withdraw {session} item-{number} takes it out"
        ));
    }
}

/// Releases what the run used. A signal makes it end at once; a second one ends the wait.
async fn end(conversation: Conversation, needs: Needs, signals: &mut Signals) {
    let stop = conversation.early_stop();
    let mut ending = std::pin::pin!(async {
        conversation.close().await;
        needs.servers.close().await;
    });
    for _first_and_second in 0..2 {
        tokio::select! {
            biased;
            // First: what has ended needs no signal.
            () = &mut ending => return,
            // Losing this branch loses nothing: what is ending continues to end.
            _ = signals.next() => stop.iter().for_each(EarlyStop::end_now),
        }
    }
}

/// Opens the socket for other terminals. Without a socket the run continues with a note.
async fn reachable(
    session: &SessionId,
    conversation: &Conversation,
    args: &RunArgs,
    screen: &Screen,
) -> (Arc<Turns>, Option<control::Server>) {
    let turns = Arc::new(Turns::default());
    if let Some(kept) = conversation.stored() {
        turns.of(Inlet::new(kept.session.handle(), Some((Arc::clone(&kept.store), session.clone()))));
    }
    let model = args.agent.model.clone().or_else(|| args.agent.backend.clone()).unwrap_or_default();
    let socket = control::open_run(session.as_str(), &turns, model).await.inspect_err(|error| {
        screen.note(&format!("safepoint: no other terminal can reach this run: {error:#}"));
    });
    (turns, socket.ok())
}

/// What a run needs beside its agent, for as long as it lasts.
struct Needs {
    servers: Used,
    replay: Option<Replay>,
    _practice: Option<Arc<ModelServer>>,
}

impl Needs {
    /// The requests of a recording that were not made.
    fn left(&self) -> Option<String> {
        let left = self.replay.as_ref().map(Replay::left).filter(|left| *left > 0)?;
        Some(format!("safepoint: the recording has {left} more requests that were not made"))
    }
}

/// A wrong name of a model or a backend is an error before there is a session.
async fn agent(
    (args, settings): (&RunArgs, &AgentSettings),
    screen: &Arc<Screen>,
    processes: &Processes,
) -> anyhow::Result<(Agent, Needs)> {
    let kept_in = kept_in(args.session.as_ref(), args.store.as_ref())?;
    let settings = &AgentSettings { kept_in, ..settings.clone() };
    // This program ends with the run.
    let chosen = backend::choose(settings, processes, AfterWord::Leaves).await?;
    let note = |word: &str| screen.note(&format!("safepoint: {word}"));
    let sandbox = tools::sandbox(settings, note, processes).await?;
    let settings = &AgentSettings { sandbox, ..settings.clone() };
    let (mut tools, servers) = tools::chosen(settings, note, processes).await?;
    tools.extend(servers.offered());
    let Chosen { builder, notice, replay, _server, .. } = chosen;
    if let Some(notice) = notice {
        screen.note(&format!("safepoint: {notice}"));
    }
    let asking = match (Keyboard::is_there(), settings.kept_in.is_some()) {
        (true, true) => Asking::AtKeyboard(Arc::clone(screen), WithoutApprover::Suspend),
        (true, false) => Asking::AtKeyboard(Arc::clone(screen), WithoutApprover::Deny),
        (false, true) => Asking::Later,
        (false, false) => {
            approvals::denied(settings, &tools).into_iter().for_each(|word| screen.note(&word));
            Asking::NotAsked
        }
    };
    let mode = CurrentMode::of(&settings.args, PlanEnd::Answer);
    let helpers = match settings.args.backend {
        Some(_) => Helpers::default(),
        None => Helpers::of(settings, &tools, note).await,
    };
    settings.project.lines().for_each(|line| note(&line));
    let making = Making { settings, asking: &asking, mode: &mode, helpers: &helpers };
    let agent = build(builder, &tools, &making)?;
    Ok((agent, Needs { servers, replay, _practice: _server }))
}
