//! What a command of an agent leaves behind while it runs: a line in a file, each tenth of a second.

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

/// The largest number of ticks: a command that is never stopped ends in some minutes.
const MOST: u32 = 3000;
/// Within this time a command that runs has left its mark, also on a busy machine.
const SURELY: Duration = Duration::from_millis(800);

/// A file in which a line is added with each tick.
pub(in crate::peers) struct Ticks(PathBuf);

impl Ticks {
    pub(in crate::peers) fn in_file(path: PathBuf) -> Self {
        Self(path)
    }

    /// A program for `sh` that ticks.
    pub(in crate::peers) fn program(&self) -> String {
        let file = self.0.display();
        format!("i=0; while [ $i -lt {MOST} ]; do i=$((i+1)); echo $i >>'{file}'; sleep 0.1; done")
    }

    /// How many there were.
    pub(in crate::peers) fn count(&self) -> usize {
        fs::read_to_string(&self.0).unwrap_or_default().lines().count()
    }

    /// When the last one was.
    pub(in crate::peers) fn last(&self) -> Option<SystemTime> {
        fs::metadata(&self.0).and_then(|file| file.modified()).ok()
    }

    /// Whether it still ticks: looks for a while.
    pub(in crate::peers) fn continues(&self) -> bool {
        let before = self.count();
        thread::sleep(SURELY);
        self.count() > before
    }
}
