//! `safepoint chat`: a conversation on the terminal that can be talked to while it works.

use std::{io::IsTerminal as _, process::ExitCode, sync::Arc};

use safepoint::Session;
use safepoint_tools::process::Processes;

mod crew;
mod driver;
mod hear;
mod host;
mod input;
mod items;
mod keys;
mod markdown;
mod pane;
mod plain;
mod slash;
mod state;
mod surface;
mod terminal;
#[cfg(test)]
mod tests;
mod trace;
mod work;

pub(crate) use host::Host;
pub(crate) use items::Origin;

use crate::{args::AgentArgs, config::Config, control, model, screen::Screen};
use crew::{Asking, Crew, CrewPlanner};
use driver::{Driver, Times};
use state::{About, State, Tone};
use surface::{Paint, Surface};
use terminal::Terminal;

/// Whether this program talks to a person through a terminal that can be drawn on.
pub(crate) fn is_on_terminal() -> bool {
    let can_move = std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal() && can_move
}

/// Chats until the person leaves or the session is stopped.
pub(crate) async fn chat(mut args: AgentArgs) -> anyhow::Result<ExitCode> {
    Config::load(args.config.as_deref())?.fill(&mut args);
    let times = Times { grace: args.grace, cleanup_cap: args.cleanup_cap };
    let processes = Processes::new(format!("chat_{}", uuid::Uuid::now_v7().simple()));
    let asking = if is_on_terminal() { Asking::OnScreen } else { Asking::Nobody };
    let (crew, notice) = Crew::choose(args, &processes, asking).await?;
    let session = Session::builder(CrewPlanner(Arc::clone(&crew))).start();
    let host = Arc::new(Host::new(session.handle()));
    let practice = "no key, no local server: the built-in practice model, a script (try: run: ls)";
    let is_practice = crew.model() == model::PRACTICE;
    let notice = notice.map(|notice| if is_practice { practice.to_owned() } else { notice });
    let notice = notice.map(|notice| format!("safepoint: {notice}"));
    let socket = control::open_chat(&host, crew.model()).await;
    let unreachable =
        socket.as_ref().err().map(|error| format!("safepoint: no other terminal can reach this: {error:#}"));
    let notices: Vec<String> = notice.into_iter().chain(unreachable).collect();
    if asking == Asking::Nobody {
        let screen = Screen::start(false);
        notices.iter().for_each(|notice| screen.note(notice));
        let code = plain::chat(&host, &screen, &processes, times).await;
        return finish(socket, code).await;
    }
    let surface = Surface::new(paint(), terminal::size());
    let about = About { session: host.id.as_str().to_owned(), tools: crew.tools() };
    let mut state = State::new(about, crew.model(), surface.columns());
    if notices.is_empty() {
        state.tell(Tone::Aside, &format!("safepoint {}, with {}", env!("CARGO_PKG_VERSION"), crew.model()));
    }
    notices.iter().for_each(|notice| state.tell(Tone::Aside, notice));
    let driver = Driver::new((state, surface, Terminal::enter()?), (host, crew), processes, times);
    let code = driver.drive().await;
    finish(socket, code).await
}

/// Whoever waits at the socket hears the end.
async fn finish(
    socket: anyhow::Result<control::Server>,
    code: anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    if let Ok(socket) = socket {
        socket.finish().await;
    }
    code
}

fn paint() -> Paint {
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if is_plain { Paint::Plain } else { Paint::Styled }
}
