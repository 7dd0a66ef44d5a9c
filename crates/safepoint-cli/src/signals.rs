//! The signals of the operating system: each once, in order, with the stop request that it makes.
//!
//! **Invariants**: one thread receives signals, makes their stop requests, and does nothing else (S12.5).

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use safepoint::{
    Grace, Reason, RunHandle, StopRequest,
    stop::{Code, StopAck},
};
use tokio::{
    runtime::{self, Runtime},
    signal::unix::{self, SignalKind, signal},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
};

use crate::{
    args::run::{OnDisconnect, RunArgs},
    exit::code,
    sync::lock,
};

/// Why a run is stopped whose terminal went away.
const HUNG_UP: &str = "the terminal hung up";

/// How long cleanup may take after a second signal, and quiet once the turn has ended.
pub(crate) const LAST_CAP: Duration = Duration::from_millis(800);

/// The signals that end a run. A dedicated thread receives them and makes their stop requests, so a busy
/// runtime delays neither.
pub(crate) struct Signals {
    received: UnboundedReceiver<ReceivedSignal>,
    /// Held by the signal thread from the answer to a signal until its send. The deputy runs under it and may
    /// take the lock of the pressed stops, and those of the engine; the deputy never takes this one. Others
    /// hold it to set, to clear, or to wait until a signal is sent.
    deputy: Arc<Mutex<Option<Deputy>>>,
    on_disconnect: OnDisconnect,
    asks: Asks,
}

/// What signals ask of this program, beside the stop of a turn. Exhaustive: nothing yet; its end at the next
/// signal; its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asks {
    #[default]
    Nothing,
    NextEnds,
    End(Signal),
}

impl Asks {
    /// An interrupt is for the turn; a second one, and each other signal, is for the program too.
    fn and(self, got: Signal) -> Self {
        match (self, got) {
            (Self::Nothing, Signal::Interrupt) => Self::NextEnds,
            (Self::Nothing | Self::NextEnds, got) => Self::End(got),
            (Self::End(first), _) => Self::End(first),
        }
    }
}

/// Makes the stop request of a signal, on the signal thread.
type Deputy = Box<dyn FnMut(Signal) -> Option<StopLevel> + Send>;

/// A received signal, and whether the deputy handled it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedSignal {
    pub(crate) got: Signal,
    pub(crate) at: Instant,
    pub(crate) answered: Answered,
}

/// Whether a deputy has answered a signal. Exhaustive: there was none; it requested this stop; it requested
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    NotYet,
    With(Option<StopLevel>),
}

/// The deputy answers signals until this is dropped.
#[must_use = "dropping it ends what it stands for"]
pub(crate) struct Answers(Arc<Mutex<Option<Deputy>>>);

impl Drop for Answers {
    fn drop(&mut self) {
        *lock(&self.0) = None;
    }
}

/// One signal. Exhaustive: the three that the program catches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
    Hangup,
}

impl Signals {
    /// Starts the signal thread. A hang-up with `detach` requests nothing.
    ///
    /// # Errors
    /// If the thread or a signal handler cannot be installed.
    pub(crate) fn listen(on_disconnect: OnDisconnect) -> io::Result<Self> {
        let (tell, received) = mpsc::unbounded_channel();
        let deputy: Arc<Mutex<Option<Deputy>>> = Arc::default();
        let answers = Arc::clone(&deputy);
        // Signals are received once this returns: the thread reports when it listens.
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::Builder::new().name("signals".into()).spawn(move || match Ear::open() {
            Err(error) => drop(ready.send(Err(error))),
            Ok(ear) if ready.send(Ok(())).is_ok() => ear.hear(&answers, &tell),
            Ok(_unheard) => {}
        })?;
        is_ready.recv().map_err(|_gone| io::Error::other("the thread that receives signals ended"))??;
        Ok(Self { received, deputy, on_disconnect, asks: Asks::Nothing })
    }

    /// Runs `deputy` for every signal, on the signal thread, until the returned guard is dropped.
    pub(crate) fn answer(&self, deputy: impl FnMut(Signal) -> Option<StopLevel> + Send + 'static) -> Answers {
        *lock(&self.deputy) = Some(Box::new(deputy));
        Answers(Arc::clone(&self.deputy))
    }

    /// A turn begins: an earlier interrupt does not apply to it.
    pub(crate) fn turn_begins(&mut self) {
        if self.asks == Asks::NextEnds {
            self.asks = Asks::Nothing;
        }
    }

    /// No turn is left that a signal could stop.
    pub(crate) fn turns_are_over(&mut self) {
        if self.asks == Asks::Nothing {
            self.asks = Asks::NextEnds;
        }
        while self.received_already().is_some() {}
    }

