//! The loop of a chat on a terminal: keys, events and time into the state, acts out to the session, frames to the screen.

use std::{
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use crossterm::event::Event as Key;
use rustix::process::Signal;
use safepoint::{
    event::{Event, Events},
    session::SessionEvent,
    store::Store,
};
use safepoint_tools::process::Processes;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    time::{MissedTickBehavior, interval},
};

use super::{
    desk::Desk,
    later::Later,
    rewinding::{Next, Rewinds},
};
use crate::{
    agent::current::CurrentAgent,
    args::run::OnDisconnect,
    exit,
    output::Drawn,
    render::chat::{
        events::ChatEvent,
        kept::KeptAsk,
        pane,
        queue::{Origin, PushKind, Pushed},
        state::{Action, Leave, State},
        surface::Surface,
        terminal::{self, Terminal},
    },
    session::host::Host,
    signals::{self, Signals},
};

/// How a stop is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) grace: Duration,
    pub(crate) cleanup_cap: Duration,
}

/// How a chat on the terminal ends. Exhaustive: with the program, or with a switch to another session.
#[derive(Clone, Debug)]
pub(crate) enum After {
    Over(ExitCode),
    Next(Box<Next>),
}

pub(crate) struct Driver {
    pub(crate) state: State,
    pub(crate) surface: Surface,
    pub(crate) terminal: Terminal,
    pub(crate) host: Arc<Host>,
    pub(crate) crew: Arc<CurrentAgent>,
    pub(crate) processes: Processes,
    pub(crate) times: Times,
    /// The store of sessions.
    pub(crate) store: Option<Arc<dyn Store>>,
    /// The sessions that were listed last.
    pub(crate) listed: Vec<String>,
    /// The session to open after this one.
    pub(crate) next: Option<Next>,
    pub(crate) rewinds: Rewinds,
    /// What helps a person type.
    pub(crate) desk: Desk,
    pub(crate) later: (UnboundedSender<Later>, UnboundedReceiver<Later>),
    /// Since when the terminal is the shell's.
    pub(crate) away: Option<Instant>,
    /// When to go, whatever is alive.
    pub(crate) go: Option<Instant>,
    pub(crate) code: u8,
}

/// What woke the loop. Exhaustive: each is taken in.
enum Woke {
    Signal(signals::ReceivedSignal),
    /// The shell continued this job.
    Continued,
    Key(Option<std::io::Result<Key>>),
    Event(Option<Event<SessionEvent>>),
    Later(Later),
    Time,
}

/// So long after it was asked to, a job that still runs was not stopped.
const UNSTOPPED: Duration = Duration::from_secs(1);

const TICK: Duration = Duration::from_millis(200);

impl Driver {
    pub(crate) fn new(
        (state, surface, terminal): (State, Surface, Terminal),
        (host, crew): (Arc<Host>, Arc<CurrentAgent>),
        processes: Processes,
        ((times, desk), store, rewinds): ((Times, Desk), Option<Arc<dyn Store>>, Rewinds),
    ) -> Self {
        let later = mpsc::unbounded_channel();
        let (listed, next) = (Vec::new(), None);
        Self {
            state,
            surface,
            terminal,
            host,
            crew,
            processes,
            times,
            store,
            listed,
            next,
            rewinds,
            desk,
            later,
            away: None,
            go: None,
            code: 0,
        }
    }

    /// Until the session has ended, or it is time to go.
    pub(crate) async fn drive(mut self) -> anyhow::Result<After> {
        let mut signals = Signals::listen(OnDisconnect::Stop)?;
        let _answers = Self::answers(&signals, &self.host.session, &self.processes, &self.desk.lent);
        let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        self.desk.keys.take();
        self.read_inputs();
        let mut events = self.host.session.events();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let left = self.host.session.queued().await;
        self.take_left(left);
        let acts = self.state.take_actions();
        self.act(acts);
        self.draw();
        loop {
            let woke = tokio::select! {
                biased;
                // In the order in which a person waits: signals, keys, then output, so that a flood of events hides no key.
                // Losing this branch loses nothing: the signal stays pending.
                received = signals.received() => Woke::Signal(received),
                // Losing this branch loses nothing: the continue signal stays pending.
                Some(()) = continued.recv() => Woke::Continued,
                // Losing this one loses nothing: a key stays in the stream.
                key = self.desk.keys.next() => Woke::Key(key),
                // Losing this one loses nothing: the message stays in the channel.
                Some(later) = self.later.1.recv() => Woke::Later(later),
                // Losing this one loses nothing: the reader's place moves only when an event is returned.
                event = events.next(), if self.has_room() => Woke::Event(event),
                // Losing these loses nothing: the screen is looked at again in any case.
                () = self.terminal.written() => Woke::Time,
                _ = ticks.tick() => Woke::Time,
            };
            let is_over = matches!(woke, Woke::Event(None));
            self.take_signals(&mut signals);
            self.take(woke, &mut events, &mut signals);
            let acts = self.state.take_actions();
            self.act(acts);
            self.tell_of_snapshots();
            self.keep_inputs();
            if is_over || self.go.is_some_and(|go| Instant::now() >= go) {
                break;
            }
            self.draw();
        }
        self.end().await
    }

