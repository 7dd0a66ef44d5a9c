//! Appends of many sessions as one statement (S7.52).
//!
//! **Invariants:** what an append writes beside its records is done in no order there, so that no two may be about the same. Where an
//! answer is lost they are asked together once more. One that is not done with the others then is asked alone.

use std::{borrow::Cow, collections::HashSet, time::Instant};

use safepoint::raw::store::{Durability, Write};

use super::{
    append::{ANSWER, AppendJob, time_for},
    column::{int, stored},
    core::{Core, Values, no_row},
    failure::Failure,
    limits,
    plan::{AppendPlan, RecordColumns, names, records, size},
    tries::{Again, Tries},
};

/// Whether an append of these may share a statement with others.
pub(super) fn may_share(writes: &[Write]) -> bool {
    let mut items = HashSet::new();
    writes.iter().all(|write| match write {
        Write::TakeItem(number) | Write::RemoveItem(number) => items.insert(*number),
        Write::Record(_)
        | Write::StopSeen(_)
        | Write::Label(_)
        | Write::Title(_)
        | Write::AtWork
        | Write::AtRest => true,
        Write::PutBackItem(_)
        | Write::CloseInbox
        | Write::OpenInbox
        | Write::OpenApproval(_)
        | Write::CloseApproval(..)
        | Write::Setup(_) => false,
    })
}

/// What appends write beside their records, as columns: of what is said more than once, the last holds.
#[derive(Default)]
struct OtherColumns<'a> {
    labels: Vec<Option<Cow<'a, str>>>,
    titles: Vec<Option<Cow<'a, str>>>,
    rests: Vec<Option<bool>>,
    resets: Vec<bool>,
    /// How many of `ops` each append has.
    counts: Vec<i64>,
    /// Which append each is of, counted from 1.
    ops_of: Vec<i64>,
    ops: Vec<&'static str>,
    numbers: Vec<i64>,
}

impl<'a> OtherColumns<'a> {
    /// Adds the append at `place`, counted from 1.
    fn add(&mut self, place: i64, writes: &'a [Write]) {
        let (mut label, mut title, mut rest, mut resets, before) = (None, None, None, false, self.ops.len());
        for write in writes {
            match write {
                Write::Label(text) => label = Some(stored(text)),
                Write::Title(text) => title = Some(stored(text)),
                Write::AtWork => rest = Some(false),
                Write::AtRest => (rest, resets) = (Some(true), true),
                Write::TakeItem(number) => self.op(place, "take", *number),
                Write::RemoveItem(number) => self.op(place, "remove", *number),
                Write::StopSeen(number) => self.op(place, "seen", *number),
                // Records have columns of their own, and what else there is may not share.
                _ => {}
            }
        }
        self.labels.push(label);
        self.titles.push(title);
        self.rests.push(rest);
        self.resets.push(resets);
        self.counts.push((self.ops.len() - before) as i64);
    }

    fn op(&mut self, place: i64, op: &'static str, number: u64) {
        self.ops_of.push(place);
        self.ops.push(op);
        self.numbers.push(int(number));
    }
}

impl Core {
    /// Those that are not done with the others are asked alone.
    pub(super) async fn append_shared(&self, jobs: Vec<AppendJob>) {
        let plan = |job: &AppendJob| {
            let end = self.seats.get(&job.lease)?;
            Some(AppendPlan::new(&job.writes, end, limits::made_up()))
        };
        let planned: Vec<(AppendJob, Option<AppendPlan>)> =
            jobs.into_iter().map(|job| (plan(&job), job)).map(|(plan, job)| (job, plan)).collect();
        let (known, unknown): (Vec<_>, Vec<_>) = planned.into_iter().partition(|(_, plan)| plan.is_some());
        let known: Vec<(AppendJob, AppendPlan)> =
            known.into_iter().filter_map(|(job, plan)| Some((job, plan?))).collect();
        let (done, is_lost) =
            if known.is_empty() { (Vec::new(), false) } else { self.ask_once_or_twice(&known).await };
        for (place, (job, plan)) in known.into_iter().enumerate() {
            if done.contains(&(place as i64 + 1)) {
                self.seats.put(&job.lease, plan.to.clone());
                job.answer(Ok(plan.appended(Vec::new())));
            } else {
                self.append_one(job, is_lost.then_some(plan)).await;
            }
        }
        for (job, _) in unknown {
            self.append_one(job, None).await;
        }
    }

