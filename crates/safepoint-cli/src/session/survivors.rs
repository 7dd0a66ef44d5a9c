//! What an owner of a session left running when it was killed together with the guard of its commands: found by their
//! mark when the session is opened again, and killed (S4.9).

use safepoint::{
    raw::store::Liveness,
    store::{OwnerProcess, SessionRow},
};
use safepoint_tools::process::{ProcessRecord, Reaped, reap_abandoned, reap_survivors};

use crate::output;

/// The mark of every command of this process. The store knows the process from its lease before the first command
/// begins, so that nothing else has to be recorded.
pub(crate) fn mark() -> String {
    mark_of(&OwnerProcess::here())
}

fn mark_of(owner: &OwnerProcess) -> String {
    format!("run_{}_{}_{}", owner.boot, owner.pid, owner.started)
}

/// The previous holder of the session, if that process is provably dead: what carries its mark has no owner.
pub(crate) fn dead_holder(row: &SessionRow) -> Option<OwnerProcess> {
    let owner = row.holder.as_ref()?.owner.clone();
    (owner.life() == Liveness::Dead && owner.boot == OwnerProcess::here().boot).then_some(owner)
}

/// Kills what killed runs have left in control groups, and says so.
pub(crate) async fn sweep() {
    if let Ok(reaped) = tokio::task::spawn_blocking(reap_abandoned).await {
        say(&reaped);
    }
}

/// Kills what it left, and says so.
pub(crate) async fn reap(dead: OwnerProcess) {
    let Ok(pid) = i32::try_from(dead.pid) else { return };
    let record = ProcessRecord { run: mark_of(&dead), pid, start: dead.started };
    let reaped = tokio::task::spawn_blocking(move || reap_survivors(&[record])).await;
    if let Ok(reaped) = reaped {
        say(&reaped);
    }
}

fn say(Reaped { killed, survivors }: &Reaped) {
    if !killed.is_empty() {
        let (count, pids) = (count(killed.len()), pids(killed));
        output::tell(format_args!("safepoint: killed {count} left by a killed run: {pids}"));
    }
    if !survivors.is_empty() {
        let (count, pids) = (count(survivors.len()), pids(survivors));
        output::tell(format_args!("safepoint: {count} left by a killed run could not be killed: {pids}"));
    }
}

fn count(processes: usize) -> String {
    if processes == 1 { "1 process".into() } else { format!("{processes} processes") }
}

fn pids(members: &[safepoint_tools::process::TreeMember]) -> String {
    let pids: Vec<String> = members.iter().map(|member| member.pid.to_string()).collect();
    pids.join(", ")
}
