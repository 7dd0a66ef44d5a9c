//! `safepoint chat`: a conversation on the terminal that can be talked to while it works.

use std::{io::IsTerminal as _, process::ExitCode, sync::Arc, time::Instant};

use safepoint::{
    Session,
    approval::WithoutApprover,
    ids::SessionId,
    session::{PendingItems, SessionBuilder},
    store::{OwnerProcess, Store},
};
use safepoint_tools::process::{Deadline, Processes};

mod away;
mod choose;
mod conversations;
mod desk;
mod driver;
mod editing;
mod ends;
mod exporting;
mod keeping;
mod later;
mod lent;
mod looking;
mod looks;
mod own;
mod pending;
mod plain;
mod previews;
mod reopen;
mod reviewing;
mod rewinding;
mod sending;
mod tasks;

#[cfg(test)]
mod tests;

use crate::{
    agent::{
        current::{Asking, CurrentAgent},
        mode::PlanEnd,
        model,
        planner::CurrentPlanner,
    },
    args::{chat::ChatArgs, place::StorePlace},
    control,
    output::Stream,
    prices::Prices,
    render::{
        chat::{
            attention::Attention,
            modes::Modes,
            state::{About, State, Tone},
            surface::{Narrower, Surface},
            terminal::{self, Terminal},
        },
        keyboard::Keyboard,
        screen::Screen,
    },
    session::{
        conversation,
        host::Host,
        processes,
        snapshots::{SnapshotPlanner, TurnSnapshots},
    },
    settings::{
        self, AgentSettings, project,
        store::{existing_store, open_store, usual_place},
    },
    signals::LAST_CAP,
};
use desk::Desk;
use driver::{After, Driver, Times};
use looks::{look, paint, variable};
use reopen::Left;
use rewinding::{Next, Rewinds};

/// Whether this program talks to a person through a terminal that can be drawn on.
pub(crate) fn is_on_terminal() -> bool {
    let can_move = std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
    std::io::stdin().is_terminal() && Stream::Out.is_terminal() && can_move
}

/// Whether a chat has a reader: not where a person at a keyboard has sent the output elsewhere, as with a pager.
pub(crate) fn has_reader() -> bool {
    !std::io::stdin().is_terminal() || Stream::Out.is_terminal()
}

/// Where a chat is: in a store, or in the memory of this program.
struct ChatPlace {
    store: Arc<dyn Store>,
    id: SessionId,
    is_kept: bool,
    /// Whether this chat has made it, under no name of a person's: if nothing is said, nothing stays.
    is_own: bool,
}

/// Chats until the person leaves or the session is stopped.
pub(crate) async fn chat(args: ChatArgs) -> anyhow::Result<ExitCode> {
    let Some((mut place, notes)) = keeping::first(&args, is_on_terminal()).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let ChatArgs { prompt, store: path, agent: said, no_snapshots, .. } = args;
    let (is_sent, typed) = (prompt.is_some(), prompt.unwrap_or_default());
    let (mut next, mut before) = (Next { notes, typed, is_sent, ..Next::default() }, None);
    loop {
        let kept = place.is_kept.then(|| path.clone().map_or_else(usual_place, Ok)).transpose()?;
        // A new session remembers nothing yet: it works as the one before it.
        let remembers = if place.is_own { before.take() } else { Some(place.id.as_str().to_owned()) };
        let here = remembers.filter(|_| place.is_kept);
        let mut settings =
            AgentSettings::complete(said.clone(), here.as_ref(), kept.as_ref(), Some("all")).await?;
        settings.kept_in = kept;
        if no_snapshots {
            settings.snapshots = Some(false);
        }
        let after = once(&settings, &place, path.as_ref(), next).await;
        keeping::leave_nothing(path.as_ref(), &place).await;
        match after? {
            After::Over(code) => return Ok(code),
            After::Next(found) => {
                before = Some(place.id.as_str().to_owned());
                (place.id, place.is_own) = (SessionId::from(found.id.as_str()), found.is_new);
                if !found.is_here {
                    (place.store, place.is_kept) = (open_store(path.clone()).await?, true);
                }
                next = *found;
            }
        }
    }
}

