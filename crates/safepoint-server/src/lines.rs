//! The events of a session as frames of a stream (SSE): encoded once, and kept for its readers within a bound.
//!
//! **Invariants**: only what is recorded has an id; a reader holds a number and no frame; frames are dropped oldest first;
//! without a reader there is none.

mod about;

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
};

use bytes::Bytes;
use safepoint::{
    event::{EventKind, EventLine, Fact},
    ids::TurnId,
    raw::{
        JournalFact,
        line::{LineText, into_parts},
    },
    session::SessionEvent,
};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json};
use tokio::sync::watch;

pub(crate) use self::about::{FrameSubject, turn_of};
use crate::fan::Fan;

/// The frames that are kept for readers.
const MOST_FRAMES: usize = 8_192;
/// Their bytes.
const MOST_BYTES: usize = 8 << 20;
/// The bytes of a message that streams, for a reader that joins in its middle.
const MOST_PARTIAL: usize = 1 << 20;

/// The place of an event in all that was recorded of its session: the owner, and the position in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventPlace {
    pub(crate) epoch: u64,
    pub(crate) position: u64,
}

impl EventPlace {
    /// The id of an event, as a client sends it back.
    pub(crate) fn parse(id: &str) -> Option<Self> {
        let (epoch, position) = id.split_once('.')?;
        Some(Self { epoch: epoch.parse().ok()?, position: position.parse().ok()? })
    }
}

impl std::fmt::Display for EventPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.epoch, self.position)
    }
}

/// One event, encoded.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) bytes: Bytes,
    /// Where it is recorded; none: it is not.
    pub(crate) position: Option<u64>,
    pub(crate) ends: Ends,
    pub(crate) about: FrameSubject,
}

impl Frame {
    /// What is not recorded, is about the session, and ends nothing.
    pub(crate) fn unrecorded(bytes: Bytes) -> Self {
        Self { bytes, position: None, ends: Ends::Nothing, about: FrameSubject::Session }
    }

    /// The line of a record.
    pub(crate) fn recorded(line: EventLine, place: EventPlace, fact: Option<&JournalFact>) -> Self {
        Self {
            bytes: frame_of(line, Some(place)),
            position: Some(place.position),
            ends: Ends::of(fact),
            about: FrameSubject::of(fact),
        }
    }

    /// It is about this.
    pub(crate) fn about(self, about: FrameSubject) -> Self {
        Self { about, ..self }
    }

    /// Whether it is new to a reader that has the records up to `sent`, which has it from here on: each record is sent once (S13.7).
    pub(crate) fn is_new(&self, sent: &mut Option<u64>) -> bool {
        let Some(position) = self.position else { return true };
        let is_new = sent.is_none_or(|sent| sent < position);
        if is_new {
            *sent = Some(position);
        }
        is_new
    }

    /// The event: its name and its JSON. None: it is a comment, which keeps the stream alive.
    pub(crate) fn event(&self) -> Option<(&str, &str)> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        let (_, event) = text.split_once("event: ")?;
        event.trim_end().split_once("\ndata: ")
    }
}

/// What a frame ends, for the readers of one item or one turn. Exhaustive: an item of this number is at rest, a turn has ended,
/// nothing of it is alive, or nothing ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Nothing,
    Item(u64),
    Turn(TurnId),
    Quiet(TurnId),
}

impl Ends {
    /// What a record ends.
    pub(crate) fn of(fact: Option<&JournalFact>) -> Self {
        match fact {
            Some(JournalFact::Ended { turn, .. }) => Self::Turn(*turn),
            Some(JournalFact::Quiet { turn, .. }) => Self::Quiet(*turn),
            _ => Self::Nothing,
        }
    }
}

/// A frame of this name with this data.
pub(crate) fn frame(id: Option<EventPlace>, event: &str, data: &impl std::fmt::Display) -> Bytes {
    match id {
        Some(id) => format!("id: {id}\nevent: {event}\ndata: {data}\n\n").into(),
        None => format!("event: {event}\ndata: {data}\n\n").into(),
    }
}

/// The line of an event as a frame.
pub(crate) fn frame_of(line: EventLine, id: Option<EventPlace>) -> Bytes {
    let kind = line.kind().to_owned();
    frame(id, &kind, &text_of(line))
}

/// The JSON of a line. Its number among the lines of one encoder is none of a stream, which more than one encoder makes.
pub(crate) fn text_of(line: EventLine) -> String {
    let (fields, texts) = into_parts(line);
    serde_json::to_string(&Unnumbered { fields, texts }).expect("a line is JSON")
}

struct Unnumbered {
    fields: Value,
    texts: Vec<(&'static str, LineText)>,
}

impl Serialize for Unnumbered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.fields.as_object().into_iter().flatten().filter(|(name, _)| *name != "seq");
        let mut line = serializer.serialize_map(None)?;
        for (name, value) in fields {
            line.serialize_entry(name, value)?;
        }
        for (name, text) in &self.texts {
            line.serialize_entry(name, text)?;
        }
        line.end()
    }
}

