//! An append as it is asked: where it begins, in which chain it ends, and what it writes.

use std::borrow::Cow;

use jiff::Timestamp;
use safepoint::{
    raw::store::{Appended, ApprovalClose, Cause, Chain, Lease, NewApproval, Record, Write},
    store::Error,
};

use super::{
    column::{int, stored, stored_time},
    seats::JournalEnd,
};

/// Where an append begins and ends.
#[derive(Clone, Debug)]
pub(super) struct AppendPlan {
    pub(super) from: JournalEnd,
    pub(super) to: JournalEnd,
    /// The checksum of each record.
    pub(super) chains: Vec<Chain>,
    pub(super) is_news: bool,
}

impl AppendPlan {
    /// Plans these writes behind `from`. `mark` is the append's own.
    pub(super) fn new(writes: &[Write], from: JournalEnd, mark: i64) -> Self {
        let (mut head, mut chain, mut chains) = (from.head, from.chain, Vec::new());
        for record in records(writes) {
            chain = chain.then(head, record);
            head += 1;
            chains.push(chain);
        }
        let to = JournalEnd { head, chain, serial: from.serial + 1, mark };
        Self { from, to, chains, is_news: writes.iter().any(Write::is_news) }
    }

    pub(super) fn appended(&self, decided: Vec<safepoint::ids::ApprovalId>) -> Appended {
        Appended { first: self.from.head, next: self.to.head, chain: self.to.chain, decided }
    }

    /// Whether the row shows that it was written, and nothing by this lease after it.
    pub(super) fn is_written(&self, end: &JournalEnd) -> bool {
        end.serial == self.to.serial && end.mark == self.to.mark && end.chain == self.to.chain
    }

    /// Whether the row knows less than this handle: what was acknowledged is gone.
    pub(super) fn is_beyond(&self, end: &JournalEnd) -> bool {
        end.serial < self.from.serial || (end.serial == self.from.serial && end.mark != self.from.mark)
    }
}

pub(super) fn records(writes: &[Write]) -> impl Iterator<Item = &Record> {
    writes.iter().filter_map(|write| match write {
        Write::Record(record) => Some(record),
        _ => None,
    })
}

/// How many bytes they write, about.
pub(super) fn size(writes: &[Write]) -> usize {
    /// What a row needs beside its content.
    const ROW: usize = 128;
    writes.iter().map(|write| content(write).len() + ROW).sum()
}

fn content(write: &Write) -> &[u8] {
    match write {
        Write::Record(record) => &record.bytes,
        Write::OpenApproval(asked) => &asked.bytes,
        Write::Label(text) | Write::Title(text) | Write::Setup(text) => text.as_bytes(),
        Write::TakeItem(_)
        | Write::PutBackItem(_)
        | Write::RemoveItem(_)
        | Write::CloseInbox
        | Write::OpenInbox
        | Write::StopSeen(_)
        | Write::CloseApproval(..)
        | Write::AtWork
        | Write::AtRest => &[],
    }
}

/// Records as columns.
#[derive(Default)]
pub(super) struct RecordColumns<'a> {
    /// Which append of a statement each is of, counted from 1.
    pub(super) of: Vec<i64>,
    pub(super) positions: Vec<i64>,
    pub(super) paths: Vec<Cow<'a, str>>,
    pub(super) kinds: Vec<Cow<'a, str>>,
    pub(super) versions: Vec<i64>,
    pub(super) bytes: Vec<&'a [u8]>,
    pub(super) chains: Vec<Vec<u8>>,
}

impl<'a> RecordColumns<'a> {
    pub(super) fn add(
        &mut self,
        of: usize,
        records: impl Iterator<Item = &'a Record>,
        plan: (u64, &[Chain]),
    ) {
        for ((position, record), chain) in (plan.0..).zip(records).zip(plan.1) {
            self.of.push(int(of as u64));
            self.positions.push(int(position));
            self.paths.push(stored(&record.path));
            self.kinds.push(stored(&record.kind));
            self.versions.push(i64::from(record.version));
            self.bytes.push(&record.bytes);
            self.chains.push(chain.as_bytes().to_vec());
        }
    }
}

/// Other writes as columns: what, a number, and a word.
#[derive(Default)]
pub(super) struct WriteColumns<'a> {
    pub(super) ops: Vec<&'static str>,
    pub(super) numbers: Vec<i64>,
    pub(super) words: Vec<Option<Cow<'a, str>>>,
    pub(super) asked: QuestionColumns<'a>,
    /// Each write, by its place.
    pub(super) writes: Vec<&'a Write>,
}

