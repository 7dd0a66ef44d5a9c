//! One request to the thread that writes: what it does, and the caller that waits for its answer.

use rusqlite::Connection;
use safepoint::{raw::store::Durability, store::Error};
use tokio::sync::oneshot;

use crate::sqlite::fail::Fail;

/// What a request has to do with leases. Exhaustive: by these the writer knows whether its store holds a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum Stake {
    /// Anybody may ask it.
    None,
    /// It takes a session.
    Takes,
    /// It is a holder's.
    Holds,
    /// It gives a session back.
    GivesBack,
}

/// A request, whatever it answers.
pub(super) trait Job: Send {
    fn class(&self) -> Durability;
    fn stake(&self) -> Stake;
    /// Whether it was done, as far as that depends on it. What one did that answers with an error is to be undone.
    fn went_well(&self) -> bool;
    /// Whether it was not, for want of room.
    fn lacks_room(&self) -> bool;
    fn run(&mut self, connection: &Connection);
    fn tell(self: Box<Self>, ending: Result<(), Error>);
}

pub(super) struct WriteRequest<T, F> {
    pub(super) class: Durability,
    pub(super) stake: Stake,
    pub(super) work: F,
    pub(super) answer: Option<Result<T, Error>>,
    pub(super) reply: oneshot::Sender<Result<T, Error>>,
}

impl<T: Send, F: FnMut(&Connection) -> Result<T, Fail> + Send> Job for WriteRequest<T, F> {
    fn class(&self) -> Durability {
        self.class
    }

    fn stake(&self) -> Stake {
        self.stake
    }

    fn went_well(&self) -> bool {
        matches!(self.answer, Some(Ok(_)))
    }

    fn lacks_room(&self) -> bool {
        matches!(self.answer, Some(Err(Error::Full(_))))
    }

    fn run(&mut self, connection: &Connection) {
        self.answer = Some((self.work)(connection).map_err(Error::from));
    }

    fn tell(self: Box<Self>, ending: Result<(), Error>) {
        let answer = match (self.answer, ending) {
            (Some(Err(own)), _) => Err(own),
            (_, Err(shared)) => Err(shared),
            (Some(Ok(answer)), Ok(())) => Ok(answer),
            (None, Ok(())) => Err(Error::Gone),
        };
        if self.reply.send(answer).is_err() {
            // The caller is gone; what was written is written.
        }
    }
}
