//! Appends: asked once, and once more where an answer was lost, until it is known whether they were written (S7.51).
//!
//! An append says where it begins, by a count and a mark of the one before it, and leaves another mark. Whatever try of it comes
//! first, the others find another beginning and change nothing.

use std::time::{Duration, Instant};

use safepoint::{
    raw::store::{Appended, Cause, Durability, Lease, Write},
    store::Error,
};
use tokio::sync::oneshot;

use super::{
    column::{int, text},
    core::{Core, Values, no_row},
    failure::Failure,
    limits,
    plan::{AppendPlan, RecordColumns, WriteColumns, names, records, size},
    seats::{FoundSeat, JournalEnd, SEAT},
    tries::{Again, Tries},
    worker::tell,
};

/// An append that waits for its answer.
#[derive(Debug)]
pub(super) struct AppendJob {
    pub(super) lease: Lease,
    pub(super) writes: Vec<Write>,
    pub(super) class: Durability,
    /// Until when it is asked again.
    pub(super) until: Instant,
    reply: oneshot::Sender<Result<Appended, Error>>,
}

/// What has become of a try.
enum Tried {
    Done(Appended),
    /// It began somewhere else than where the journal ends.
    Elsewhere,
    /// It began there, and one of its writes cannot be done.
    Refused(Error),
}

/// How long the answer of one try may take, for a small append.
pub(super) const ANSWER: Duration = Duration::from_secs(2);

impl AppendJob {
    pub(super) fn new(
        (lease, writes): (Lease, Vec<Write>),
        class: Durability,
        patience: Duration,
        reply: oneshot::Sender<Result<Appended, Error>>,
    ) -> Self {
        let within = patience.min(lease.node().left().max(ANSWER)) + time_for(size(&writes));
        Self { lease, writes, class, until: Instant::now() + within, reply }
    }

    pub(super) fn answer(self, answer: Result<Appended, Error>) {
        tell(self.reply, answer);
    }

    fn tries(&self) -> Tries {
        Tries::new(Again::Always, self.until).answered_within(ANSWER + time_for(size(&self.writes)))
    }
}

/// What many bytes, and many writes with what each needs beside them, take longer.
pub(super) fn time_for(bytes: usize) -> Duration {
    /// A slow link, and a busy server.
    const A_SECOND: usize = 1 << 20;
    Duration::from_secs((bytes / A_SECOND) as u64)
}

impl Core {
    /// Appends that share a statement, if there are several.
    pub(super) async fn append_all(&self, mut jobs: Vec<AppendJob>) {
        let now = Instant::now();
        let (in_time, late): (Vec<_>, Vec<_>) = jobs.drain(..).partition(|job| job.until > now);
        for job in late {
            let why = "others have been asking for too long; try again later";
            job.answer(Err(Error::Busy(Cause::new(why))));
        }
        if in_time.len() > 1 {
            self.append_shared(in_time).await;
        } else {
            for job in in_time {
                self.append_one(job, None).await;
            }
        }
    }

    /// One append. `lost` is what a try of it was of which the answer was lost.
    pub(super) async fn append_one(&self, job: AppendJob, lost: Option<AppendPlan>) {
        let answer = self.ask_until_known(&job, lost).await;
        if matches!(answer, Err(Error::Fenced { .. } | Error::Buried(_) | Error::NoSession(_))) {
            self.seats.remove(&job.lease);
        }
        job.answer(answer);
    }

    async fn ask_until_known(&self, job: &AppendJob, lost: Option<AppendPlan>) -> Result<Appended, Error> {
        let mut tries = job.tries().after_one(lost.is_some());
        let mark = lost.as_ref().map_or_else(limits::made_up, |plan| plan.to.mark);
        let mut doubt = lost;
        loop {
            let plan = match &doubt {
                Some(plan) => plan.clone(),
                None => match self.end_of(job, &tries).await {
                    Ok(end) => AppendPlan::new(&job.writes, end, mark),
                    Err(failure) => {
                        tries.after(failure).await?;
                        continue;
                    }
                },
            };
            match self.try_append(job, &plan, &tries).await {
                Ok(Tried::Done(appended)) => {
                    self.seats.put(&job.lease, plan.to);
                    return Ok(appended);
                }
                // Where the journal ends is looked at first: no earlier try of it was written.
                Ok(Tried::Refused(error)) => return Err(error),
                Ok(Tried::Elsewhere) => {
                    let judged = self.judge(job, &plan, doubt.is_some()).await;
                    if let Some(appended) = judged.map_err(|error| in_doubt(error, doubt.is_some()))? {
                        return Ok(appended);
                    }
                    // It was not written, and no earlier try of it can be any more.
                    (doubt, tries) = (None, job.tries());
                }
                Err(failure) => {
                    if matches!(failure, Failure::Lost(_)) {
                        doubt = Some(plan);
                    }
                    tries.after(failure).await?;
                }
            }
        }
    }

