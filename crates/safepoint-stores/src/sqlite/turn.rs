//! The turn to write: processes that have the file open wait for it in the order of their coming, and for a bounded time;
//! the holder of a session goes before newcomers.
//!
//! SQLite lets each try again by itself, after pauses that grow: who waits longest asks least, and of a thousand most get
//! nothing. Here they stand in two lines. In the first, at the door, wait those who come: to open the store, to take a session,
//! to put something into one. Its head waits in the second, with those who have a session already. So what those write waits
//! for a few others, however many come.
//!
//! **Invariants:** the turn is only about fairness, and SQLite says who may write. Where the process that has the turn is paused, the others
//! continue without it, and those who come go through the door one by one all the same.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use safepoint::{raw::store::Cause, store::Error};

mod line;

use line::LockLine;

/// The lines of one open store.
#[derive(Debug)]
pub(super) struct WriteTurn {
    door: LockLine,
    line: LockLine,
}

/// Who wants to write. Exhaustive: each has its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The holder of a session, whose work waits.
    Holder,
    /// A newcomer.
    Comer,
}

/// The turn, or what there is of it; it ends when this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "what it holds is let go with it")]
pub(super) struct HeldTurn<'a> {
    turn: Option<line::HeldLine<'a>>,
    /// Kept where the turn is gone on without.
    door: Option<line::HeldLine<'a>>,
}

/// Until when is waited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until {
    ends: Instant,
    bound: Duration,
}

impl Until {
    pub(super) fn after(bound: Duration) -> Self {
        Self { ends: Instant::now() + bound, bound }
    }

    pub(super) fn left(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }

    fn over(&self) -> Error {
        let why = format!("others have been writing for {} s; try again later", self.bound.as_secs());
        Error::Busy(Cause::new(why))
    }
}

#[cfg(test)]
impl HeldTurn<'_> {
    fn has_turn(&self) -> bool {
        self.turn.is_some()
    }
}

impl WriteTurn {
    /// The lines beside the store in this file.
    ///
    /// # Errors
    /// If nothing can be written beside it.
    pub(super) fn beside(store: &Path) -> io::Result<Self> {
        let line = |name| LockLine::at(&PathBuf::from(format!("{}-{name}", store.display())));
        Ok(Self { door: line("door")?, line: line("turn")? })
    }

    /// Waits for the turn.
    ///
    /// # Errors
    /// [`Error::Busy`] once the time is over.
    pub(super) fn take(&mut self, who: Who, until: &Until) -> Result<HeldTurn<'_>, Error> {
        let door = match who {
            Who::Comer => self.door.wait(until)?,
            Who::Holder => None,
        };
        let turn = self.line.wait(until)?;
        Ok(HeldTurn { door: door.filter(|_| turn.is_none()), turn })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    const BOUND: Duration = Duration::from_secs(60);

