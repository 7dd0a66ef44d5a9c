//! The turn to write: processes that have the file open wait for it in the order of their coming, and for a bounded time.
//!
//! SQLite lets each try again by itself, after pauses that grow: who waits longest asks least, and of a thousand most get
//! nothing. Here they queue at a lock of the operating system, which wakes the next one.
//!
//! **Invariants:** of all processes one has the turn; it ends with the process that has it. One that is paused while it waits
//! holds nobody up for longer than [`LOOK`], and one that is paused while it has the turn for no longer than [`STILL`]: the
//! turn is only about fairness, and SQLite says who may write.

use std::{
    fs, io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use safepoint::store::{Cause, Error};

/// How often one that waits looks whether it could go, whoever is before it: that one may be paused.
const LOOK: Duration = Duration::from_millis(250);

/// How long nobody's turn may have ended before those who wait go on without one.
const STILL: Duration = Duration::from_secs(3);

/// The queue of one open store.
#[derive(Debug)]
pub(super) struct Turn {
    /// Where it is tried, beside the queue.
    beside: fs::File,
    queue: Arc<Queue>,
    /// Started once there is somebody to wait for.
    waits: Option<thread::JoinHandle<()>>,
    /// How many turns had ended when it was last gone on without one.
    stuck: Option<u64>,
}

#[derive(Debug)]
struct Queue {
    file: fs::File,
    place: Mutex<Place>,
    moved: Condvar,
}

/// How the one thread that waits in the queue stands. Exhaustive: each is seen to by both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It has nothing to do.
    Idle,
    /// It waits for the turn.
    Waiting,
    /// It waits still, and nobody wants it any more.
    GivenUp,
    /// It has the turn.
    Reached,
    /// It ends.
    Closed,
}

/// The turn; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Held<'a> {
    file: &'a fs::File,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let ended = ended(self.file).wrapping_add(1);
        if self.file.write_all_at(&ended.to_le_bytes(), 0).is_err() {
            // Those who wait take it for a turn that goes on, and go on without one.
        }
        if self.file.unlock().is_err() {
            // It ends with the process.
        }
    }
}

impl Turn {
    /// The queue beside the store in this file.
    ///
    /// # Errors
    /// If nothing can be written beside it.
    pub(super) fn beside(store: &Path) -> io::Result<Self> {
        let path = PathBuf::from(format!("{}-turn", store.display()));
        let (file, beside) = (open(&path)?, open(&path)?);
        let queue = Queue { file, place: Mutex::new(Place::Idle), moved: Condvar::new() };
        Ok(Self { beside, queue: Arc::new(queue), waits: None, stuck: None })
    }

    /// Waits for the turn, no longer than `bound`; none where whoever has it seems to be paused.
    ///
    /// # Errors
    /// [`Error::Busy`] once that is over.
    pub(super) fn take(&mut self, bound: Duration) -> Result<Option<Held<'_>>, Error> {
        if self.queue.lock().is_free() && self.beside.try_lock().is_ok() {
            return Ok(Some(Held { file: &self.beside }));
        }
        let mut last = ended(&self.beside);
        if self.stuck == Some(last) {
            return Ok(None);
        }
        let queued = self.queue_up();
        let mut moved = Instant::now();
        let ends = moved + bound;
        let mut place = self.queue.lock();
        loop {
            if *place == Place::Reached {
                *place = Place::Idle;
                return Ok(Some(Held { file: &self.queue.file }));
            }
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.queue.moved.wait_timeout(place, left.min(LOOK));
            place = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *place != Place::Reached && self.beside.try_lock().is_ok() {
                *place = place.given_up();
                return Ok(Some(Held { file: &self.beside }));
            }
            let now = ended(&self.beside);
            if now != last {
                (last, moved) = (now, Instant::now());
            } else if moved.elapsed() >= STILL {
                *place = place.given_up();
                self.stuck = Some(last);
                return Ok(None);
            }
        }
        *place = place.given_up();
        queued?;
        let why = format!("others have been writing for {} s; try again later", bound.as_secs());
        Err(Error::Busy(Cause::new(why)))
    }

    fn queue_up(&mut self) -> Result<(), Error> {
        let mut place = self.queue.lock();
        *place = Place::Waiting;
        self.queue.moved.notify_all();
        drop(place);
        if self.waits.is_none() {
            let queue = Arc::clone(&self.queue);
            let waiting =
                thread::Builder::new().name("safepoint-store-turn".into()).spawn(move || queue.wait());
            self.waits = Some(waiting.map_err(|why| Error::Failed(Cause::new(why)))?);
        }
        Ok(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // A thread that waits at the lock ends when it gets it, or with the process: nobody waits for that.
        *self.queue.lock() = Place::Closed;
        self.queue.moved.notify_all();
    }
}