    /// Where the journal ends, as far as this handle knows, or else as it is stored.
    async fn end_of(&self, job: &AppendJob, tries: &Tries) -> Result<JournalEnd, Failure> {
        if let Some(end) = self.seats.get(&job.lease) {
            return Ok(end);
        }
        let (id, node) = names(&job.lease);
        let rows = self.once(&self.rooms.lanes, tries, (SEAT, &[&id, &node])).await;
        let rows = rows.map_err(|failure| match failure {
            // Nothing was asked but a look.
            Failure::Lost(error) => Failure::Unreachable(error),
            other => other,
        })?;
        let row = rows.first().ok_or_else(|| Error::NoSession(job.lease.session().clone()))?;
        let end = FoundSeat::read(row)?.of(&job.lease)?;
        self.seats.put(&job.lease, end.clone());
        Ok(end)
    }

    async fn try_append(&self, job: &AppendJob, plan: &AppendPlan, tries: &Tries) -> Result<Tried, Failure> {
        const CALL: &str = "SELECT * FROM append_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
             $18, $19, $20, $21, $22, $23, $24, $25, $26)";
        let (id, node) = names(&job.lease);
        let mut rows = RecordColumns::default();
        rows.add(1, records(&job.writes), (plan.from.head, &plan.chains));
        let RecordColumns { positions, paths, kinds, versions, bytes, chains, .. } = &rows;
        let columns = WriteColumns::of(&job.writes);
        let WriteColumns { ops, numbers, words, asked, .. } = &columns;
        let (epoch, is_durable) = (int(job.lease.epoch()), job.class == Durability::Durable);
        let (from, to) = (&plan.from, &plan.to);
        let (next, chain, now) = (int(to.head), to.chain.as_bytes(), self.now());
        let values: Values<'_> = &[
            &id,
            &node,
            &epoch,
            &from.serial,
            &from.mark,
            &to.mark,
            &plan.is_news,
            &next,
            &chain,
            positions,
            paths,
            kinds,
            versions,
            bytes,
            chains,
            ops,
            numbers,
            words,
            &asked.ids,
            &asked.runs,
            &asked.calls,
            &asked.digests,
            &asked.expires,
            &asked.bytes,
            &is_durable,
            &now,
        ];
        let answered = self.once(&self.rooms.lanes, tries, (CALL, values)).await;
        let rows = match answered {
            Err(Failure::Write { code, place }) => {
                return Ok(Tried::Refused(columns.refusal(&code, place)));
            }
            answered => answered?,
        };
        let row = rows.first().ok_or_else(no_row)?;
        if !row.try_get(0)? {
            return Ok(Tried::Elsewhere);
        }
        let decided: Vec<String> = row.try_get(1)?;
        Ok(Tried::Done(plan.appended(decided.into_iter().map(|id| text(id).into()).collect())))
    }
}

/// The error of a look that was to show what became of an append, where an earlier try of it may have been written.
fn in_doubt(error: Error, is_in_doubt: bool) -> Error {
    match error {
        Error::Failed(cause) | Error::Busy(cause) if is_in_doubt => Error::Unknown(cause),
        error => error,
    }
}

/// Whether all of it is small enough.
pub(super) fn must_fit(writes: &[Write]) -> Result<(), Error> {
    for write in writes {
        match write {
            Write::Record(record) => limits::record(record)?,
            Write::OpenApproval(asked) => limits::question(asked)?,
            Write::Setup(text) | Write::Title(text) | Write::Label(text) => limits::words(text)?,
            _ => {}
        }
    }
    limits::together(size(writes))
}
