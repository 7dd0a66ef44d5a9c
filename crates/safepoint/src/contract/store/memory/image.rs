//! A whole session of the store in memory, given and taken.

use std::sync::Arc;

use crate::value::ids::SessionId;

use super::{
    super::{Chain, Error, ImageStamp, NewSession, OverImage, SessionImage, SessionRow},
    MemoryState,
    items::ItemRows,
    session::{Session, Side},
};

impl MemoryState {
    pub(super) fn image(&self, id: &SessionId) -> Result<SessionImage, Error> {
        let row = self.row(id)?;
        if let Some(holder) = row.holder {
            return Err(Error::Held(id.clone(), Box::new(holder)));
        }
        let session = self.session(id)?;
        let side = &session.side;
        Ok(SessionImage {
            row,
            pool: session.pool.clone(),
            priority: session.priority,
            changes: session.notice(),
            is_inbox_closed: side.is_inbox_closed,
            records: session.records.iter().map(|(record, _)| record.clone()).collect(),
            items: session.items.all().to_vec(),
            stops: side.stops.clone(),
            approvals: side.approvals.clone(),
            tenures: session.tenures.clone(),
            due: session.due,
            tries: session.tries,
            is_at_rest: session.is_at_rest,
            parked: session.parked.clone(),
        })
    }

    pub(super) fn restore(&mut self, image: SessionImage, over: &OverImage) -> Result<SessionRow, Error> {
        image.check()?;
        let id = image.row.id.clone();
        match over {
            OverImage::Nothing if self.sessions.contains_key(&id) => return Err(Error::SessionExists(id)),
            OverImage::Nothing => {}
            OverImage::Unchanged(stamp) => self.must_be(&id, stamp)?,
        }
        self.forget(&id);
        let (due, updated, row) = (image.due, image.row.updated, image.row.clone());
        self.epoch = self.epoch.max(row.epoch);
        self.newest.insert((updated, id.clone()));
        self.sessions.insert(id.clone(), Session::from_image(image));
        self.make_due(&id, due);
        Ok(row)
    }

    fn must_be(&self, id: &SessionId, stamp: &ImageStamp) -> Result<(), Error> {
        if self.image(id)?.stamp() == *stamp { Ok(()) } else { Err(Error::SessionExists(id.clone())) }
    }
}

impl Session {
    fn from_image(image: SessionImage) -> Self {
        let SessionRow { id, created, updated, label, title, setup, chain, epoch, .. } = image.row;
        let new = NewSession { pool: image.pool, priority: image.priority, ..NewSession::of(id.clone()) };
        let mut session = Self::new(&new, created);
        let mut before = Chain::of(&id);
        for (position, record) in (0..).zip(image.records) {
            before = before.then(position, &record);
            session.records.push((record, before));
        }
        let side = Side {
            label,
            title,
            setup,
            is_inbox_closed: image.is_inbox_closed,
            inbox_changes: image.changes.items,
            stops: image.stops,
            open: Side::open_of(&image.approvals),
            approvals: image.approvals,
            decisions: image.changes.decisions,
        };
        (session.updated, session.chain, session.epoch) = (updated, chain, epoch);
        (session.tries, session.is_at_rest, session.parked) = (image.tries, image.is_at_rest, image.parked);
        (session.items, session.tenures) = (ItemRows::of(image.items), image.tenures);
        session.side = Arc::new(side);
        session
    }
}
