//! The run against the world around it: requests, sockets, processes, whatever may be alive: I3, I5.

use std::{path::Path, time::Instant};

use safepoint::receipt::ProcessReport;

use super::{BrokenInvariant, Invariant, ModelServer, PATIENCE, QuietReport, Receipt, RunHandle, must};
use crate::server::Exchange;

/// I3: the provider would take each request.
pub(super) fn valid(server: &ModelServer, first: usize) -> Result<(), BrokenInvariant> {
    for request in server.requests().iter().skip(first) {
        let refusal = request.wire.judge(&request.body);
        must(Invariant::I3, refusal.is_none(), || {
            format!("request {}: {refusal:?} for {}", request.id, request.body)
        })?;
    }
    Ok(())
}

/// I5: nothing of the run is alive, or the receipt names it; no process is left that it does not name.
pub(super) fn settled_down(handle: &RunHandle, quiet: &QuietReport) -> Result<(), BrokenInvariant> {
    let receipt = quiet.receipt();
    let alive = handle.alive();
    match quiet {
        QuietReport::Quiet(_) => {
            must(Invariant::I5, alive.is_empty(), || format!("quiet, and alive: {alive:?}"))?;
            must(Invariant::I5, receipt.quiet_at.is_some() && receipt.survivors.is_empty(), || {
                format!("quiet at {:?}, survivors {:?}", receipt.quiet_at, receipt.survivors)
            })?;
        }
        QuietReport::NotQuiet(_) => {
            must(Invariant::I5, !receipt.survivors.is_empty(), || {
                format!("not quiet, and no survivor is named; alive: {alive:?}")
            })?;
        }
    }
    for process in processes(receipt) {
        let gone = !Path::new("/proc").join(process.pid.to_string()).exists();
        must(Invariant::I5, gone || !process.survivors.is_empty(), || {
            format!("process {} ({}) is alive and not named", process.pid, process.label)
        })?;
    }
    Ok(())
}

/// I5: each exchange was answered whole, or its connection is gone. Idle connections may stay.
pub(super) async fn exchanges_over(server: &ModelServer, first: usize) -> Result<(), BrokenInvariant> {
    let began = Instant::now();
    for exchange in server.requests().iter().skip(first) {
        while !over(exchange) {
            must(Invariant::I5, began.elapsed() < PATIENCE, || {
                format!("the connection of request {} is still open", exchange.id)
            })?;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

fn over(exchange: &Exchange) -> bool {
    let fate = exchange.fate_now();
    fate.completed.is_some() || fate.peer_closed.is_some() || exchange.fate.has_changed().is_err()
}

/// The processes of the run and of its child runs.
fn processes(receipt: &Receipt) -> Vec<&ProcessReport> {
    let inside = receipt.calls.iter().filter_map(|call| call.child.as_ref()?.receipt.as_deref());
    let own = receipt.calls.iter().flat_map(|call| &call.processes);
    own.chain(inside.flat_map(processes)).collect()
}
