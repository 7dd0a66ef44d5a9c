//! What the operating system asks: each signal once, in order, and what a run is asked because of it.
//!
//! **Invariants**: signals are heard, and what they ask of a turn is asked, on a thread that does nothing else (S12.5).

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use safepoint::{Code, Grace, Reason, RunHandle, StopAck, StopRequest};
use tokio::{
    runtime::{self, Runtime},
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
};

use crate::args::{OnDisconnect, RunArgs};

/// What a second signal leaves to clean up, and to be quiet once the turn has ended.
pub(crate) const LAST_CAP: Duration = Duration::from_millis(800);

/// The signals that end a run. They are heard by a thread of their own, which also asks what they ask: nothing that the
/// runtime has to do can hold that up.
pub(crate) struct Signals {
    heard: UnboundedReceiver<Heard>,
    deputy: Arc<Mutex<Option<Deputy>>>,
    on_disconnect: OnDisconnect,
    asks: Asks,
}

/// What signals ask of this program, beside what they ask of a turn. Exhaustive: nothing yet, nothing as yet but with another
/// one its end, or its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asks {
    #[default]
    Nothing,
    NextEnds,
    End(Got),
}

impl Asks {
    /// An interrupt is for the turn; a second one, and each of the others, is for the program too.
    fn and(self, got: Got) -> Self {
        match (self, got) {
            (Self::Nothing, Got::Interrupt) => Self::NextEnds,
            (Self::Nothing | Self::NextEnds, got) => Self::End(got),
            (Self::End(first), _) => Self::End(first),
        }
    }
}

/// What is asked because of a signal, on the thread that heard it.
type Deputy = Box<dyn FnMut(Got) -> Option<Strength> + Send>;

/// A signal, and whether it was answered as it was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) got: Got,
    pub(crate) at: Instant,
    pub(crate) answered: Answered,
}

/// Whether a deputy has answered a signal. Exhaustive: there was none, or it asked this, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    NotYet,
    With(Option<Strength>),
}

/// For as long as it lives, signals are answered by the deputy.
#[must_use = "dropping it ends what it stands for"]
pub(crate) struct Answers(Arc<Mutex<Option<Deputy>>>);

impl Drop for Answers {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

fn lock<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One signal. Exhaustive: the three that are listened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Interrupt,
    Terminate,
    Hangup,
}

impl Signals {
    /// From now on signals are heard; of a hang-up that detaches nothing is asked.
    ///
    /// # Errors
    /// If they cannot be heard.
    pub(crate) fn listen(on_disconnect: OnDisconnect) -> io::Result<Self> {
        let (tell, heard) = mpsc::unbounded_channel();
        let deputy: Arc<Mutex<Option<Deputy>>> = Arc::default();
        let answers = Arc::clone(&deputy);
        // Heard from the moment that this returns: the thread says when it listens.
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let ear = Ear::open();
            let (ear, said) = match ear {
                Ok(ear) => (Some(ear), Ok(())),
                Err(error) => (None, Err(error)),
            };
            if let (Ok(()), Some(ear)) = (ready.send(said), ear) {
                ear.hear(&answers, &tell);
            }
        })?;
        is_ready.recv().map_err(|_gone| io::Error::other("the thread that hears signals ended"))??;
        Ok(Self { heard, deputy, on_disconnect, asks: Asks::Nothing })
    }

    /// Has signals asked by `deputy` as they are heard, on their own thread.
    pub(crate) fn answer(&self, deputy: impl FnMut(Got) -> Option<Strength> + Send + 'static) -> Answers {
        *lock(&self.deputy) = Some(Box::new(deputy));
        Answers(Arc::clone(&self.deputy))
    }

    /// A turn begins: an interrupt before it was none of it.
    pub(crate) fn turn_begins(&mut self) {
        if self.asks == Asks::NextEnds {
            self.asks = Asks::Nothing;
        }
    }

    /// There is no turn any more that a signal could be for.
    pub(crate) fn turns_are_over(&mut self) {
        if self.asks == Asks::Nothing {
            self.asks = Asks::NextEnds;
        }
        while self.heard_already().is_some() {}
    }

    /// The signal that asked for the end of this program, or asks for it before `over` is over; none if it is.
    pub(crate) async fn asked_to_end(&mut self, mut over: Pin<&mut impl Future<Output = ()>>) -> Option<Got> {
        loop {
            if let Asks::End(got) = self.asks {
                return Some(got);
            }
            tokio::select! {
                biased;
                () = over.as_mut() => return None,
                // Losing this branch loses nothing: the signal stays pending.
                _ = self.heard() => {}
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Got {
        self.heard().await.got
    }

    /// A signal that was answered before this and is not taken yet.
    pub(crate) fn heard_already(&mut self) -> Option<Heard> {
        drop(lock(&self.deputy));
        let heard = self.heard.try_recv().ok()?;
        self.count(heard.got);
        Some(heard)
    }

    fn count(&mut self, got: Got) {
        if got != Got::Hangup || self.on_disconnect == OnDisconnect::Stop {
            self.asks = self.asks.and(got);
        }
    }

    /// The next signal, and whether it was answered as it was heard. One that is not taken here stays in the channel.
    pub(crate) async fn heard(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => {
                self.count(heard.got);
                heard
            }
            // The thread that hears lives as long as somebody listens.
            None => std::future::pending().await,
        }
    }
}

/// What the thread of signals listens with: a runtime of its own, which does nothing else.
struct Ear {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Ear {
    fn open() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let [interrupt, terminate, hangup] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        drop(entered);
        Ok(Self { runtime, interrupt: interrupt?, terminate: terminate?, hangup: hangup? })
    }

    /// Until nobody listens any more.
    fn hear(self, deputy: &Mutex<Option<Deputy>>, tell: &UnboundedSender<Heard>) {
        let Self { runtime, mut interrupt, mut terminate, mut hangup } = self;
        runtime.block_on(async {
            loop {
                let got = tokio::select! {
                    biased;
                    // A signal that is not taken here stays pending in its stream: no branch loses anything.
                    _ = interrupt.recv() => Got::Interrupt,
                    _ = terminate.recv() => Got::Terminate,
                    _ = hangup.recv() => Got::Hangup,
                    () = tell.closed() => return,
                };
                // Held until it is sent: what a run ended by is heard of before its end is told.
                let at = Instant::now();
                let mut deputy = lock(deputy);
                let answer = deputy.as_mut().map(|answer| answer(got));
                let answered = answer.map_or(Answered::NotYet, Answered::With);
                if tell.send(Heard { got, at, answered }).is_err() {
                    return;
                }
            }
        });
    }
}

/// What has been asked of a turn because of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pressed {
    /// The one that was the first to ask for a stop, of all who can ask: the run's reason is that.
    pub(crate) first: Option<Got>,
    /// How many asked: signals, and a reader that went away.
    pub(crate) count: u32,
}