/// One session, until it is left.
async fn once(
    settings: &AgentSettings,
    place: &ChatPlace,
    path: Option<&StorePlace>,
    found: Next,
) -> anyhow::Result<After> {
    let times = Times { grace: settings.args.grace, cleanup_cap: settings.args.cleanup_cap };
    let (processes, deadline) = processes::processes(settings).await;
    let is_seen = is_on_terminal();
    // Where nothing can be drawn, lines are written.
    let screen = if is_seen { None } else { Some(Screen::start(false)) };
    let kept = place.is_kept.then_some(place);
    let asking = asking(screen.as_ref(), kept);
    let plan_end = if is_seen { PlanEnd::Question } else { PlanEnd::Answer };
    let (crew, notice) = CurrentAgent::choose(settings.clone(), &processes, (asking, plan_end)).await?;
    if let Some(model) = &found.model {
        crew.take_model(model).await?;
    }
    let (snapshots, unsnapped) = snapshots_of(settings, &crew, (place, path)).await;
    let planner =
        SnapshotPlanner { planner: CurrentPlanner(Arc::clone(&crew)), snapshots: snapshots.clone() };
    let mut builder = Session::builder(planner);
    if let Some(setup) = &settings.remembered {
        builder = builder.setup(setup);
    }
    if is_seen {
        builder = builder.pending_items(PendingItems::Wait);
    }
    let (session, left, stops) = open(builder, place, deadline, (is_seen, &crew.figures().prices)).await?;
    let host = Arc::new(Host::new(session.handle(), place.id.clone()));
    let following = snapshots.as_ref().map(|snapshots| snapshots.follow(host.session.clone()));
    let socket = control::open_chat(&host, crew.model(), kept.map(|kept| &kept.store)).await;
    let notices = notices(notice, &crew, socket.as_ref().err());
    let after = if let Some(screen) = screen {
        let of_project: Vec<String> =
            settings.project.lines().map(|line| format!("safepoint: {line}")).collect();
        let words = notices.iter().chain(&of_project).chain(&stops);
        words.chain(&crew.denied()).for_each(|notice| screen.note(notice));
        let kept = kept.map(|kept| &kept.id);
        let first = found.is_sent.then_some(found.typed);
        plain::chat(&host, &screen, (&processes, times), (kept, first)).await.map(After::Over)
    } else {
        let desk = Desk::new(settings, place.is_kept)?;
        let more = settings.project.lines().chain(unsnapped).collect();
        let project = project::here(settings.args.root.as_deref())?;
        let name = project.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let attention = Attention::of(variable, settings.notify, &name);
        let said = Beginning { notices: [notices, more], left, stops, found, desk, attention };
        let mut driver = begin(said, (&host, &crew), (processes, times), (place, path, snapshots)).await?;
        driver.state.markdown.look = look(settings);
        driver.surface.on(driver.state.markdown.look.background());
        driver.state.kept.project = project;
        driver.drive().await
    };
    crew.leave().await;
    if let Some(following) = following
        && tokio::time::timeout(LAST_CAP, following).await.is_err()
    {
        // The last turn has no snapshot after it: what it changed counts as changed by others.
    }
    finish(socket, after).await
}

/// What the person sees first.
struct Beginning {
    /// Those that take the place of the greeting, and others.
    notices: [Vec<String>; 2],
    left: Option<Left>,
    stops: Vec<String>,
    found: Next,
    desk: Desk,
    attention: Attention,
}

/// The chat on the terminal.
async fn begin(
    said: Beginning,
    (host, crew): (&Arc<Host>, &Arc<CurrentAgent>),
    (processes, times): (Processes, Times),
    (place, path, snapshots): (&ChatPlace, Option<&StorePlace>, Option<Arc<TurnSnapshots>>),
) -> anyhow::Result<Driver> {
    let Beginning { notices: [notices, more], left, stops, found, desk, attention } = said;
    let surface = Surface::new(paint(), terminal::size()).narrowing(Narrower::of(variable));
    // Each later conversation of this program begins where the one before it ended.
    let is_first = found.id.is_empty();
    let is_in_tmux = variable("TMUX").is_some_and(|socket| !socket.is_empty());
    let surface = if is_first && is_in_tmux { surface.beginning_below() } else { surface };
    let about = About { session: host.id.as_str().to_owned(), tools: crew.tools(), is_kept: place.is_kept };
    let mut state = State::new(about, crew.model(), surface.columns());
    state.attention = attention;
    let (mode, base) = crew.modes();
    state.custom = crew.project().commands.clone();
    state.meter.set(crew.figures());
    state.modes = if crew.is_external() { Modes::fixed(mode) } else { Modes::new(mode, base) };
    state.kept.is_named = place.is_kept && !place.is_own;
    state.kept.returns = place.is_kept.then(|| conversations::returns(&host.id, path));
    state.kept.model = found.model;
    if notices.is_empty() {
        state.tell(Tone::Aside, &format!("safepoint {}, with {}", env!("CARGO_PKG_VERSION"), crew.model()));
    }
    notices.iter().chain(&more).chain(&found.notes).for_each(|notice| state.tell(Tone::Aside, notice));
    if let Some(left) = left {
        left.show(&mut state, Instant::now());
    }
    stops.iter().for_each(|stop| state.tell(Tone::Bad, stop));
    found.rows.iter().for_each(|row| state.tell(Tone::Plain, row));
    state.input.set(found.typed);
    if found.is_sent {
        state.send_typed();
    }
    // A usual store that cannot be used is no reason not to talk: no other session is listed then.
    let store = match place.is_kept {
        true => Some(Arc::clone(&place.store)),
        false => existing_store(path.cloned()).await.unwrap_or_default(),
    };
    let rewinds = Rewinds::new(Arc::clone(&place.store), snapshots, found.last);
    let people = (Arc::clone(host), Arc::clone(crew));
    let terminal = Terminal::enter(&state.attention)?;
    Ok(Driver::new((state, surface, terminal), people, processes, ((times, desk), store, rewinds)))
}

