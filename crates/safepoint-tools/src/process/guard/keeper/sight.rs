//! Whether a keeper can see its tree. Where `/proc` cannot be read the sweep of the subreaper finds nothing: then the
//! command's process group is signalled, and the grade says that no more than that is held.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::super::{cgroup::Cgroup, own_pid};
use crate::process::{
    report::{Containment, Exit, TreeMember},
    tree,
};

/// Exhaustive: the process table can be read or it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// It can.
    Sees,
    /// It cannot.
    Blind,
}

impl Sight {
    /// By looking for oneself.
    pub(super) fn here() -> Self {
        if tree::stat(own_pid()).is_some() { Self::Sees } else { Self::Blind }
    }

    /// What the tree is held by. A control group needs no sight: the kernel kills it as one.
    pub(super) fn grade(self, cgroup: Option<&Cgroup>) -> Containment {
        match (cgroup, self) {
            (Some(_), _) => Containment::Cgroup,
            (None, Self::Sees) => Containment::Subreaper,
            (None, Self::Blind) => Containment::ProcessGroup,
        }
    }

    /// To the command's group, where its members cannot be signalled one by one. While one of them is our child, and
    /// every orphan of the tree is, its number belongs to no other process.
    pub(super) fn signal_group(self, main: Pid, signal: Signal) {
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if self == Self::Blind
            && waitid(WaitId::Pgid(Some(main)), peek).is_ok()
            && kill_process_group(main, signal).is_err()
        {
            // The last of it is just ending.
        }
    }

    /// What is alive and cannot be seen: the command, or whatever of its tree is our child. Nothing where all is seen.
    pub(super) fn unseen(self, main: Pid, exit: Option<Exit>) -> Option<TreeMember> {
        let member = |pid, name: &str| Some(TreeMember { pid, start: 0, name: name.to_owned() });
        match (self, exit) {
            (Self::Sees, _) => None,
            (Self::Blind, None) => member(main.as_raw_nonzero().get(), "unseen"),
            (Self::Blind, Some(_)) => member(0, "unseen, and without a known number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.9
    #[test]
    fn what_cannot_be_seen_is_held_by_its_group_only() {
        assert_eq!(Sight::here(), Sight::Sees);
        assert_eq!(Sight::Sees.grade(None), Containment::Subreaper);
        assert_eq!(Sight::Blind.grade(None), Containment::ProcessGroup);
    }
}
