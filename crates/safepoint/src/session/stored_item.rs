//! An item as the store's inbox keeps it: its content and its policy.

use safepoint_scope::SafePoints;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    item::{Item, Policy, Preempt, digest},
    machine::PreemptSpec,
    outcome::IfUndelivered,
};
use crate::{contract::store, run::steer::SteerTiming, value::ids::TurnId};

/// The stable form.
#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    item: T,
    #[serde(default, skip_serializing_if = "StoredPolicy::is_plain")]
    how: StoredPolicy,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "policy", rename_all = "snake_case")]
enum StoredPolicy {
    #[default]
    Enqueue,
    Reject,
    Rollback,
    Steer {
        when: SteerTiming,
        or: IfUndelivered,
    },
    SteerTurn {
        turn: TurnId,
        when: SteerTiming,
        or: IfUndelivered,
    },
    Preempt {
        /// None: now.
        points: Option<String>,
        grace_us: Option<u64>,
        delay_us: Option<u64>,
        turn: Option<TurnId>,
    },
}

impl StoredPolicy {
    fn is_plain(&self) -> bool {
        *self == Self::Enqueue
    }

    fn of(policy: Policy) -> Self {
        match policy {
            Policy::Enqueue => Self::Enqueue,
            Policy::Reject => Self::Reject,
            Policy::Rollback => Self::Rollback,
            Policy::Steer(when, or) => Self::Steer { when, or },
            Policy::SteerTurn(turn, when, or) => Self::SteerTurn { turn, when, or },
            Policy::Preempt(preempt) => {
                let PreemptSpec { points, grace, delay, turn, .. } = preempt.spec();
                let points = points.map(|points| points.to_string());
                Self::Preempt { points, grace_us: grace, delay_us: delay, turn }
            }
        }
    }

    fn policy(self) -> Policy {
        match self {
            Self::Enqueue => Policy::Enqueue,
            Self::Reject => Policy::Reject,
            Self::Rollback => Policy::Rollback,
            Self::Steer { when, or } => Policy::Steer(when, or),
            Self::SteerTurn { turn, when, or } => Policy::SteerTurn(turn, when, or),
            Self::Preempt { points, grace_us, delay_us, turn } => {
                // Points of a later release count as any: an unknown name must not lose the push.
                let points = points.map(|names| names.parse().unwrap_or(SafePoints::ANY));
                let spec = PreemptSpec { points, grace: grace_us, delay: delay_us, turn, forgets: false };
                Policy::Preempt(Preempt::from_spec(spec))
            }
        }
    }
}

/// Encodes an item for the store.
///
/// # Errors
/// If the item cannot be written as JSON.
pub fn encode_item<T: Item>(
    item: &T,
    policy: Policy,
    client_id: Option<String>,
    capacity: usize,
) -> Result<store::NewItem, serde_json::Error> {
    let how = StoredPolicy::of(policy);
    let digest = if how.is_plain() { digest(item)? } else { digest(&(item, &how))? };
    let digest = hex(digest);
    let bytes = serde_json::to_vec(&Envelope { item, how })?;
    Ok(store::NewItem { client_id, digest, bytes, capacity })
}

/// Decodes what [`encode_item`] wrote.
///
/// # Errors
/// If the bytes are not an encoded item.
pub fn decode_item<T: Item>(bytes: &[u8]) -> Result<(T, Policy), serde_json::Error> {
    let Envelope { item, how } = serde_json::from_slice(bytes)?;
    Ok((item, how.policy()))
}

/// Why an item in a store's inbox cannot be delivered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ItemError {
    /// This release cannot read the item.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The item was altered: its content or its policy does not match its digest.
    #[error("it is damaged: its content is not what was put in")]
    Damaged,
}

/// Decodes an inbox row, and verifies its digest.
///
/// # Errors
/// If the row is not an encoded item, or was altered.
pub fn decode_row<T: Item>(row: &store::InboxRow) -> Result<(T, Policy), ItemError> {
    let opened = decode_item(&row.bytes)?;
    // As the row was written, and not as this release would write it.
    let Sealed { item, how } = serde_json::from_slice(&row.bytes)?;
    let digest = how.map_or_else(|| digest(item), |how| digest(&(item, how)))?;
    if hex(digest) == row.digest { Ok(opened) } else { Err(ItemError::Damaged) }
}

/// The content and the policy, as the row has them.
#[derive(Deserialize)]
struct Sealed<'a> {
    #[serde(borrow)]
    item: &'a RawValue,
    #[serde(borrow, default)]
    how: Option<&'a RawValue>,
}

fn hex(digest: [u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