/// Opens the session: in its store; in memory, so that it can be gone back in; or nowhere, where nothing can be drawn.
async fn open(
    builder: SessionBuilder<String>,
    place: &ChatPlace,
    deadline: Deadline,
    (is_seen, prices): (bool, &Prices),
) -> anyhow::Result<(Session<String>, Option<Left>, Vec<String>)> {
    let ChatPlace { store, id, is_kept, .. } = place;
    if *is_kept {
        let stops = reopen::stops(&**store, id).await;
        let (session, _) = conversation::own(builder, deadline, (store, id), None).await?;
        return Ok((session, Some(Left::of(&**store, id, prices).await?), stops));
    }
    if !is_seen {
        return Ok((builder.start(), None, Vec::new()));
    }
    let session = builder.open(Arc::clone(store), id.clone(), OwnerProcess::here()).await?;
    Ok((session, Some(Left::of(&**store, id, prices).await?), Vec::new()))
}

/// The snapshots around the turns, if a tool could change files; or why there are none.
async fn snapshots_of(
    settings: &AgentSettings,
    crew: &CurrentAgent,
    (place, path): (&ChatPlace, Option<&StorePlace>),
) -> (Option<Arc<TurnSnapshots>>, Option<String>) {
    if settings.snapshots == Some(false) || !crew.may_change_files() {
        return (None, None);
    }
    let (root, record) = (settings.args.root.clone(), settings.args.record.clone());
    let (store, id) = (path.cloned(), place.id.clone());
    let opened = tokio::task::spawn_blocking(move || {
        let snapshots = settings::snapshots::open(root.as_deref(), store.as_ref(), record.as_deref())?;
        let cut_off = snapshots.unfinished()?.map(|_| {
            "a restore of files was cut off here: /undo gives back what was there before it".to_owned()
        });
        anyhow::Ok((TurnSnapshots::new(snapshots, id), cut_off))
    });
    match opened.await.map_err(anyhow::Error::from).flatten() {
        Ok((snapshots, cut_off)) => (Some(Arc::new(snapshots)), cut_off),
        Err(error) => (None, Some(format!("no snapshots of the files, so /rewind restores none: {error:#}"))),
    }
}

/// Chooses the approver of this terminal.
fn asking(lines: Option<&Arc<Screen>>, kept: Option<&ChatPlace>) -> Asking {
    match (lines, kept) {
        (_, Some(_)) => Asking::Later,
        (None, None) => Asking::OnScreen,
        (Some(screen), None) if Keyboard::is_there() => {
            Asking::AtKeyboard(Arc::clone(screen), WithoutApprover::Deny)
        }
        (Some(_), None) => Asking::NotAsked,
    }
}

/// What the user should know before they begin.
fn notices(notice: Option<String>, crew: &CurrentAgent, unreachable: Option<&anyhow::Error>) -> Vec<String> {
    let practice = "the practice model, a script: no key, no local server (try: run: ls)
  for a real one, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY
  or type /model PROVIDER:NAME; `safepoint doctor` says what is missing";
    let is_practice = crew.model() == model::PRACTICE;
    let notice = notice.map(|notice| if is_practice { practice.to_owned() } else { notice });
    let notice = notice.map(|notice| format!("safepoint: {notice}"));
    let unreachable =
        unreachable.map(|error| format!("safepoint: no other terminal can reach this: {error:#}"));
    notice.into_iter().chain(unreachable).collect()
}

/// Sends the end of the session to clients that wait at the socket.
async fn finish(
    socket: anyhow::Result<control::Server>,
    after: anyhow::Result<After>,
) -> anyhow::Result<After> {
    if let Ok(socket) = socket {
        socket.finish().await;
    }
    after
}
