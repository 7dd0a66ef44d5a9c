//! Many readers of one session: one task writes what comes to the sockets of all of them.
//!
//! ```text
//! Tail ──frame──▶ Fan ──chunk──▶ Outlet of each reader that waits for it
//!                  ▲  │ not all was taken, frames are gone, nothing came for long, the session is closed here
//!            attend│  ▼
//!                 Reader: catches up with the journal, ends, shows that it is there
//! ```
//!
//! **Invariants**: one writes to an outlet at a time: its reader's connection, or the fan while that reader attends it, and none behind
//! the end of the body; what a client did not take of a chunk goes to it before anything else; a client that takes nothing costs the
//! others nothing.

mod outlet;

use std::{
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use futures_util::future::{Either, select};
use tokio::{
    sync::{mpsc, oneshot},
    task::yield_now,
    time::{Instant, sleep_until},
};

pub(crate) use self::outlet::{Outlet, STALLED};
use self::outlet::{Taken, chunk};
use crate::{
    lines::{FoundFrames, Tail},
    sse::KEEP_ALIVE,
};

/// What goes out in one piece, unless one frame is larger.
pub(crate) const PIECE: usize = 64 << 10;
/// To how many sockets the fan writes before others of its thread have their turn.
const IN_TURN: usize = 32;

/// A place among the frames of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FramePlace {
    /// The number of the frame that is next.
    pub(crate) next: u64,
    /// The last position of the journal that was sent.
    pub(crate) sent: Option<u64>,
}

/// How a reader comes back from the fan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FanReturn {
    pub(crate) place: FramePlace,
    /// When it last had frames.
    pub(crate) read: Instant,
    pub(crate) why: FanEnd,
}

/// Why a reader comes back from the fan. Exhaustive: its client did not take all, it has to look itself why no frame comes, or
/// none came for as long as [`KEEP_ALIVE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FanEnd {
    Rest,
    Look,
    Quiet,
}

/// The way to the task that writes the frames of one session; there is one while a reader attends it.
#[derive(Debug, Default)]
pub(crate) struct Fan {
    /// Held for one entry; no other lock is taken under it.
    work: Mutex<Option<mpsc::UnboundedSender<FanWork>>>,
    numbers: AtomicU64,
}

/// What the fan is to do. Exhaustive: a reader comes, or the reader of this number leaves.
#[derive(Debug)]
enum FanWork {
    Join(FanReader),
    Leave(u64),
}

/// A reader that attends the fan.
#[derive(Debug)]
struct FanReader {
    number: u64,
    outlet: Outlet,
    place: FramePlace,
    read: Instant,
    back: oneshot::Sender<FanReturn>,
}

impl Fan {
    /// Has the fan of this session write what comes to this outlet, until only the reader knows what is next. `None`: the threads
    /// that it ran in have ended.
    ///
    /// # Cancel safety
    /// It may have written more: the outlet is for nothing more then.
    pub(crate) async fn attend(
        tail: &Arc<Tail>,
        outlet: &Outlet,
        place: FramePlace,
        read: Instant,
    ) -> Option<FanReturn> {
        // Relaxed: each gets another one, which is all.
        let number = tail.fan.numbers.fetch_add(1, Ordering::Relaxed);
        let (back, came) = oneshot::channel();
        let reader = FanReader { number, outlet: outlet.clone(), place, read, back };
        let work = tail.fan.join(tail, reader);
        let _leaves = Leaving { number, work };
        came.await.ok()
    }

    fn join(&self, tail: &Arc<Tail>, reader: FanReader) -> mpsc::UnboundedSender<FanWork> {
        let scope = reader.outlet.scope().clone();
        let mut work = self.lock();
        let refused = match &*work {
            Some(known) => match known.send(FanWork::Join(reader)) {
                Ok(()) => return known.clone(),
                Err(mpsc::error::SendError(refused)) => refused,
            },
            None => FanWork::Join(reader),
        };
        let (new, asked) = mpsc::unbounded_channel();
        // It is received: the receiver is here.
        drop(new.send(refused));
        *work = Some(new.clone());
        drop(scope.spawn("readers of a session", run(Arc::clone(tail), asked)));
        new
    }

