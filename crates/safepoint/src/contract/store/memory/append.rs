//! What the holder writes: all of it, or nothing.

use std::sync::Arc;

use jiff::Timestamp;

use crate::value::ids::ApprovalId;

use super::{
    super::{
        Appended, ApprovalClose, ApprovalRow, ApprovalState, CloseResult, Error, ItemState, NewApproval,
        Write, truncate_to_micros,
    },
    items::Moved,
    session::{Session, Side},
};

impl Session {
    pub(super) fn append(&mut self, writes: Vec<Write>, now: Timestamp) -> Result<Appended, Error> {
        let before = (self.records.len(), self.chain, Arc::clone(&self.side));
        let counted = (self.tries, self.is_at_rest);
        let (mut moved, mut decided) = (Vec::new(), Vec::new());
        for write in writes {
            if let Err(error) = self.write(write, now, &mut moved, &mut decided) {
                self.records.truncate(before.0);
                (self.chain, self.side) = (before.1, before.2);
                (self.tries, self.is_at_rest) = counted;
                self.items.undo(moved);
                return Err(error);
            }
        }
        let next = self.records.len() as u64;
        Ok(Appended { first: before.0 as u64, next, chain: self.chain, decided })
    }

    fn write(
        &mut self,
        write: Write,
        now: Timestamp,
        moved: &mut Vec<Moved>,
        decided: &mut Vec<ApprovalId>,
    ) -> Result<(), Error> {
        use ItemState::{Removed, Taken, Waiting};
        let mut shift = |number, from: &[ItemState], to| {
            moved.push(self.items.shift(number, from, to)?);
            Ok(())
        };
        match write {
            Write::TakeItem(number) => return shift(number, &[Waiting], Taken),
            Write::PutBackItem(number) => return shift(number, &[Taken], Waiting),
            Write::RemoveItem(number) => return shift(number, &[Waiting, Taken], Removed),
            Write::AtWork => self.is_at_rest = false,
            Write::AtRest => (self.tries, self.is_at_rest) = (0, true),
            Write::Record(record) => {
                self.chain = self.chain.then(self.records.len() as u64, &record);
                self.records.push((record, self.chain));
            }
            other => return Arc::make_mut(&mut self.side).write(other, now, decided),
        }
        Ok(())
    }
}

impl Side {
    fn write(&mut self, write: Write, now: Timestamp, decided: &mut Vec<ApprovalId>) -> Result<(), Error> {
        match write {
            Write::Label(label) => self.label = label,
            Write::Title(title) => self.title = title,
            Write::Setup(setup) => self.setup = setup,
            Write::CloseInbox => self.is_inbox_closed = true,
            Write::OpenInbox => self.is_inbox_closed = false,
            Write::StopSeen(number) => self.stop_seen(number)?,
            Write::OpenApproval(asked) => self.open(asked, now)?,
            Write::CloseApproval(id, closed) => {
                if self.close(&id, closed)? == CloseResult::TooLate {
                    decided.push(id);
                }
            }
            // The session's own, and its items'.
            Write::Record(_)
            | Write::AtWork
            | Write::AtRest
            | Write::TakeItem(_)
            | Write::PutBackItem(_)
            | Write::RemoveItem(_) => {}
        }
        Ok(())
    }

    fn stop_seen(&mut self, number: u64) -> Result<(), Error> {
        let stop = self.stops.iter_mut().find(|stop| stop.number == number);
        stop.ok_or(Error::NoStop(number))?.seen = true;
        Ok(())
    }

    fn open(&mut self, asked: NewApproval, at: Timestamp) -> Result<(), Error> {
        if self.approvals.iter().any(|row| row.asked.id == asked.id) {
            return Err(Error::ApprovalExists(asked.id));
        }
        let asked = NewApproval { expires: truncate_to_micros(asked.expires), ..asked };
        self.open.insert(self.approvals.len());
        self.approvals.push(ApprovalRow { asked, at, state: ApprovalState::Open });
        Ok(())
    }

    fn close(&mut self, id: &ApprovalId, closed: ApprovalClose) -> Result<CloseResult, Error> {
        self.change(id, |row| row.close(closed)).ok_or_else(|| Error::NoApproval(id.clone()))?
    }
}
