//! What the operating system asks: each signal once, in order, and what a run is asked because of it.

use std::{io, time::Duration};

use safepoint::{Code, Grace, Reason, RunHandle, StopRequest};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{OnDisconnect, RunArgs};

/// What a second signal leaves to clean up, and to be quiet once the turn has ended.
pub(crate) const LAST_CAP: Duration = Duration::from_millis(800);

/// The signals that end a run.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// One signal. Exhaustive: the three that are listened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Got {
    Interrupt,
    Terminate,
    Hangup,
}

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Got {
        tokio::select! {
            biased;
            // A signal that is not taken here stays pending in its stream: no branch loses anything.
            _ = self.interrupt.recv() => Got::Interrupt,
            _ = self.terminate.recv() => Got::Terminate,
            _ = self.hangup.recv() => Got::Hangup,
        }
    }
}

/// What has been asked of a turn because of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pressed {
    /// The first that asked for a stop.
    pub(crate) first: Option<Got>,
    /// How many did.
    pub(crate) count: u32,
}

impl Got {
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
    pub(crate) fn ask(&mut self, got: Got, handle: &RunHandle, args: &RunArgs) {
        if got == Got::Hangup {
            disconnect(handle, args, got.name());
            return;
        }
        self.count += 1;
        self.first.get_or_insert(got);
        let request = match (self.count, Grace::try_from(args.agent.grace)) {
            (1, Ok(grace)) => StopRequest::graceful(grace).cleanup_cap(args.agent.cleanup_cap),
            (1, Err(_zero)) => StopRequest::now().cleanup_cap(args.agent.cleanup_cap),
            _ => StopRequest::now().cleanup_cap(LAST_CAP),
        };
        handle.stop(request.because(Reason::user(got.name())));
    }
}

/// Nobody watches any more.
pub(crate) fn disconnect(handle: &RunHandle, args: &RunArgs, why: &'static str) {
    match args.on_disconnect {
        OnDisconnect::Detach => {}
        OnDisconnect::Stop => {
            let reason = Reason::new(Code::DISCONNECT).saying(why);
            handle.stop(StopRequest::now().cleanup_cap(args.agent.cleanup_cap).because(reason));
        }
    }
}