    /// Whether no reader waits to join: the fan has ended with this.
    fn ends(&self, asked: &mpsc::UnboundedReceiver<FanWork>) -> bool {
        let mut work = self.lock();
        let ends = asked.is_empty();
        if ends {
            *work = None;
        }
        ends
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::UnboundedSender<FanWork>>> {
        self.work.lock().expect("no code under this lock panics")
    }
}

/// A reader that is dropped while it attends leaves.
struct Leaving {
    number: u64,
    work: mpsc::UnboundedSender<FanWork>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        // A fan that has ended has no readers.
        drop(self.work.send(FanWork::Leave(self.number)));
    }
}

/// Writes the frames of a session while readers attend.
async fn run(tail: Arc<Tail>, mut asked: mpsc::UnboundedReceiver<FanWork>) {
    let mut grown = tail.grown();
    let mut readers: Vec<FanReader> = Vec::new();
    let mut alarm = pin!(sleep_until(Instant::now() + KEEP_ALIVE));
    loop {
        if readers.is_empty() && tail.fan.ends(&asked) {
            return;
        }
        let work = {
            let (work, more) = (pin!(asked.recv()), pin!(grown.changed()));
            // Whichever is first: all are looked at again, and work that is not taken now stays where it is.
            match select(work, select(more, alarm.as_mut())).await {
                Either::Left((work, _)) => work,
                Either::Right(_) => None,
            }
        };
        match work {
            Some(FanWork::Join(reader)) => readers.push(reader),
            Some(FanWork::Leave(number)) => readers.retain(|reader| reader.number != number),
            None => {}
        }
        // First: what comes after the look is a change.
        grown.mark_unchanged();
        readers = pass(&tail, readers).await;
        if alarm.is_elapsed() {
            readers = readers.into_iter().filter_map(FanReader::unless_quiet).collect();
            let oldest = readers.iter().map(|reader| reader.read).min();
            alarm.as_mut().reset(oldest.unwrap_or_else(Instant::now) + KEEP_ALIVE);
        }
    }
}

/// Writes to each reader what is there for it; returns those that stay.
async fn pass(tail: &Tail, readers: Vec<FanReader>) -> Vec<FanReader> {
    let now = Instant::now();
    let mut stay = Vec::with_capacity(readers.len());
    // Nearly all are at the same place: what comes next is made once.
    let mut made: Vec<(FramePlace, FanStep)> = Vec::new();
    for (at, mut reader) in readers.into_iter().enumerate() {
        if at % IN_TURN == IN_TURN - 1 {
            yield_now().await;
        }
        let end = loop {
            let known = made.iter().position(|(from, _)| *from == reader.place);
            let step = known.unwrap_or_else(|| {
                made.push((reader.place, FanStep::next(tail, reader.place)));
                made.len() - 1
            });
            match &made[step].1 {
                FanStep::Nothing => break None,
                FanStep::Look => break Some(FanEnd::Look),
                FanStep::Write { chunk, place } => {
                    reader.place = *place;
                    if chunk.is_empty() {
                        continue;
                    }
                    reader.read = now;
                    match reader.outlet.write_now(chunk) {
                        // Until there is nothing: that no more comes is known behind the last frame alone.
                        Taken::Whole => {}
                        Taken::Part => break Some(FanEnd::Rest),
                        // Its connection sees that itself.
                        Taken::Gone => break Some(FanEnd::Look),
                    }
                }
            }
        };
        match end {
            Some(why) => reader.comes_back(why),
            None => stay.push(reader),
        }
    }
    stay
}

/// What comes next at a place. Exhaustive: nothing yet, these frames as one chunk, behind which there may be more, or what only
/// the reader knows.
enum FanStep {
    Nothing,
    Write { chunk: Bytes, place: FramePlace },
    Look,
}

