//! Work that a signal ends: a start that waits for something else, an end that takes long.

use std::{pin::pin, process::ExitCode};

use futures_util::future::{Either, select};

use crate::{
    exit, output,
    signals::{Signal, Signals},
};

/// What a signal leaves undone that comes before a server has begun.
#[cfg(feature = "serve")]
pub(super) const NOTHING_SERVED: &str = "nothing was served";

/// The work, unless a signal comes first; it is dropped then.
///
/// # Cancel safety
/// As of the work; a signal is not lost.
pub(super) async fn unless<T>(signals: &mut Signals, work: impl Future<Output = T>) -> Result<T, Signal> {
    // The signal first: work that is done at the same moment counts as stopped, and is dropped. Nothing that
    // was sent is taken back.
    match select(pin!(signals.next()), pin!(work)).await {
        Either::Left((got, _)) => Err(got),
        Either::Right((done, _)) => Ok(done),
    }
}

/// Says what the signal has left undone; the exit code is the signal's.
pub(super) fn stopped(got: Signal, what: &str) -> ExitCode {
    output::tell(format_args!("safepoint: stopped; {what}"));
    exit::with(got.exit_code())
}
