//! Snapshots of the files under a directory, and a restore that is planned first, loses nothing and can be undone.
//!
//! [`Snapshots`] holds the snapshots of one directory, the root, in a folder outside of it. A snapshot has each file's
//! content, permissions and place. It costs one look at each file, and a copy of what has changed since the last one.
//! `.gitignore` decides what is not taken, and so do [`SnapshotLimits`]; what was not taken is named. The repository's own
//! git is never touched.
//!
//! To go back, [`Snapshots::plan`] says for each file what a restore would do to it and what it would leave: a file that
//! changed outside of the spans that the caller names is left, unless it is confirmed by its name. [`Snapshots::restore`]
//! first takes a snapshot of what is there, so that a restore is undone by another one.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let (root, state) = (place.path().join("root"), place.path().join("state"));
//! # std::fs::create_dir(&root)?;
//! use safepoint_snapshot::{SnapshotLimits, Snapshots};
//!
//! std::fs::write(root.join("a.txt"), "before")?;
//! let snapshots = Snapshots::open(&root, &state, SnapshotLimits::default())?;
//! let before = snapshots.take("before the turn")?;
//! std::fs::write(root.join("a.txt"), "after")?;
//! let after = snapshots.take("after the turn")?;
//!
//! let plan = snapshots.plan(&before, &[(before.clone(), after)])?;
//! let restored = snapshots.restore(plan)?;
//! assert_eq!(std::fs::read_to_string(root.join("a.txt"))?, "before");
//!
//! let undo = snapshots.plan(&restored.before, &[(restored.before.clone(), restored.after.clone())])?;
//! snapshots.restore(undo)?;
//! assert_eq!(std::fs::read_to_string(root.join("a.txt"))?, "after");
//! # Ok(()) }
//! ```
//!
//! Not kept: owners, extended attributes, hard links, and times. All functions block the thread.

mod blobs;
mod content;
mod error;
mod folder;
mod ignored;
mod limits;
mod manifest;
mod place;
mod snapshot;
mod snapshots;
mod tree;
mod walk;

pub use error::SnapshotError;
pub use limits::SnapshotLimits;
pub use snapshot::{NotTaken, Snapshot};
pub use snapshots::{
    Snapshots,
    plan::{KeptBack, PathChange, PlannedChange, RestorePlan, WhyKept},
    restore::Restored,
};