impl FanStep {
    fn next(tail: &Tail, place: FramePlace) -> Self {
        let frames = match tail.look(place.next, PIECE) {
            FoundFrames::Frames(frames) => frames,
            FoundFrames::Nothing => return Self::Nothing,
            FoundFrames::Gone { .. } | FoundFrames::Closed => return Self::Look,
        };
        let mut to = FramePlace { next: place.next + frames.len() as u64, ..place };
        let new = frames.iter().filter(|frame| frame.is_new(&mut to.sent));
        let pieces: Vec<&[u8]> = new.map(|frame| &*frame.bytes).collect();
        Self::Write { chunk: chunk(&pieces), place: to }
    }
}

impl FanReader {
    fn comes_back(self, why: FanEnd) {
        // One that has gone meanwhile is for nothing more.
        drop(self.back.send(FanReturn { place: self.place, read: self.read, why }));
    }

    /// It stays, unless nothing came for it for long.
    fn unless_quiet(self) -> Option<Self> {
        if self.read + KEEP_ALIVE > Instant::now() {
            return Some(self);
        }
        self.comes_back(FanEnd::Quiet);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use safepoint::stop::Scope;
    use tokio::{
        io::AsyncReadExt as _,
        net::{TcpListener, TcpSocket, TcpStream},
        time::timeout,
    };

    use super::*;
    use crate::lines::Frame;

    /// How long is waited for anything.
    const WITHIN: Duration = Duration::from_secs(20);

    /// A client, and the outlet to it.
    async fn connect() -> (TcpStream, Outlet) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        let client = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        (client, Outlet::new(server, Scope::root().0))
    }

    fn frame(text: &str, position: Option<u64>) -> Frame {
        Frame { position, ..Frame::unrecorded(Bytes::from(text.to_owned())) }
    }

    fn attend(
        tail: &Arc<Tail>,
        outlet: Outlet,
        place: FramePlace,
    ) -> tokio::task::JoinHandle<Option<FanReturn>> {
        let tail = Arc::clone(tail);
        tokio::spawn(async move { Fan::attend(&tail, &outlet, place, Instant::now()).await })
    }

    const FIRST: FramePlace = FramePlace { next: 0, sent: None };

