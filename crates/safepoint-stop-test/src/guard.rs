//! A process that outlives the test for a moment: whatever ends the test, also what cannot be caught, it ends what the test has started.

use std::{
    env, fs,
    io::{self, Read as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

/// The first argument of the process that guards a folder, which is the second one.
const GUARD: &str = "--guard-of-stop-test";

/// The folder of a run, and the process that guards it. Dropped, nothing that names the folder is alive, and it is gone.
#[derive(Debug)]
pub struct Guard {
    folder: TempDir,
    /// Its input is closed when this process ends, however that comes.
    child: Option<Child>,
}

impl Guard {
    /// Makes a folder for a run, and starts a guard of it: this program anew, whose `main` calls [`Guard::is_guarding`] first.
    ///
    /// # Errors
    /// If there is no place for a folder, or no process can be started.
    pub fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("stop-test-").tempdir()?;
        let mut command = Command::new(env::current_exe()?);
        // In a group of its own, so that no key of a terminal ends it.
        command.arg(GUARD).arg(folder.path()).process_group(0);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { folder, child: Some(child) })
    }

    /// Where trials have their folders.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Guards, if this process was started for that; then it has nothing else to do.
    #[must_use]
    pub fn is_guarding() -> bool {
        let mut args = env::args_os().skip(1);
        if args.next().is_none_or(|first| first != GUARD) {
            return false;
        }
        let Some(folder) = args.next() else { return true };
        if io::stdin().read_to_end(&mut Vec::new()).is_err() {
            // It is closed, too.
        }
        let folder = Path::new(&folder);
        crate::stage::end_all(folder);
        if fs::remove_dir_all(folder).is_err() {
            // Whoever has started it has removed it.
        }
        true
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            if child.wait().is_err() {
                // Somebody else has waited for it.
            }
        }
    }
}
