//! What the operating system asks: each signal once, in order, and what a run is asked because of it.

use std::{io, process::ExitCode, time::Duration};

use safepoint::{Asked, Code, Grace, Reason, RunHandle, StopRequest};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    args::{OnDisconnect, RunArgs},
    screen::Screen,
};

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

    /// Waits until all is written, however slowly it is read. A signal ends that, and then the exit code says so.
    pub(crate) async fn until_written(&mut self, screen: &Screen, code: ExitCode) -> ExitCode {
        tokio::select! {
            biased;
            () = screen.written() => code,
            // What is not yet written is lost.
            got = self.next() => if code == ExitCode::SUCCESS { ExitCode::from(got.exit_code()) } else { code },
        }
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
            Self::Hangup => Reason::new(Code::DISCONNECT).saying(self.name()),
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
            (1, Ok(grace)) => StopRequest::graceful(grace).cleanup_cap(args.agent.cleanup_cap),
            (1, Err(_zero)) => StopRequest::now().cleanup_cap(args.agent.cleanup_cap),
            _ => StopRequest::now().cleanup_cap(LAST_CAP),
        };
        if handle.stop(request.because(Reason::user(got.name()))) == Asked::First {
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
                let reason = Reason::new(Code::DISCONNECT).saying(why.to_owned());
                handle.stop(StopRequest::now().cleanup_cap(args.agent.cleanup_cap).because(reason));
                Some(Strength::Now)
            }
        }
    }
}
