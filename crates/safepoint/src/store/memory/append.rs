//! What the holder writes: all of it, or nothing.

use std::sync::Arc;

use jiff::Timestamp;

use crate::ids::ApprovalId;

use super::{
    super::{
        Appended, ApprovalRow, ApprovalState, Closed, Closing, Error, ItemState, NewApproval, Write, kept,
    },
    session::{Door, Session, Side},
};

impl Session {
    pub(super) fn append(&mut self, writes: Vec<Write>, now: Timestamp) -> Result<Appended, Error> {
        let before = (self.records.len(), self.chain, Arc::clone(&self.side));
        let said = self.said.clone();
        let mut decided = Vec::new();
        for write in writes {
            if let Err(error) = self.write(write, now, &mut decided) {
                self.records.truncate(before.0);
                (self.chain, self.side) = (before.1, before.2);
                self.said = said;
                return Err(error);
            }
        }
        let next = self.records.len() as u64;
        Ok(Appended { first: before.0 as u64, next, chain: self.chain, decided })
    }

    fn write(&mut self, write: Write, now: Timestamp, decided: &mut Vec<ApprovalId>) -> Result<(), Error> {
        match write {
            Write::Record(record) => {
                self.chain = self.chain.then(self.records.len() as u64, &record);
                self.records.push((record, self.chain));
            }
            Write::Label(label) => self.said.label = label,
            Write::Title(title) => self.said.title = title,
            Write::Setup(setup) => self.said.setup = setup,
            Write::TakeItem(_)
            | Write::PutBackItem(_)
            | Write::RemoveItem(_)
            | Write::CloseInbox
            | Write::OpenInbox
            | Write::StopSeen(_)
            | Write::OpenApproval(_)
            | Write::CloseApproval(..) => return Arc::make_mut(&mut self.side).write(write, now, decided),
        }
        Ok(())
    }
}

impl Side {
    fn write(&mut self, write: Write, now: Timestamp, decided: &mut Vec<ApprovalId>) -> Result<(), Error> {
        match write {
            Write::TakeItem(number) => self.move_item(number, &[ItemState::Waiting], ItemState::Taken)?,
            Write::PutBackItem(number) => self.move_item(number, &[ItemState::Taken], ItemState::Waiting)?,
            Write::RemoveItem(number) => {
                self.move_item(number, &[ItemState::Waiting, ItemState::Taken], ItemState::Removed)?;
            }
            Write::CloseInbox => self.inbox = Door::Closed,
            Write::OpenInbox => self.inbox = Door::Open,
            Write::StopSeen(number) => self.stop_seen(number)?,
            Write::OpenApproval(asked) => self.open(asked, now)?,
            Write::CloseApproval(id, closed) => {
                if self.close(&id, closed)? == Closing::TooLate {
                    decided.push(id);
                }
            }
            Write::Record(_) | Write::Label(_) | Write::Title(_) | Write::Setup(_) => {}
        }
        Ok(())
    }

    fn move_item(&mut self, number: u64, from: &[ItemState], to: ItemState) -> Result<(), Error> {
        let item = self.items.iter_mut().find(|item| item.number == number && from.contains(&item.state));
        let item = item.ok_or(Error::ItemElsewhere(number))?;
        item.state = to;
        if to == ItemState::Removed {
            item.bytes = Vec::new();
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
        let asked = NewApproval { expires: kept(asked.expires), ..asked };
        self.approvals.push(ApprovalRow { asked, at, state: ApprovalState::Open });
        Ok(())
    }

    fn close(&mut self, id: &ApprovalId, closed: Closed) -> Result<Closing, Error> {
        let row = self.approvals.iter_mut().find(|row| row.asked.id == *id);
        let row = row.ok_or_else(|| Error::NoApproval(id.clone()))?;
        row.close(closed)
    }
}