    /// The text of the chunks that come, until there is this.
    async fn read_until(client: &mut TcpStream, wanted: &str) -> String {
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).contains(wanted) {
            let count = timeout(WITHIN, client.read_buf(&mut read)).await.unwrap().unwrap();
            assert!(count > 0, "it ended: {}", String::from_utf8_lossy(&read));
        }
        String::from_utf8(read).unwrap()
    }

    /// S13.38: all of them get all that comes, as one chunk each time, but for the records that one was sent before; and come back
    /// once the session is closed.
    #[tokio::test]
    async fn all_readers_get_what_comes() {
        let tail = Arc::new(Tail::default());
        drop((tail.join(), tail.join()));
        let ((mut anna, to_anna), (mut bert, to_bert)) = (connect().await, connect().await);
        tail.show(frame("one", Some(4)));
        let anna_is_back = attend(&tail, to_anna, FIRST);
        let bert_is_back = attend(&tail, to_bert, FramePlace { next: 0, sent: Some(4) });
        assert_eq!(read_until(&mut anna, "one\r\n").await, "3\r\none\r\n");
        tail.show(frame("second", Some(5)));
        for client in [&mut anna, &mut bert] {
            assert_eq!(read_until(client, "second\r\n").await, "6\r\nsecond\r\n");
        }
        tail.close();
        for back in [anna_is_back, bert_is_back] {
            let back = timeout(WITHIN, back).await.unwrap().unwrap().unwrap();
            assert_eq!((back.place, back.why), (FramePlace { next: 2, sent: Some(5) }, FanEnd::Look));
        }
    }

    /// S13.38: who takes nothing comes back, with what was not taken before all else, and is in the way of no other reader.
    #[tokio::test]
    async fn who_takes_nothing_is_in_the_way_of_none() {
        let tail = Arc::new(Tail::default());
        drop((tail.join(), tail.join()));
        let ((mut slow, to_slow), (mut quick, to_quick)) = (connect().await, connect().await);
        let slow_is_back = attend(&tail, to_slow.clone(), FIRST);
        let _stays = attend(&tail, to_quick, FIRST);
        let mut shown = 0;
        while !slow_is_back.is_finished() {
            let text = format!("[{shown}]{}", "x".repeat(16 << 10));
            tail.show(frame(&text, None));
            read_until(&mut quick, &format!("{text}\r\n")).await;
            shown += 1;
            assert!(shown < 10_000, "it takes more than any buffer has");
        }
        let back = slow_is_back.await.unwrap().unwrap();
        assert_eq!(back.why, FanEnd::Rest);
        let rest = tokio::spawn(async move {
            to_slow.write(b"").await.unwrap();
            to_slow.write(b"and the end").await.unwrap();
        });
        let read = read_until(&mut slow, "and the end\r\n").await;
        timeout(WITHIN, rest).await.unwrap().unwrap();
        let sent = (0..back.place.next).map(|at| format!("[{at}]{}", "x".repeat(16 << 10)));
        let chunks: String = sent.map(|text| format!("{:x}\r\n{text}\r\n", text.len())).collect();
        assert!(read == format!("{chunks}b\r\nand the end\r\n"), "{} bytes", read.len());
    }

    /// S13.12: that no more comes is seen behind the last frame, also where both came at once.
    #[tokio::test]
    async fn the_end_is_seen_behind_the_last_frame() {
        let tail = Arc::new(Tail::default());
        drop(tail.join());
        let (mut client, outlet) = connect().await;
        let attends = attend(&tail, outlet, FIRST);
        tail.show(frame("first", None));
        read_until(&mut client, "first").await;
        // There is one thread: the fan looks after both.
        tail.show(frame("last", None));
        tail.close();
        // Not with the next sign of life.
        let back = timeout(KEEP_ALIVE / 3, attends).await.unwrap().unwrap().unwrap();
        assert_eq!((back.why, back.place.next), (FanEnd::Look, 2));
    }

    /// S13.45: behind the end of a body nothing is written, though its reader has not left yet; what the client had not taken is before it.
    #[tokio::test]
    async fn what_has_ended_is_written_to_no_more() {
        let tail = Arc::new(Tail::default());
        drop(tail.join());
        let (mut client, outlet) = connect().await;
        let attends = attend(&tail, outlet.clone(), FIRST);
        tail.show(frame("seen", None));
        assert_eq!(read_until(&mut client, "seen\r\n").await, "4\r\nseen\r\n");
        timeout(WITHIN, outlet.end()).await.unwrap().unwrap();
        tail.show(frame("secret", None));
        let back = timeout(WITHIN, attends).await.unwrap().unwrap().unwrap();
        assert_eq!(back.why, FanEnd::Look);
        drop(outlet);
        let mut rest = String::new();
        timeout(WITHIN, client.read_to_string(&mut rest)).await.unwrap().unwrap();
        assert_eq!(rest, "0\r\n\r\n");
    }

    /// S13.7: a reader for which nothing came for its time comes back to show that it is there.
    #[tokio::test(start_paused = true)]
    async fn a_quiet_reader_comes_back() {
        let tail = Arc::new(Tail::default());
        drop(tail.join());
        let begun = Instant::now();
        let back = attend(&tail, connect().await.1, FIRST).await.unwrap().unwrap();
        assert_eq!((back.why, begun.elapsed()), (FanEnd::Quiet, KEEP_ALIVE));
    }

    /// The task ends with the last reader, and a reader that comes later has another one.
    #[tokio::test]
    async fn the_fan_ends_with_its_last_reader() {
        let tail = Arc::new(Tail::default());
        drop(tail.join());
        for _ in 0..2 {
            let ((mut client, outlet), next) = (connect().await, tail.join().next);
            let attends = attend(&tail, outlet, FramePlace { next, sent: None });
            tail.show(frame("here", None));
            read_until(&mut client, "here").await;
            attends.abort();
            timeout(WITHIN, client.read_u8()).await.unwrap().unwrap_err();
            let mut looks = tokio::time::interval(Duration::from_millis(1));
            let ended = async {
                while tail.fan.lock().is_some() {
                    looks.tick().await;
                }
            };
            timeout(WITHIN, ended).await.unwrap();
        }
    }
}
