//! The privileges of the helper, given up: those of root, and those that a new user namespace gives.

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};

/// What root keeps: to read and change files of other users, as far as Landlock lets it, and to become another user.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// Gives up all but what root keeps, for good: no program that is executed later gets any back.
pub(super) fn drop_all() -> io::Result<()> {
    let held = capabilities(None)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        for one in (0..u64::BITS).map(|bit| CapabilitySet::from_bits_retain(1 << bit)) {
            // The kernel does not know those behind its last one.
            if !KEPT.contains(one) && matches!(capability_is_in_bounding_set(one), Ok(true)) {
                remove_capability_from_bounding_set(one)?;
            }
        }
    }
    clear_ambient_capability_set()?;
    let kept = held.permitted & KEPT;
    set_capabilities(
        None,
        CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() },
    )?;
    Ok(set_no_new_privs(true)?)
}