/// How soon a stop that was asked comes. Exhaustive: at a safe point, or now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    AtSafePoint,
    Now,
}

impl Got {
    /// What a program that this has ended exits with.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
            Self::Hangup => 10,
        }
    }

    /// What a run that it stops has as its reason.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::Interrupt | Self::Terminate => Reason::user(self.name()),
            Self::Hangup => Reason::new(Code::DISCONNECT).with_text(self.name()),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "ctrl-c",
            Self::Terminate => "SIGTERM",
            Self::Hangup => "the terminal hung up",
        }
    }
}

impl Pressed {
    /// The first is graceful, the second is now with a small cap; a hang-up is a disconnect.
    /// Says what it asked; none if nothing.
    pub(crate) fn ask(&mut self, got: Got, handle: &RunHandle, args: &RunArgs) -> Option<Strength> {
        if got == Got::Hangup {
            return self.disconnect(handle, args, got.name());
        }
        self.count += 1;
        let request = match (self.count, Grace::try_from(args.agent.grace)) {
            (1, Ok(grace)) => StopRequest::graceful(grace).with_cleanup_cap(args.agent.cleanup_cap),
            (1, Err(_zero)) => StopRequest::now().with_cleanup_cap(args.agent.cleanup_cap),
            _ => StopRequest::now().with_cleanup_cap(LAST_CAP),
        };
        if handle.stop(request.with_reason(Reason::user(got.name()))) == StopAck::First {
            self.first = Some(got);
        }
        let at_safe_point = self.count == 1 && !args.agent.grace.is_zero();
        Some(if at_safe_point { Strength::AtSafePoint } else { Strength::Now })
    }

    /// Nobody watches any more. Says what that asked; none if nothing.
    pub(crate) fn disconnect(&mut self, handle: &RunHandle, args: &RunArgs, why: &str) -> Option<Strength> {
        match args.on_disconnect {
            OnDisconnect::Detach => None,
            OnDisconnect::Stop => {
                self.count += 1;
                let reason = Reason::new(Code::DISCONNECT).with_text(why.to_owned());
                handle.stop(StopRequest::now().with_cleanup_cap(args.agent.cleanup_cap).with_reason(reason));
                Some(Strength::Now)
            }
        }
    }
}

/// A signal is heard by everybody in the process, so that tests of them follow each other.
#[cfg(test)]
pub(crate) static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    /// S12.5: what a signal asks is asked while the program's own runtime has no time for it: its one thread waits here,
    /// and is given back only afterwards.
    #[tokio::test]
    async fn a_signal_is_answered_while_the_runtime_is_busy() {
        const PATIENCE: Duration = Duration::from_secs(20);
        let _alone = ONE_AT_A_TIME.lock().await;
        let mut signals = Signals::listen(OnDisconnect::Stop).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let answers = signals.answer(move |got| {
            tell.send(got).unwrap();
            Some(Strength::Now)
        });
        kill_process(getpid(), Signal::HUP).unwrap();
        assert_eq!(told.recv_timeout(PATIENCE), Ok(Got::Hangup));
        drop(answers);
        let heard = signals.heard().await;
        assert_eq!((heard.got, heard.answered), (Got::Hangup, Answered::With(Some(Strength::Now))));
    }
}