/// Approvals that are asked for, as columns.
#[derive(Default)]
pub(super) struct QuestionColumns<'a> {
    pub(super) ids: Vec<Cow<'a, str>>,
    pub(super) runs: Vec<Cow<'a, str>>,
    pub(super) calls: Vec<Cow<'a, str>>,
    pub(super) digests: Vec<Cow<'a, str>>,
    pub(super) expires: Vec<Timestamp>,
    pub(super) bytes: Vec<&'a [u8]>,
}

impl<'a> WriteColumns<'a> {
    pub(super) fn of(writes: &'a [Write]) -> Self {
        let mut columns = Self::default();
        for write in writes {
            columns.add(write);
        }
        columns
    }

    fn add(&mut self, write: &'a Write) {
        let (op, number, word) = match write {
            Write::Record(_) => return,
            Write::TakeItem(number) => ("take", int(*number), None),
            Write::PutBackItem(number) => ("put back", int(*number), None),
            Write::RemoveItem(number) => ("remove", int(*number), None),
            Write::CloseInbox => ("close", 0, None),
            Write::OpenInbox => ("open", 0, None),
            Write::StopSeen(number) => ("seen", int(*number), None),
            Write::OpenApproval(asked) => ("ask", self.asked.add(asked), None),
            Write::CloseApproval(id, closed) => ("answer", becomes(*closed), Some(stored(id.as_str()))),
            Write::Label(text) => ("label", 0, Some(stored(text))),
            Write::Title(text) => ("title", 0, Some(stored(text))),
            Write::Setup(text) => ("setup", 0, Some(stored(text))),
            Write::AtWork => ("work", 0, None),
            Write::AtRest => ("rest", 0, None),
        };
        self.ops.push(op);
        self.numbers.push(number);
        self.words.push(word);
        self.writes.push(write);
    }

    /// The error of a write that was refused.
    pub(super) fn refusal(&self, code: &str, place: usize) -> Error {
        match place.checked_sub(1).and_then(|place| self.writes.get(place)) {
            Some(Write::TakeItem(number) | Write::PutBackItem(number) | Write::RemoveItem(number)) => {
                Error::ItemElsewhere(*number)
            }
            Some(Write::StopSeen(number)) => Error::NoStop(*number),
            Some(Write::OpenApproval(asked)) => Error::ApprovalExists(asked.id.clone()),
            Some(Write::CloseApproval(id, _)) => Error::NoApproval(id.clone()),
            Some(_) | None => Error::Failed(Cause::new(format!("write {place} was refused with {code}"))),
        }
    }
}

impl<'a> QuestionColumns<'a> {
    /// Its place, counted from 1.
    fn add(&mut self, asked: &'a NewApproval) -> i64 {
        self.ids.push(stored(asked.id.as_str()));
        self.runs.push(stored(asked.run.as_str()));
        self.calls.push(stored(asked.call.as_str()));
        self.digests.push(stored(&asked.digest));
        self.expires.push(stored_time(asked.expires));
        self.bytes.push(&asked.bytes);
        int(self.ids.len() as u64)
    }
}

/// The state that a close leads to, as it is stored.
fn becomes(closed: ApprovalClose) -> i64 {
    match closed {
        ApprovalClose::Used => 2,
        ApprovalClose::Withdrawn => 3,
        ApprovalClose::Expired => 4,
    }
}

/// What the lease of an append is over.
pub(super) fn names(lease: &Lease) -> (Cow<'_, str>, Cow<'_, str>) {
    (stored(lease.session().as_str()), stored(lease.node().id().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record { path: String::new(), kind: String::new(), version: 0, bytes: vec![1, 2] }
    }

    fn end(serial: i64, mark: i64) -> JournalEnd {
        JournalEnd { head: 0, chain: Chain::of(&"a".into()), serial, mark }
    }

    /// S7.51, S7.53: what the journal's end says of an append that begins behind the third one, whose mark is 9.
    #[test]
    fn the_end_of_a_journal_tells_what_became_of_an_append() {
        let plan = AppendPlan::new(&[Write::Record(record())], end(3, 9), 5);
        assert!(plan.is_written(&plan.to) && !plan.is_beyond(&plan.to));
        assert!(
            !plan.is_written(&plan.from) && !plan.is_beyond(&plan.from),
            "it was not written, and may be"
        );
        assert!(plan.is_beyond(&end(2, 8)), "the end was lost");
        assert!(plan.is_beyond(&end(3, 8)), "the end was lost, and another one written in its place");
        let others = end(4, 6);
        assert!(!plan.is_written(&others) && !plan.is_beyond(&others), "another handle has written");
    }
}