    fn take(&mut self, woke: Woke, events: &mut Events<SessionEvent>, signals: &mut Signals) {
        match woke {
            Woke::Signal(received) => self.signalled(received),
            // A terminal that went away may say so by the end of its keys.
            Woke::Key(None | Some(Err(_))) => self.quit(Leave::AtOnce, exit::code::HUNG_UP),
            Woke::Key(Some(Ok(key))) => self.key(key),
            // The other program and this one were stopped and continue together.
            Woke::Continued if self.desk.lent.is_lent() => {}
            Woke::Continued => self.go_on(),
            Woke::Event(event) => {
                const AT_ONCE: usize = 512;
                let more = std::iter::from_fn(|| events.now()).take(AT_ONCE);
                for event in event.into_iter().chain(more) {
                    if let SessionEvent::StopRequested { .. } = event.kind {
                        self.take_signals(signals);
                    }
                    self.hear(event);
                    if !self.state.has_room() {
                        break;
                    }
                }
            }
            Woke::Later(later) => self.take_later(later),
            // Where there is no shell that could stop this job, nothing has.
            Woke::Time if self.away.is_some_and(|away| away.elapsed() >= UNSTOPPED) => self.go_on(),
            Woke::Time if self.away.is_none() => self.desk.keys.look_again(),
            Woke::Time => {}
        }
    }

    fn key(&mut self, key: Key) {
        let now = Instant::now();
        match key {
            Key::Key(key) => {
                let acts = self.state.key(key, now);
                self.act(acts);
            }
            Key::Paste(text) => {
                let acts = self.state.paste(&text, now);
                self.act(acts);
            }
            Key::Resize(..) => self.resize(terminal::size()),
            Key::FocusGained | Key::FocusLost => self.state.attention.is_in_front(key == Key::FocusGained),
            // It is not asked for.
            Key::Mouse(_) => {}
        }
    }

    fn resize(&mut self, size: (u16, u16)) {
        self.surface.resize(size, Instant::now());
        self.state.columns = self.surface.columns();
    }

    fn hear(&mut self, event: Event<SessionEvent>) {
        let received = match event.kind {
            SessionEvent::Accepted(id) => {
                let item = self.host.pushed(id).unwrap_or_else(|| {
                    self.look_at_waiting();
                    Pushed { text: String::new(), how: PushKind::Queue, origin: Origin::Elsewhere }
                });
                ChatEvent::Accepted { id, item }
            }
            SessionEvent::TurnStarted { items, .. } => ChatEvent::Started(items),
            _ => ChatEvent::Event(event),
        };
        let acts = self.state.hear(received, Instant::now());
        self.act(acts);
    }

    pub(super) fn act(&mut self, acts: Vec<Action>) {
        for act in acts {
            match act {
                Action::Push { text, how } => self.push(text, how),
                Action::Stop(level) => self.stop(level),
                Action::Background => self.processes.to_background(),
                Action::StopCall { run, call, level } => self.stop_call(&run, &call, level),
                Action::Quit(leave) => self.leave(leave),
                Action::Suspend => self.suspend(),
                Action::Withdraw(items) => self.take_back(items, Later::Back),
                Action::HandBack => self.take_back(self.host.waiting_here(), Later::Handed),
                Action::GoTo(named) => {
                    let at = named.parse().ok().and_then(|number: usize| number.checked_sub(1));
                    let id = at.and_then(|at| self.listed.get(at).cloned());
                    self.kept(KeptAsk::Open(id.unwrap_or(named)));
                }
                Action::Rewind(ask) => self.rewind(ask),
                Action::Preview(asked) => self.preview(*asked),
                Action::Page(text) => self.page(text),
                Action::Typing(action) => self.typing(action),
                Action::Mode(mode) => {
                    self.crew.set_mode(mode);
                    self.state.about.tools = self.crew.tools();
                }
                Action::Kept(ask) => self.kept(ask),
                Action::Tasks(ask) => self.tasks(ask),
                Action::Status => self.state.tell_status(&self.crew.status()),
                Action::Review(what) => self.look_for_review(what),
                act => self.perform_later(act),
            }
        }
    }

    /// Whether more can be taken in: of a terminal that is slow so much waits, and what the session shows beyond that is
    /// dropped there and counted. Its end is seen in any case.
    fn has_room(&self) -> bool {
        self.state.has_room() || self.state.leaving.is_some() || self.host.session.is_done()
    }

    fn draw(&mut self) {
        if self.away.is_some() || self.desk.lent.is_lent() || !self.terminal.is_free() {
            return;
        }
        // The size is read too: its event may come late.
        let size = terminal::size();
        if !self.surface.is_for(size) {
            self.resize(size);
        }
        // What waits is drawn with a later tick.
        if !self.surface.is_steady(Instant::now()) {
            return;
        }
        let (links, above) = (self.state.take_links(), self.state.take_above());
        let pane = pane::pane(&self.state, self.surface.rows(), Instant::now());
        let frame = self.surface.frame_with(&above, &links, pane).into_iter().chain(self.state.take_call());
        frame.reduce(Drawn::then).into_iter().for_each(|frame| self.terminal.write(frame));
    }
}