impl Place {
    /// Whether nobody waits in the queue.
    fn is_free(self) -> bool {
        self == Self::Idle
    }

    fn given_up(self) -> Self {
        match self {
            Self::Waiting | Self::GivenUp => Self::GivenUp,
            Self::Idle | Self::Reached | Self::Closed => self,
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits in the queue for whoever wants it, until the store is closed.
    fn wait(&self) {
        loop {
            let mut place = self.lock();
            while !matches!(*place, Place::Waiting | Place::Closed) {
                place = self.moved.wait(place).unwrap_or_else(PoisonError::into_inner);
            }
            if *place == Place::Closed {
                return;
            }
            drop(place);
            let locked = self.file.lock();
            let mut place = self.lock();
            match *place {
                Place::Waiting if locked.is_ok() => *place = Place::Reached,
                Place::Closed => return,
                Place::Waiting | Place::GivenUp | Place::Idle | Place::Reached => {
                    *place = Place::Idle;
                    drop(Held { file: &self.file });
                }
            }
            self.moved.notify_all();
        }
    }
}

/// How many turns have ended; it may be read while another one ends.
fn ended(file: &fs::File) -> u64 {
    let mut count = [0; 8];
    match file.read_exact_at(&mut count, 0) {
        Ok(()) => u64::from_le_bytes(count),
        Err(_none_yet) => 0,
    }
}

/// Made for its owner alone, as the store is.
fn open(path: &Path) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_secs(60);

    fn queue() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        (folder, path)
    }

    /// S7.15: one has the turn; who waits longer than is allowed is told so, and the next one has it as soon as it is free.
    #[test]
    fn a_turn_is_waited_for_and_no_longer_than_is_said() {
        let (_folder, path) = queue();
        let (mut one, mut two) = (Turn::beside(&path).unwrap(), Turn::beside(&path).unwrap());
        let held = one.take(BOUND).unwrap().unwrap();
        for _ in 0..3 {
            let refused = two.take(Duration::from_millis(10));
            assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
        }
        thread::scope(|threads| {
            let waiting = threads.spawn(|| two.take(BOUND).map(drop));
            drop(held);
            waiting.join().unwrap().unwrap();
        });
        drop(one.take(BOUND).unwrap());
    }

    /// S7.15, S7.4: one that is paused while it has the turn keeps nobody from writing: the wait is short, and once.
    #[test]
    fn a_turn_that_does_not_end_is_gone_on_without() {
        let (_folder, path) = queue();
        let (mut one, mut two) = (Turn::beside(&path).unwrap(), Turn::beside(&path).unwrap());
        let held = one.take(BOUND).unwrap();
        assert!(two.take(BOUND).unwrap().is_none(), "it was held");
        let again = Instant::now();
        assert!(two.take(BOUND).unwrap().is_none());
        assert!(again.elapsed() < STILL, "it waits for the same turn again");
        drop(held);
        assert!(two.take(BOUND).unwrap().is_some(), "turns end again");
    }

    /// S7.15: in turn: many that want it again and again all get it.
    #[test]
    fn everybody_gets_a_turn() {
        const MANY: usize = 16;
        const TIMES: usize = 20;
        let (_folder, path) = queue();
        let inside = std::sync::atomic::AtomicUsize::new(0);
        thread::scope(|threads| {
            for _ in 0..MANY {
                threads.spawn(|| {
                    let mut turn = Turn::beside(&path).unwrap();
                    for _ in 0..TIMES {
                        let held = turn.take(BOUND).unwrap().expect("none is paused");
                        assert_eq!(
                            inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst),
                            0,
                            "two have it"
                        );
                        thread::yield_now();
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(held);
                    }
                });
            }
        });
    }
}
