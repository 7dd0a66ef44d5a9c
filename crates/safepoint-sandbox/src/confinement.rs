//! What a command may do, as a program sets it up.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{layers::Layers, opening::Opening, plan::Plan, temporary::Temporary};

/// Why a directory cannot be what commands are confined to.
#[derive(Debug, thiserror::Error)]
#[error("commands cannot be confined to {}: {source}", root.display())]
pub struct ConfinementError {
    root: PathBuf,
    source: io::Error,
}

/// What commands may write, what they must not see, and whether they reach a network. Cheap to clone; the temporary folder
/// is removed with the last clone.
#[derive(Clone, Debug)]
#[must_use = "a setting returns the changed value"]
pub struct Confinement {
    write: Vec<PathBuf>,
    hide: Vec<PathBuf>,
    opening: Option<Opening>,
    layers: Layers,
    temporary: Arc<Temporary>,
}

impl Confinement {
    /// Writing below `root` and in a temporary folder, which is made now; no network. `layers` is what this system enforces.
    ///
    /// # Errors
    /// If `root` is the whole system or cannot be found, or the folder cannot be made.
    pub fn new(root: impl AsRef<Path>, layers: Layers) -> Result<Self, ConfinementError> {
        let make = |root: &Path| {
            let root = root.canonicalize()?;
            if root.parent().is_none() {
                let why = "it is the whole system; choose a directory of the work";
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            let temporary = Arc::new(Temporary::create(&std::env::temp_dir())?);
            Ok(Self { write: vec![root], hide: Vec::new(), opening: None, layers, temporary })
        };
        let root = root.as_ref();
        make(root).map_err(|source| ConfinementError { root: root.to_owned(), source })
    }

    /// Also lets commands write this file, or below this directory; a path that is not absolute is one below the root. What does
    /// not exist when a command starts is left out. The `.git` of a root cannot be written unless it is named here: git runs
    /// hooks of it.
    pub fn write(mut self, path: impl AsRef<Path>) -> Self {
        let path = self.write[0].join(path);
        self.write.push(path.canonicalize().unwrap_or(path));
        self
    }

    /// Hides a file or a directory: commands find nothing in its place. What does not exist when a command starts is left
    /// out. It needs the layer of namespaces.
    pub fn hide(mut self, path: impl Into<PathBuf>) -> Self {
        self.hide.push(path.into());
        self
    }

    /// Opens something: for one command, in a clone.
    pub fn open(mut self, opening: Opening) -> Self {
        self.opening = Some(opening);
        self
    }

    /// What this system enforces of it.
    #[must_use]
    pub fn layers(&self) -> &Layers {
        &self.layers
    }

    /// The temporary folder of these commands: the value for their `TMPDIR`.
    #[must_use]
    pub fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// The arguments with which the program that calls [`confine_main_if_asked`](crate::confine_main_if_asked) is started so
    /// that it becomes this command, confined.
    #[must_use]
    pub fn command(
        &self,
        program: impl Into<OsString>,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Vec<OsString> {
        let plan = Plan {
            write: self.write.clone(),
            hide: self.hide.clone(),
            opening: self.opening,
            held: self.layers.held(),
            temporary: self.temporary().to_owned(),
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
        };
        plan.written()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_system_is_no_root() {
        let refused =
            Confinement::new("/", Layers::none("a test")).expect_err("everything would be writable");
        assert!(refused.to_string().contains("the whole system"), "{refused}");
        let gone = Confinement::new("/no/such/place", Layers::none("a test")).expect_err("there is none");
        assert!(gone.to_string().contains("/no/such/place"), "{gone}");
    }
}