    /// The places of those that are written, and whether an answer was lost, so that another one may be, too. Where the connection was,
    /// they are asked together once more: after that one of them may be why, and each alone learns what is to be said of it.
    async fn ask_once_or_twice(&self, jobs: &[(AppendJob, AppendPlan)]) -> (Vec<i64>, bool) {
        let until = jobs.iter().map(|(job, _)| job.until).max().unwrap_or_else(Instant::now);
        let bytes = jobs.iter().map(|(job, _)| size(&job.writes)).sum();
        let mut tries = Tries::new(Again::Always, until).answered_within(ANSWER + time_for(bytes));
        let failure = match self.ask_shared(jobs, &tries).await {
            Ok(done) => return (done, false),
            Err(failure) => failure,
        };
        let is_lost = matches!(failure, Failure::Lost(_));
        if !is_lost && !matches!(failure, Failure::Unreachable(_)) || tries.after(failure).await.is_err() {
            return (Vec::new(), is_lost);
        }
        match self.ask_shared(jobs, &tries).await {
            Ok(done) => (done, is_lost),
            Err(again) => (Vec::new(), is_lost || matches!(again, Failure::Lost(_))),
        }
    }

    async fn ask_shared(&self, jobs: &[(AppendJob, AppendPlan)], tries: &Tries) -> Result<Vec<i64>, Failure> {
        const CALL: &str = "SELECT appends_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
             $20, $21, $22, $23, $24, $25, $26)";
        let (ids, nodes): (Vec<_>, Vec<_>) = jobs.iter().map(|(job, _)| names(&job.lease)).unzip();
        let of_plan =
            |get: fn(&AppendPlan) -> i64| jobs.iter().map(|(_, plan)| get(plan)).collect::<Vec<i64>>();
        let epochs: Vec<i64> = jobs.iter().map(|(job, _)| int(job.lease.epoch())).collect();
        let (serials, olds) = (of_plan(|plan| plan.from.serial), of_plan(|plan| plan.from.mark));
        let (marks, nexts) = (of_plan(|plan| plan.to.mark), of_plan(|plan| int(plan.to.head)));
        let news: Vec<bool> = jobs.iter().map(|(_, plan)| plan.is_news).collect();
        let chains: Vec<&[u8]> = jobs.iter().map(|(_, plan)| plan.to.chain.as_bytes()).collect();
        let (mut columns, mut others) = (RecordColumns::default(), OtherColumns::default());
        for (place, (job, plan)) in jobs.iter().enumerate() {
            columns.add(place + 1, records(&job.writes), (plan.from.head, &plan.chains));
            others.add(place as i64 + 1, &job.writes);
        }
        let RecordColumns { of, positions, paths, kinds, versions, bytes, chains: each } = &columns;
        let OtherColumns { labels, titles, rests, resets, counts, ops_of, ops, numbers } = &others;
        let is_durable = jobs.iter().any(|(job, _)| job.class == Durability::Durable);
        let now = self.now();
        let values: Values<'_> = &[
            &ids,
            &nodes,
            &epochs,
            &serials,
            &olds,
            &marks,
            &news,
            &nexts,
            &chains,
            labels,
            titles,
            rests,
            resets,
            counts,
            of,
            positions,
            paths,
            kinds,
            versions,
            bytes,
            each,
            ops_of,
            ops,
            numbers,
            &is_durable,
            &now,
        ];
        let rows = self.once(&self.rooms.lanes, tries, (CALL, values)).await?;
        Ok(rows.first().ok_or_else(no_row)?.try_get(0)?)
    }
}

#[cfg(test)]
mod tests {
    use safepoint::raw::store::Record;

    use super::*;

    /// S7.52: the beginning and the end of a turn share a statement with those of others; what is done in order does not.
    #[test]
    fn an_append_of_which_the_order_means_nothing_may_share_a_statement() {
        let record =
            || Write::Record(Record { path: String::new(), kind: String::new(), version: 0, bytes: vec![1] });
        assert!(may_share(&[record()]));
        assert!(may_share(&[record(), Write::TakeItem(1), Write::Label("running".into()), Write::AtWork]));
        assert!(may_share(&[Write::StopSeen(1), record(), Write::Label("idle".into()), Write::AtRest]));
        assert!(
            !may_share(&[Write::TakeItem(1), Write::RemoveItem(1)]),
            "in another order it cannot be done"
        );
        assert!(!may_share(&[record(), Write::PutBackItem(1)]));
        assert!(!may_share(&[Write::CloseInbox, record()]));
    }

    /// S7.52: what an append says twice is as the last says it, also beside others.
    #[test]
    fn the_last_of_what_is_said_twice_holds() {
        let first = [Write::Label("a".into()), Write::AtRest, Write::Label("b".into()), Write::AtWork];
        let mut columns = OtherColumns::default();
        columns.add(1, &first);
        columns.add(2, &[Write::StopSeen(7)]);
        assert_eq!(columns.labels, [Some(Cow::from("b")), None]);
        assert_eq!((columns.rests, columns.resets), (vec![Some(false), None], vec![true, false]));
        assert_eq!((columns.counts, columns.ops_of, columns.numbers), (vec![0, 1], vec![2], vec![7]));
    }
}
