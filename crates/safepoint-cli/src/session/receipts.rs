//! The receipts that a session has stored: the account of each turn, as it was when it settled.

use safepoint::{
    Receipt,
    event::Fact,
    ids::{SessionId, TurnId},
    raw::{JournalFact, read_journal},
    store::Store,
};

/// The last account of each turn, oldest first; `quiet` is filled in from what was recorded after it.
///
/// # Errors
/// The store's.
pub(crate) async fn of(store: &dyn Store, session: &SessionId) -> anyhow::Result<Vec<(TurnId, Receipt)>> {
    let mut all: Vec<(TurnId, Receipt)> = Vec::new();
    read_journal(store, session, |past| match past.what {
        Ok(JournalFact::Fact { turn, path, fact, .. }) if path.is_root() => {
            if let Fact::Settled { receipt, .. } = &*fact {
                // A turn that was taken up again has settled more than once.
                all.retain(|(of, _)| *of != turn);
                all.push((turn, Receipt::clone(receipt)));
            }
        }
        Ok(JournalFact::Quiet { turn, survivors }) => {
            if let Some((_, receipt)) = all.iter_mut().find(|(of, _)| *of == turn) {
                receipt.quiet_at = past.at.filter(|_| survivors.is_empty());
                receipt.survivors = survivors;
            }
        }
        _ => {}
    })
    .await?;
    Ok(all)
}