    /// The signal that requests the end of this program, now or before `over` resolves; none if `over`
    /// resolves first.
    pub(crate) async fn asked_to_end(
        &mut self,
        mut over: Pin<&mut impl Future<Output = ()>>,
    ) -> Option<Signal> {
        loop {
            if let Asks::End(got) = self.asks {
                return Some(got);
            }
            tokio::select! {
                biased;
                // First: what is over needs no signal. Losing this branch loses nothing: it is polled again.
                () = over.as_mut() => return None,
                // Losing this branch loses nothing: the signal stays pending.
                _ = self.received() => {}
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Signal {
        self.received().await.got
    }

    /// A signal that arrived before this call and was not taken yet.
    pub(crate) fn received_already(&mut self) -> Option<ReceivedSignal> {
        // Waits until a signal that is being answered is in the channel.
        drop(lock(&self.deputy));
        let received = self.received.try_recv().ok()?;
        self.count(received.got);
        Some(received)
    }

    fn count(&mut self, got: Signal) {
        if got != Signal::Hangup || self.on_disconnect == OnDisconnect::Stop {
            self.asks = self.asks.and(got);
        }
    }

    /// The next signal. A signal that is not taken here stays in the channel.
    pub(crate) async fn received(&mut self) -> ReceivedSignal {
        match self.received.recv().await {
            Some(received) => {
                self.count(received.got);
                received
            }
            // The signal thread lives as long as this receiver.
            None => std::future::pending().await,
        }
    }
}

/// The runtime and the signal streams of the signal thread.
struct Ear {
    runtime: Runtime,
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
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

    /// Runs until the receiver is dropped.
    fn hear(self, deputy: &Mutex<Option<Deputy>>, tell: &UnboundedSender<ReceivedSignal>) {
        let Self { runtime, mut interrupt, mut terminate, mut hangup } = self;
        runtime.block_on(async {
            loop {
                let got = tokio::select! {
                    biased;
                    // A signal that is not taken here stays pending in its stream: no branch loses anything. Of several at once
                    // each is answered, the interrupt first: the mildest stop is requested before a stronger one.
                    _ = interrupt.recv() => Signal::Interrupt,
                    _ = terminate.recv() => Signal::Terminate,
                    _ = hangup.recv() => Signal::Hangup,
                    () = tell.closed() => return,
                };
                // The lock is held until the send: the receiver gets the signal before the end of the run that it stopped.
                let at = Instant::now();
                let mut deputy = lock(deputy);
                let answer = deputy.as_mut().map(|answer| answer(got));
                let answered = answer.map_or(Answered::NotYet, Answered::With);
                if tell.send(ReceivedSignal { got, at, answered }).is_err() {
                    return;
                }
            }
        });
    }
}

/// The stops that signals have requested of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pressed {
    /// The signal that requested the first stop: it is the run's reason.
    pub(crate) first: Option<Signal>,
    /// How many stops were requested: by signals, and by a lost reader.
    pub(crate) count: u32,
}

/// How soon a stop comes. Exhaustive: at a safe point, or now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopLevel {
    AtSafePoint,
    Now,
}

impl Signal {
    /// The exit code of a program that this signal has ended.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => code::SIGINT,
            Self::Terminate => code::SIGTERM,
            Self::Hangup => code::STOPPED,
        }
    }

    /// The reason of a run that this signal stops.
    pub(crate) fn reason(self) -> Reason {
        match self {
            Self::Interrupt => Reason::sigint(),
            Self::Terminate => Reason::sigterm(),
            Self::Hangup => Reason::new(Code::DISCONNECT).with_text(HUNG_UP),
        }
    }
}

impl Pressed {
    /// The first signal stops gracefully, the second now with a small cap; a hang-up is a disconnect. Returns
    /// the level of the requested stop, if any.
    pub(crate) fn ask(&mut self, got: Signal, handle: &RunHandle, args: &RunArgs) -> Option<StopLevel> {
        if got == Signal::Hangup {
            return self.disconnect(handle, args, HUNG_UP);
        }
        self.count += 1;
        let request = match (self.count, Grace::try_from(args.agent.grace)) {
            (1, Ok(grace)) => StopRequest::graceful(grace).with_cleanup_cap(args.agent.cleanup_cap),
            (1, Err(_zero)) => StopRequest::now().with_cleanup_cap(args.agent.cleanup_cap),
            _ => StopRequest::now().with_cleanup_cap(LAST_CAP),
        };
        if handle.stop(request.with_reason(got.reason())) == StopAck::First {
            self.first = Some(got);
        }
        let at_safe_point = self.count == 1 && !args.agent.grace.is_zero();
        Some(if at_safe_point { StopLevel::AtSafePoint } else { StopLevel::Now })
    }

    /// The reader is gone. Returns the level of the requested stop, if any.
    pub(crate) fn disconnect(&mut self, handle: &RunHandle, args: &RunArgs, why: &str) -> Option<StopLevel> {
        match args.on_disconnect {
            OnDisconnect::Detach => None,
            OnDisconnect::Stop => {
                self.count += 1;
                let reason = Reason::new(Code::DISCONNECT).with_text(why.to_owned());
                handle.stop(StopRequest::now().with_cleanup_cap(args.agent.cleanup_cap).with_reason(reason));
                Some(StopLevel::Now)
            }
        }
    }
}

/// A signal reaches the whole process, so tests with signals run one at a time.
#[cfg(test)]
pub(crate) static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[cfg(test)]
mod tests {
    use rustix::process::{self, getpid, kill_process};

    use super::*;

    /// S12.5: a signal's stop is requested while the program's runtime is busy: its one thread waits here,
    /// and is free only afterwards.
    #[tokio::test]
    async fn a_signal_is_answered_while_the_runtime_is_busy() {
        const PATIENCE: Duration = Duration::from_secs(20);
        let _alone = ONE_AT_A_TIME.lock().await;
        let mut signals = Signals::listen(OnDisconnect::Stop).unwrap();
        let (tell, asked) = std::sync::mpsc::channel();
        let answers = signals.answer(move |got| {
            tell.send(got).unwrap();
            Some(StopLevel::Now)
        });
        kill_process(getpid(), process::Signal::HUP).unwrap();
        assert_eq!(asked.recv_timeout(PATIENCE), Ok(Signal::Hangup));
        drop(answers);
        let received = signals.received().await;
        assert_eq!((received.got, received.answered), (Signal::Hangup, Answered::With(Some(StopLevel::Now))));
    }
}
