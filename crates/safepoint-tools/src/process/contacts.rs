//! The processes of this machine that a command's tree works with and that are not part of it. A process that got the tree's
//! work continues without the tree, so that the end of the tree is not the end of the work (S10.60).
//!
//! **Invariants**
//! - A look changes nothing, and asks only the kernel.
//! - What could not be looked at is never reported as nothing.

use std::{collections::HashMap, fmt};

use super::{enclosed, report::TreeMember, tree};

mod datagrams;
mod inodes;
mod loopback;
mod service;
mod unix;

pub use service::{NoService, Service};

use inodes::{Inode, Inodes};

/// A command's tree while it runs, to be looked at from any thread. Cheap to clone; it holds nothing.
#[derive(Clone, Debug)]
pub struct Members {
    root: Root,
}

/// How the members of a tree are known. Exhaustive: by who keeps them, or by what they carry.
#[derive(Clone, Debug)]
pub(super) enum Root {
    Below(i32),
    Group { leader: i32, mark: String },
    Nowhere,
}

/// The other end of a connection of a tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Contact {
    /// This process.
    Process(TreeMember),
    /// A process that cannot be seen from here, behind this address.
    Unseen(String),
}

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contacts {
    /// Whom the tree holds a connection to.
    pub found: Vec<Contact>,
    /// Whether that is all.
    pub sight: Sight,
}

/// Whether all could be looked at. Exhaustive: it could or it could not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sight {
    /// It could.
    #[default]
    Whole,
    /// Not all of it: there may be more.
    Partial,
}

/// The far ends of a tree's connections, by their numbers.
type Far = HashMap<Inode, End>;

/// One far end.
#[derive(Debug)]
struct End {
    address: String,
    /// The socket that took the call, where there is one: it is there longer than the call.
    taken_by: Option<Inode>,
}

/// What one kind of socket shows.
#[derive(Default)]
struct Ends {
    far: Far,
    /// Far ends without a number here.
    nameless: Vec<String>,
}

impl Members {
    pub(super) fn of(root: Root) -> Self {
        Self { root }
    }

    /// What of the tree is alive.
    #[must_use]
    pub fn alive(&self) -> Vec<TreeMember> {
        match &self.root {
            Root::Below(keeper) => tree::descendants(*keeper),
            Root::Group { leader, mark } => tree::in_group(*leader, mark),
            Root::Nowhere => Vec::new(),
        }
    }

    /// Whom it holds a connection to on this machine, over a socket in the file system, TCP or UDP: processes that are
    /// neither of the tree nor of this runtime (itself, and what its guards hold), and none of these services. Blocks
    /// while it reads from the kernel.
    #[must_use]
    pub fn contacts(&self, services: &[Service]) -> Contacts {
        let members = self.alive();
        let mut sight = if matches!(self.root, Root::Nowhere) { Sight::Partial } else { Sight::Whole };
        let own = inodes::own();
        let mut held = Inodes::new();
        for member in &members {
            match inodes::of(member.pid) {
                // A socket that this runtime has too is one that it was started with, and handed on.
                Ok(inodes) => held.extend(inodes.difference(&own)),
                Err(_unreadable) if tree::stat(member.pid).is_some_and(|stat| stat.is_alive()) => {
                    sight = Sight::Partial;
                }
                Err(_gone) => {}
            }
        }
        if held.is_empty() {
            return Contacts { found: Vec::new(), sight };
        }
        let mut ends = Ends::default();
        let looks = [
            unix::look(&held, services, &mut ends),
            loopback::look(&members, &held, services, &mut ends),
            datagrams::look(&members, &held, services, &mut ends),
        ];
        if looks.contains(&Sight::Partial) {
            sight = Sight::Partial;
        }
        Contacts { found: owners(ends, &members), sight }
    }
}

/// Who holds the far ends, the tree and this runtime left out. Where no process holds one any more, who takes calls there.
fn owners(Ends { far, nameless }: Ends, members: &[TreeMember]) -> Vec<Contact> {
    let wanted: Inodes =
        far.iter().flat_map(|(inode, end)| end.taken_by.into_iter().chain([*inode])).collect();
    let mut holders: HashMap<Inode, Vec<TreeMember>> = HashMap::new();
    if !wanted.is_empty() {
        for stat in tree::all().into_iter().filter(tree::Stat::is_alive) {
            let Ok(held) = inodes::of(stat.member.pid) else { continue };
            for inode in held.intersection(&wanted) {
                holders.entry(*inode).or_default().push(stat.member.clone());
            }
        }
    }
    let mut found = Contacts::default();
    for (inode, end) in far {
        let taken_by = || end.taken_by.and_then(|taken_by| holders.get(&taken_by));
        match holders.get(&inode).or_else(taken_by) {
            Some(holders) => {
                let is_other = |holder: &&TreeMember| {
                    !members.iter().any(|member| member.pid == holder.pid)
                        && !enclosed::is_held_here(holder.pid)
                };
                let others = holders.iter().filter(is_other).cloned().map(Contact::Process);
                found.add(Contacts { found: others.collect(), sight: Sight::Whole });
            }
            None => found.found.push(Contact::Unseen(end.address)),
        }
    }
    found.found.extend(nameless.into_iter().map(Contact::Unseen));
    found.found.sort_by_cached_key(ToString::to_string);
    found.found.dedup();
    found.found
}

impl Contacts {
    /// Takes what another look found.
    pub fn add(&mut self, other: Self) {
        for contact in other.found {
            if !self.found.contains(&contact) {
                self.found.push(contact);
            }
        }
        if other.sight == Sight::Partial {
            self.sight = Sight::Partial;
        }
    }

    /// Without the processes that have ended since.
    pub fn forget_the_dead(&mut self) {
        self.found.retain(|contact| match contact {
            Contact::Process(member) => tree::is_there(member),
            Contact::Unseen(_) => true,
        });
    }
}

impl fmt::Display for Contact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(member) => member.fmt(f),
            Self::Unseen(address) => write!(f, "an unknown process at {address}"),
        }
    }
}