/// The newest frames of one session.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// Held for one frame, or for a look at a few; no other lock is taken under it.
    ring: Mutex<Ring>,
    /// Changes with each frame, and when no more come.
    grown: watch::Sender<u64>,
    /// What writes the frames to many readers at once.
    pub(crate) fan: Fan,
}

#[derive(Debug, Default)]
struct Ring {
    frames: VecDeque<Frame>,
    /// The number of the first of them.
    first: u64,
    bytes: usize,
    readers: usize,
    is_closed: bool,
    partial: Partial,
}

/// The message that streams.
#[derive(Clone, Debug, Default)]
struct Partial {
    turn: Option<TurnId>,
    round: u32,
    text: String,
}

/// Where a reader begins: behind the frames that were made before.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) next: u64,
    /// The message that streams, as far as it is.
    pub(crate) partial: Option<Frame>,
}

/// What a reader finds. Exhaustive: frames, that those it wants are gone, nothing yet, or that no more come.
#[derive(Debug)]
pub(crate) enum FoundFrames {
    Frames(Vec<Frame>),
    Gone { missed: u64 },
    Nothing,
    Closed,
}

impl Tail {
    /// Follows the message that streams.
    pub(crate) fn follow(&self, event: &SessionEvent) {
        self.lock().partial.follow(event);
    }

    /// Whether a frame is wanted.
    pub(crate) fn is_read(&self) -> bool {
        self.lock().readers > 0
    }

    /// Shows a frame to the readers.
    pub(crate) fn show(&self, frame: Frame) {
        let mut ring = self.lock();
        if ring.readers == 0 {
            return;
        }
        ring.push(frame);
        let next = ring.next();
        drop(ring);
        self.grown.send_replace(next);
    }

    /// No more frames come: the session is closed here.
    pub(crate) fn close(&self) {
        let mut ring = self.lock();
        ring.is_closed = true;
        let next = ring.next();
        drop(ring);
        self.grown.send_replace(next);
    }

    /// Another reader.
    pub(crate) fn join(&self) -> Joined {
        let mut ring = self.lock();
        ring.readers += 1;
        Joined { next: ring.next(), partial: ring.partial.frame() }
    }

    /// A reader left.
    pub(crate) fn leave(&self) {
        let mut ring = self.lock();
        ring.readers -= 1;
        if ring.readers == 0 {
            ring.clear();
        }
    }

    /// The frames from `next` on, at most so many bytes of them but at least one.
    pub(crate) fn look(&self, next: u64, most: usize) -> FoundFrames {
        let ring = self.lock();
        let Some(from) = next.checked_sub(ring.first) else {
            return FoundFrames::Gone { missed: ring.first - next };
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let ready = ring.frames.range(from.min(ring.frames.len())..).take_while(|frame| {
            let fits = bytes < most;
            bytes += frame.bytes.len();
            fits
        });
        let ready: Vec<Frame> = ready.cloned().collect();
        match ready {
            none if none.is_empty() && ring.is_closed => FoundFrames::Closed,
            none if none.is_empty() => FoundFrames::Nothing,
            ready => FoundFrames::Frames(ready),
        }
    }

    /// What changes with each frame.
    pub(crate) fn grown(&self) -> watch::Receiver<u64> {
        self.grown.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().expect("no code under this lock panics")
    }
}

impl Ring {
    fn next(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    fn push(&mut self, frame: Frame) {
        self.bytes += frame.bytes.len();
        self.frames.push_back(frame);
        while self.frames.len() > MOST_FRAMES || self.bytes > MOST_BYTES && self.frames.len() > 1 {
            self.bytes -= self.frames.pop_front().map_or(0, |frame| frame.bytes.len());
            self.first += 1;
        }
    }

    fn clear(&mut self) {
        self.first = self.next();
        self.frames = VecDeque::new();
        self.bytes = 0;
    }
}

impl Partial {
    fn follow(&mut self, event: &SessionEvent) {
        let SessionEvent::Run { turn, event } = event else { return };
        match &event.kind {
            EventKind::Text(text) if self.text.len() + text.len() <= MOST_PARTIAL => {
                self.turn = Some(*turn);
                self.text.push_str(text);
            }
            EventKind::Fact(fact) => match **fact {
                Fact::ModelStarted { round } => *self = Self { round, ..Self::default() },
                Fact::ModelEnded { .. } | Fact::Settled { .. } => *self = Self::default(),
                _ => {}
            },
            _ => {}
        }
    }

    fn frame(&self) -> Option<Frame> {
        let turn = self.turn?;
        let data: Value =
            json!({"type": "partial", "turn": turn.number(), "round": self.round, "text": self.text});
        Some(Frame::unrecorded(frame(None, "partial", &data)).about(FrameSubject::Turn(turn)))
    }
}
