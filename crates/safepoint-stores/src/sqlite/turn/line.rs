//! One line of processes: each waits for its turn at a lock of the operating system, which wakes the next one.
//!
//! **Invariants:** of all processes one has the turn; it ends with the process that has it. While the line moves, no process takes a
//! turn before those who came earlier. One that is paused while it waits delays no other for longer than [`LOOK`], and one that
//! is paused while it has the turn for no longer than [`STILL`]: all who wait then know that of each other.

use std::{
    fs, io,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use safepoint::{raw::store::Cause, store::Error};

use super::Until;

/// How often one that waits looks whether the line moves: the one before it may be paused.
const LOOK: Duration = Duration::from_millis(250);

/// How long no turn may have ended before those who wait continue without one.
pub(super) const STILL: Duration = Duration::from_secs(3);

/// A place in one line, for one open store.
#[derive(Debug)]
pub(super) struct LockLine {
    /// Where it is tried, beside the queue.
    beside: fs::File,
    queue: Arc<LockQueue>,
    /// Started once there is another process to wait for.
    waits: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct LockQueue {
    file: fs::File,
    /// How the waiting thread stands. Both sides hold it to look at the state and to change it, and no other `Mutex`
    /// under it. The thread releases it before it blocks at the lock of the file. The one that asks may look at the
    /// marks and try the lock of the file under it: neither blocks.
    place: Mutex<QueuePlace>,
    /// Notified after each change of `place`; each side looks again under the lock before it waits, so no change is
    /// missed.
    moved: Condvar,
}

/// How the one thread that waits in the queue stands. Exhaustive: each is seen to by both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueuePlace {
    /// It has nothing to do.
    Idle,
    /// It waits for the turn.
    Waiting,
    /// It still waits, and no request needs it any more.
    GivenUp,
    /// It has the turn.
    Reached,
    /// It ends.
    Closed,
}

/// What those who wait know of each other; it stands in the file. It may be read while another process writes it: what is seen wrong
/// once costs a look, and no more.
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// How many turns have ended.
    ended: u64,
    /// How many were taken past a process that did not take one that was free.
    passed: u64,
    /// One more than `ended` was when the process with the turn was found to be paused; 0: never.
    still: u64,
}

/// The turn; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct HeldLine<'a> {
    file: &'a fs::File,
}

impl Drop for HeldLine<'_> {
    fn drop(&mut self) {
        let Marks { ended, .. } = Marks::read(self.file);
        Marks::write(self.file, Marks::ENDED, ended.wrapping_add(1));
        if self.file.unlock().is_err() {
            // It ends with the process.
        }
    }
}

impl LockLine {
    /// The line at this file.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        let (file, beside) = (open(path)?, open(path)?);
        let queue = LockQueue { file, place: Mutex::new(QueuePlace::Idle), moved: Condvar::new() };
        Ok(Self { beside, queue: Arc::new(queue), waits: None })
    }

    /// Waits for the turn; none where the process that has it seems to be paused.
    ///
    /// # Errors
    /// [`Error::Busy`] once the time is over.
    pub(super) fn wait(&mut self, until: &Until) -> Result<Option<HeldLine<'_>>, Error> {
        if self.queue.lock().is_free() && self.beside.try_lock().is_ok() {
            return Ok(Some(HeldLine { file: &self.beside }));
        }
        let mut last = Marks::read(&self.beside);
        if last.is_still() {
            return Ok(None);
        }
        let queued = self.queue_up();
        let mut moved = Instant::now();
        let mut place = self.queue.lock();
        loop {
            if *place == QueuePlace::Reached {
                *place = QueuePlace::Idle;
                return Ok(Some(HeldLine { file: &self.queue.file }));
            }
            let left = until.left();
            if left.is_zero() {
                break;
            }
            let waited = self.queue.moved.wait_timeout(place, left.min(LOOK));
            place = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *place == QueuePlace::Reached {
                continue;
            }
            let now = Marks::read(&self.beside);
            if !now.moves_since(last) && self.beside.try_lock().is_ok() {
                *place = place.given_up();
                Marks::write(&self.beside, Marks::PASSED, now.passed.wrapping_add(1));
                return Ok(Some(HeldLine { file: &self.beside }));
            }
            if now.ended != last.ended {
                moved = Instant::now();
            } else if now.is_still() || moved.elapsed() >= STILL {
                *place = place.given_up();
                Marks::write(&self.beside, Marks::STILL, now.ended.wrapping_add(1));
                return Ok(None);
            }
            last = now;
        }
        *place = place.given_up();
        queued?;
        Err(until.over())
    }

    /// Says whether it waits, while it does so in another thread.
    #[cfg(test)]
    pub(super) fn waits(&self) -> impl Fn() -> bool + use<> {
        let queue = Arc::clone(&self.queue);
        move || *queue.lock() == QueuePlace::Waiting
    }

    fn queue_up(&mut self) -> Result<(), Error> {
        let mut place = self.queue.lock();
        *place = QueuePlace::Waiting;
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

impl Drop for LockLine {
    fn drop(&mut self) {
        // A thread that waits at the lock ends when it gets the lock, or with the process. Nothing waits for that end.
        *self.queue.lock() = QueuePlace::Closed;
        self.queue.moved.notify_all();
    }
}

impl QueuePlace {
    /// Whether the queue is empty.
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

impl LockQueue {
    fn lock(&self) -> MutexGuard<'_, QueuePlace> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits in the queue for any request, until the store is closed.
    fn wait(&self) {
        loop {
            let mut place = self.lock();
            while !matches!(*place, QueuePlace::Waiting | QueuePlace::Closed) {
                place = self.moved.wait(place).unwrap_or_else(PoisonError::into_inner);
            }
            if *place == QueuePlace::Closed {
                return;
            }
            drop(place);
            let locked = self.file.lock();
            // The request may have been given up, or the store closed, while this thread was blocked without the lock.
            let mut place = self.lock();
            match *place {
                QueuePlace::Waiting if locked.is_ok() => *place = QueuePlace::Reached,
                QueuePlace::Closed => return,
                QueuePlace::Waiting | QueuePlace::GivenUp | QueuePlace::Idle | QueuePlace::Reached => {
                    *place = QueuePlace::Idle;
                    drop(HeldLine { file: &self.file });
                }
            }
            self.moved.notify_all();
        }
    }
}

impl Marks {
    const ENDED: u64 = 0;
    const PASSED: u64 = 8;
    const STILL: u64 = 16;

    fn read(file: &fs::File) -> Self {
        // In one read; what is not there yet is 0.
        let mut marks = [[0; 8]; 3];
        if file.read_at(marks.as_flattened_mut(), 0).is_err() {
            // As where there is none.
        }
        let [ended, passed, still] = marks.map(u64::from_le_bytes);
        Self { ended, passed, still }
    }

    fn write(file: &fs::File, at: u64, count: u64) {
        if file.write_all_at(&count.to_le_bytes(), at).is_err() {
            // Those who wait take it for a turn that lasts, and continue without one.
        }
    }

    /// Whether turns have ended since then, and each was taken by whom it was free for.
    fn moves_since(self, last: Self) -> bool {
        self.ended != last.ended && self.passed == last.passed
    }

    /// Whether the process with the turn was found to be paused.
    fn is_still(self) -> bool {
        self.still == self.ended.wrapping_add(1)
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
