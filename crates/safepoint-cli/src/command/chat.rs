//! `safepoint chat`: a conversation on the terminal that can be talked to while it works.

use std::{io::IsTerminal as _, path::PathBuf, process::ExitCode, sync::Arc, time::Instant};

use safepoint::{Session, approval::WithoutApprover, ids::SessionId, session::PendingItems, store::Store};

mod away;
mod driver;
mod ends;
mod pending;
mod plain;
mod reopen;

#[cfg(test)]
mod tests;

use crate::{
    agent::{
        current::{Asking, CurrentAgent, CurrentPlanner},
        model,
    },
    args::chat::ChatArgs,
    control,
    output::Stream,
    render::{
        chat::{
            state::{About, State, Tone},
            surface::{Paint, Surface},
            terminal::{self, Terminal},
        },
        keyboard::Keyboard,
        screen::Screen,
    },
    session::{conversation, host::Host, processes},
    settings::{
        AgentSettings,
        store::{existing_store, kept_in, open_store},
    },
};
use driver::{After, Driver, Times};
use reopen::Left;

/// Whether this program talks to a person through a terminal that can be drawn on.
pub(crate) fn is_on_terminal() -> bool {
    let can_move = std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
    std::io::stdin().is_terminal() && Stream::Out.is_terminal() && can_move
}

/// Where a chat is stored.
struct StoredChat {
    store: Arc<dyn Store>,
    id: SessionId,
}

/// Chats until the person leaves or the session is stopped.
pub(crate) async fn chat(args: ChatArgs) -> anyhow::Result<ExitCode> {
    let ChatArgs { session, store: path, agent: said } = args;
    let is_kept = kept_in(session.as_ref(), path.as_ref())?.is_some();
    let id = session.map_or_else(SessionId::fresh, SessionId::from);
    let mut kept = if is_kept { Some(StoredChat { store: open_store(path.clone())?, id }) } else { None };
    loop {
        let here = kept.as_ref().map(|kept| kept.id.as_str().to_owned());
        let mut settings =
            AgentSettings::complete(said.clone(), here.as_ref(), path.as_ref(), Some("all")).await?;
        settings.kept_in = kept_in(here.as_ref(), path.as_ref())?;
        match once(&settings, kept.as_ref(), path.as_ref()).await? {
            After::Over(code) => return Ok(code),
            After::Next(id) => {
                kept = Some(StoredChat { store: open_store(path.clone())?, id: SessionId::from(id) });
            }
        }
    }
}

/// One session, until it is left.
async fn once(
    settings: &AgentSettings,
    kept: Option<&StoredChat>,
    path: Option<&PathBuf>,
) -> anyhow::Result<After> {
    let times = Times { grace: settings.args.grace, cleanup_cap: settings.args.cleanup_cap };
    let (processes, deadline) = processes::processes(settings).await;
    let is_seen = is_on_terminal();
    // Where nothing can be drawn, lines are written.
    let screen = if is_seen { None } else { Some(Screen::start(false)) };
    let asking = asking(screen.as_ref(), kept);
    let (crew, notice) = CurrentAgent::choose(settings.clone(), &processes, asking).await?;
    let mut builder = Session::builder(CurrentPlanner(Arc::clone(&crew)));
    if let Some(setup) = &settings.remembered {
        builder = builder.setup(setup);
    }
    if is_seen {
        builder = builder.pending_items(PendingItems::Wait);
    }
    let (session, left, stops) = match kept {
        None => (builder.start(), None, Vec::new()),
        Some(StoredChat { store, id }) => {
            let stops = reopen::stops(&**store, id).await;
            let (session, _) = conversation::own(builder, deadline, (store, id), None).await?;
            (session, Some(Left::of(&**store, id).await?), stops)
        }
    };
    let id = kept.map_or_else(SessionId::fresh, |kept| kept.id.clone());
    let host = Arc::new(Host::new(session.handle(), id));
    let socket = control::open_chat(&host, crew.model(), kept.map(|kept| &kept.store)).await;
    let notices = notices(notice, &crew, socket.as_ref().err());
    if let Some(screen) = screen {
        notices.iter().chain(&stops).chain(&crew.denied()).for_each(|notice| screen.note(notice));
        let kept = kept.map(|kept| &kept.id);
        let code = plain::chat(&host, &screen, &processes, times, kept).await;
        crew.leave().await;
        return finish(socket, code.map(After::Over)).await;
    }
    let surface = Surface::new(paint(), terminal::size());
    let about = About { session: host.id.as_str().to_owned(), tools: crew.tools(), is_kept: kept.is_some() };
    let mut state = State::new(about, crew.model(), surface.columns());
    if notices.is_empty() {
        state.tell(Tone::Aside, &format!("safepoint {}, with {}", env!("CARGO_PKG_VERSION"), crew.model()));
    }
    notices.iter().for_each(|notice| state.tell(Tone::Aside, notice));
    if let Some(left) = left {
        left.show(&mut state, Instant::now());
    }
    stops.iter().for_each(|stop| state.tell(Tone::Bad, stop));
    let store = match kept {
        Some(kept) => Some(Arc::clone(&kept.store)),
        None => existing_store(path.cloned())?,
    };
    let people = (host, Arc::clone(&crew));
    let driver = Driver::new((state, surface, Terminal::enter()?), people, processes, (times, store));
    let after = driver.drive().await;
    crew.leave().await;
    finish(socket, after).await
}

/// Chooses the approver of this terminal.
fn asking(lines: Option<&Arc<Screen>>, kept: Option<&StoredChat>) -> Asking {
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
    let practice = "no key, no local server: the built-in practice model, a script (try: run: ls)";
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

fn paint() -> Paint {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_plain { Paint::Plain } else { Paint::Styled }
}
