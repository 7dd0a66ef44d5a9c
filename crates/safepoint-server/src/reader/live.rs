//! A reader among the frames of an open session.

use std::pin::{Pin, pin};

use bytes::Bytes;
use futures_util::future::{Either, select};
use serde_json::json;
use tokio::{
    sync::watch,
    time::{Instant, Sleep, sleep_until},
};

use super::{Reader, ReaderStage, Until};
use crate::{
    fan::{Fan, FanEnd, FramePlace, Outlet, PIECE},
    host::shown::Seat,
    lines::{FoundFrames, Frame},
    load::Load,
    sse::KEEP_ALIVE,
};

/// A reader among the frames. It keeps the session's events, and not the session.
pub(super) struct LiveReader {
    next: u64,
    grown: watch::Receiver<u64>,
    seat: Seat,
    /// When it last had frames.
    read: Instant,
    /// When it is looked whether it must show that it is there. It is moved once it is over: no timer is made for a frame.
    alarm: Pin<Box<Sleep>>,
}

impl LiveReader {
    pub(super) fn of(seat: Seat) -> Self {
        let read = Instant::now();
        let alarm = Box::pin(sleep_until(read + KEEP_ALIVE));
        Self { next: seat.next, grown: seat.tail.grown(), seat, read, alarm }
    }

    /// Waits until there may be more frames, or it is this time, or there were no frames for as long as [`KEEP_ALIVE`].
    ///
    /// # Cancel safety
    /// Nothing is lost.
    async fn wait(&mut self, known_at: Option<Instant>) -> WaitEnd {
        if let Some(soon) = known_at.filter(|at| *at < self.alarm.deadline()) {
            self.alarm.as_mut().reset(soon);
        }
        loop {
            // The frames first: they show that the stream is there. A change stays one until the next look, and a timer over until it is
            // moved.
            if let Either::Left(_grown) = select(pin!(self.grown.changed()), self.alarm.as_mut()).await {
                return WaitEnd::Grown;
            }
            if known_at.is_some_and(|at| at <= Instant::now()) {
                return WaitEnd::Known;
            }
            let next = self.read + KEEP_ALIVE;
            if next <= Instant::now() {
                self.read = Instant::now();
                self.alarm.as_mut().reset(self.read + KEEP_ALIVE);
                return WaitEnd::Quiet;
            }
            self.alarm.as_mut().reset(next);
        }
    }
}

/// How a wait among the frames ended. Exhaustive: there may be more, it is the time that was named, or nothing came for long.
enum WaitEnd {
    Grown,
    Known,
    Quiet,
}

impl Reader {
    /// Reads what comes next among them.
    pub(super) async fn live(&mut self) {
        let known_at = self.known_at;
        let ReaderStage::Live(live) = &mut self.at else { return };
        // First: what comes after the look is a change.
        live.grown.mark_unchanged();
        match live.seat.tail.look(live.next, PIECE) {
            FoundFrames::Frames(frames) => {
                live.next += frames.len() as u64;
                self.send(frames).await;
                // What is not shown to it shows no reader that its stream is there.
                if let (ReaderStage::Live(live), false) = (&mut self.at, self.piece.is_empty()) {
                    live.read = Instant::now();
                }
            }
            FoundFrames::Gone { missed } => {
                Load::count(&self.load.missed);
                let data = json!({"type": "missed", "count": missed});
                self.say("missed", &data);
                self.at = ReaderStage::Behind;
            }
            FoundFrames::Nothing => match (self.until, self.direct.outlet().cloned()) {
                // It shows all that comes, as every reader that has no end.
                (Until::Never, Some(outlet)) => self.attend(&outlet).await,
                _ => match live.wait(known_at).await {
                    WaitEnd::Grown => {}
                    WaitEnd::Known => self.end_if_at_rest().await,
                    WaitEnd::Quiet => self.keep_alive().await,
                },
            },
            FoundFrames::Closed => self.leave().await,
        }
    }

    /// Has the fan write what comes.
    async fn attend(&mut self, outlet: &Outlet) {
        let ReaderStage::Live(live) = &mut self.at else { return };
        let place = FramePlace { next: live.next, sent: self.sent };
        let Some(back) = Fan::attend(&live.seat.tail, outlet, place, live.read).await else {
            // How much it wrote is not known: the client comes back with the last id that it has.
            self.at = ReaderStage::Over;
            return;
        };
        (live.next, live.read, self.sent) = (back.place.next, back.read, back.place.sent);
        match back.why {
            FanEnd::Look => {}
            FanEnd::Rest => self.piece.push(Frame::unrecorded(Bytes::new())),
            FanEnd::Quiet => {
                live.read = Instant::now();
                self.keep_alive().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::lines::Tail;

    /// S13.7: a live stream shows that it is there once nothing came for its time, counted from its last frame.
    #[tokio::test(start_paused = true)]
    async fn a_live_stream_shows_that_it_is_there() {
        let tail = Arc::new(Tail::default());
        let joined = tail.join();
        let seat =
            Seat { tail: Arc::clone(&tail), next: joined.next, recorded: None, partial: joined.partial };
        let mut live = LiveReader::of(seat);
        let begun = Instant::now();
        assert!(matches!(live.wait(None).await, WaitEnd::Quiet));
        assert_eq!(begun.elapsed(), KEEP_ALIVE);
        tokio::time::advance(KEEP_ALIVE / 2).await;
        tail.show(Frame::unrecorded(Bytes::from_static(b"data: 1\n\n")));
        assert!(matches!(live.wait(None).await, WaitEnd::Grown));
        live.read = Instant::now();
        assert!(matches!(live.wait(None).await, WaitEnd::Quiet));
        assert_eq!(live.read - begun, KEEP_ALIVE * 5 / 2);
    }
}