    fn queue() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        (folder, path)
    }

    fn soon() -> Until {
        Until::after(Duration::from_millis(10))
    }

    fn later() -> Until {
        Until::after(BOUND)
    }

    /// S7.15: one has the turn. A waiter that waits longer than allowed gets an error, and the next one gets the turn as soon as it is free.
    #[test]
    fn a_turn_is_waited_for_and_no_longer_than_is_said() {
        for who in [Who::Holder, Who::Comer] {
            let (_folder, path) = queue();
            let (mut one, mut two) = (WriteTurn::beside(&path).unwrap(), WriteTurn::beside(&path).unwrap());
            let held = one.take(who, &later()).unwrap();
            for _ in 0..3 {
                let refused = two.take(who, &soon());
                assert!(matches!(refused, Err(Error::Busy(_))), "{refused:?}");
            }
            thread::scope(|threads| {
                let waiting = threads.spawn(|| two.take(who, &later()).map(drop));
                drop(held);
                waiting.join().unwrap().unwrap();
            });
            drop(one.take(who, &later()).unwrap());
        }
    }

    /// S7.15, S7.4: one that is paused while it has the turn keeps no other process from writing: the wait is short, and one for all,
    /// also those who come only then.
    #[test]
    fn a_turn_that_does_not_end_is_gone_on_without() {
        let (_folder, path) = queue();
        let mut all: Vec<WriteTurn> = (0..3).map(|_| WriteTurn::beside(&path).unwrap()).collect();
        let [one, two, three] = &mut all[..] else { panic!("three") };
        let held = one.take(Who::Holder, &later()).unwrap();
        assert!(!two.take(Who::Comer, &later()).unwrap().has_turn(), "it was held");
        let again = Instant::now();
        assert!(!three.take(Who::Comer, &later()).unwrap().has_turn());
        assert!(!two.take(Who::Holder, &later()).unwrap().has_turn());
        assert!(again.elapsed() < line::STILL, "they wait for the same turn again");
        drop(held);
        assert!(two.take(Who::Holder, &later()).unwrap().has_turn(), "turns end again");
    }

    /// S7.15: those who come go one by one, also where the turn is gone on without.
    #[test]
    fn the_door_lets_one_in_where_the_turn_does_not_end() {
        let (_folder, path) = queue();
        let mut all: Vec<WriteTurn> = (0..3).map(|_| WriteTurn::beside(&path).unwrap()).collect();
        let [one, two, three] = &mut all[..] else { panic!("three") };
        let paused = one.take(Who::Holder, &later()).unwrap();
        let inside = two.take(Who::Comer, &later()).unwrap();
        assert!(!inside.has_turn());
        assert!(matches!(three.take(Who::Comer, &soon()), Err(Error::Busy(_))), "two are inside");
        drop(inside);
        assert!(!three.take(Who::Comer, &later()).unwrap().has_turn());
        drop(paused);
    }

    /// S7.15: the holder of a session waits for few, however many newcomers there are: of those who stand at the door only one is before it.
    #[test]
    fn a_process_with_a_session_goes_before_those_that_come() {
        // One was in line, and one may come between a look and a lock. Whom the system lets run first is up to it: more may
        // come before it where the machine is busy, but not in each of many tries.
        const TRIES: usize = 20;
        let gone: Vec<usize> = (0..TRIES).map(|_| gone_before()).take_while(|gone| *gone > 2).collect();
        assert!(gone.len() < TRIES, "{gone:?} of {COMERS} went before it");
    }

    const COMERS: usize = 8;

    /// How many of those who came went before one who had a session, and wanted its turn after them.
    fn gone_before() -> usize {
        let (_folder, path) = queue();
        let mut all: Vec<WriteTurn> = (0..COMERS + 2).map(|_| WriteTurn::beside(&path).unwrap()).collect();
        let (mut holder, mut first) = (all.remove(0), all.remove(0));
        let held = first.take(Who::Holder, &later()).unwrap();
        let (in_before, holder_is_in) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (in_before, holder_is_in) = (&in_before, &holder_is_in);
        thread::scope(|threads| {
            for mut comer in all {
                let (at_door, in_line) = (comer.door.waits(), comer.line.waits());
                threads.spawn(move || {
                    let held = comer.take(Who::Comer, &later()).unwrap();
                    if !holder_is_in.load(Ordering::SeqCst) {
                        in_before.fetch_add(1, Ordering::SeqCst);
                    }
                    drop(held);
                });
                until_it(|| at_door() || in_line());
            }
            let waits = holder.line.waits();
            threads.spawn(move || {
                let held = holder.take(Who::Holder, &later()).unwrap();
                holder_is_in.store(true, Ordering::SeqCst);
                drop(held);
            });
            until_it(waits);
            drop(held);
        });
        in_before.load(Ordering::SeqCst)
    }

    fn until_it(is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < BOUND, "it does not wait");
            thread::yield_now();
        }
    }

    /// S7.15: in turn: many that want it again and again all get it.
    #[test]
    fn everybody_gets_a_turn() {
        const MANY: usize = 16;
        const TIMES: usize = 20;
        let (_folder, path) = queue();
        let inside = AtomicUsize::new(0);
        thread::scope(|threads| {
            for n in 0..MANY {
                let (path, inside) = (&path, &inside);
                threads.spawn(move || {
                    let mut turn = WriteTurn::beside(path).unwrap();
                    let who = if n % 2 == 0 { Who::Holder } else { Who::Comer };
                    for _ in 0..TIMES {
                        let held = turn.take(who, &later()).unwrap();
                        assert!(held.has_turn(), "none is paused");
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two have it");
                        thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(held);
                    }
                });
            }
        });
    }
}
