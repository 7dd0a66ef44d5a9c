//! What a project says of itself: its AGENTS.md files, and its `.safepoint` folder with settings, commands and agents.
//!
//! **Invariants**
//! - Text of a project raises no permission: it is said to the model, or sent by a person who names it.
//! - A setting of a project that could weaken safety is taken only after consent to exactly these bytes; see [`keys`].
//! - Only regular files are read that really lie inside, each up to a size.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;

use crate::{
    render::chat::custom::CustomCommands,
    settings::{config as user, project},
};

pub(crate) mod agents;
mod commands;
pub(crate) mod config;
mod front;
mod instructions;
pub(crate) mod keys;
pub(crate) mod trust;

pub(crate) use agents::AgentFile;
pub(crate) use instructions::Instructions;

/// The folder of a project's settings, commands and agents.
pub(crate) const FOLDER: &str = ".safepoint";

/// All of it, read once at the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectText {
    pub(crate) instructions: Instructions,
    pub(crate) commands: CustomCommands,
    pub(crate) agents: Vec<AgentFile>,
    /// What the person should know: what was left out, and why.
    pub(crate) notes: Vec<String>,
}

/// Where a project is. Its root is the nearest folder, from the working one up, that is a repository; without one it is the working
/// folder itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProjectPlace {
    working: PathBuf,
    root: PathBuf,
}

impl ProjectPlace {
    /// The project around this folder, or around the current one.
    ///
    /// # Errors
    /// If there is no such folder.
    pub(crate) fn around(working: Option<&Path>) -> io::Result<Self> {
        let working =
            working.map_or_else(std::env::current_dir, |path| Ok(path.to_owned()))?.canonicalize()?;
        let root = project::root_of(&working);
        Ok(Self { working, root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folders from the working one up to the root.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.working.ancestors().take_while(|folder| folder.starts_with(&self.root))
    }

    /// The nearest `.safepoint` folder, if it really lies in the project.
    pub(crate) fn settings_folder(&self) -> Option<PathBuf> {
        let is_there = |folder: &PathBuf| {
            folder.is_dir() && folder.canonicalize().is_ok_and(|real| real.starts_with(&self.root))
        };
        self.folders().map(|folder| folder.join(FOLDER)).find(is_there)
    }

    /// The settings file in it, if there is one.
    pub(crate) fn config(&self) -> Option<PathBuf> {
        self.settings_folder().map(|folder| folder.join("config.toml")).filter(|path| path.exists())
    }
}

impl ProjectText {
    /// What the person should know of it: what is read, and what is left out.
    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.instructions.line().into_iter().chain(self.notes.iter().cloned())
    }

    /// Reads all of it, and what the user has for every project.
    pub(crate) fn read(place: &ProjectPlace) -> Self {
        let mut text = Self::default();
        let own = user::folder();
        text.instructions = Instructions::read(place, own.as_deref(), &mut text.notes);
        let project = place.settings_folder();
        // The user's own come first: a project replaces none of them.
        let folders =
            [own.as_deref().map(|own| (own, own)), project.as_deref().map(|folder| (folder, place.root()))];
        for (folder, inside) in folders.into_iter().flatten() {
            commands::read(&folder.join("commands"), inside, &mut text);
            agents::read(&folder.join("agents"), inside, &mut text);
        }
        text
    }
}

/// A text of a file, or its beginning.
pub(crate) struct FileText {
    pub(crate) text: String,
    pub(crate) is_cut: bool,
}

/// The beginning of a regular file that really lies in this folder, up to this number of bytes. None if there is no such file.
///
/// # Errors
/// Why it is not read.
pub(crate) fn read_inside(path: &Path, folder: &Path, most: usize) -> Result<Option<FileText>, String> {
    if path.symlink_metadata().is_err() {
        return Ok(None);
    }
    let cannot = |error: io::Error| format!("{} cannot be read: {error}", path.display());
    let (real, folder) = (path.canonicalize().map_err(cannot)?, folder.canonicalize().map_err(cannot)?);
    if !real.starts_with(&folder) {
        return Err(format!("{} is not read: it leads out of {}", path.display(), folder.display()));
    }
    // A pipe or a terminal must not be waited for, and what was a link meanwhile is none of ours.
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).map_err(|error| cannot(io::Error::other(error)))?;
    let file = File::options().read(true).custom_flags(flags).open(&real).map_err(cannot)?;
    if !file.metadata().map_err(cannot)?.is_file() {
        return Err(format!("{} is not read: it is no regular file", path.display()));
    }
    let mut bytes = Vec::new();
    let one_more = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    file.take(one_more).read_to_end(&mut bytes).map_err(cannot)?;
    let is_cut = bytes.len() > most;
    bytes.truncate(most);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    // A letter that was cut in half.
    while is_cut && text.ends_with(char::REPLACEMENT_CHARACTER) {
        text.pop();
    }
    Ok(Some(FileText { text, is_cut }))
}

/// The Markdown files of a folder by name, each with its text; what is left out is noted.
fn markdown(folder: &Path, inside: &Path, notes: &mut Vec<String>) -> Vec<(String, PathBuf, String)> {
    const MOST_FILES: usize = 100;
    const MOST_BYTES: usize = 64 << 10;
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    paths.sort();
    if paths.len() > MOST_FILES {
        notes.push(format!("{} has more than {MOST_FILES} files; the rest is left out", folder.display()));
    }
    let mut found = Vec::new();
    for path in paths.into_iter().take(MOST_FILES) {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !is_name(&name) {
            notes.push(format!(
                "{} is left out: its name has letters, digits, `-` and `_` only",
                path.display()
            ));
            continue;
        }
        match read_inside(&path, inside, MOST_BYTES) {
            Ok(Some(FileText { text, is_cut: false })) => found.push((name, path, text)),
            Ok(Some(_)) => {
                notes.push(format!("{} is left out: it has more than {MOST_BYTES} bytes", path.display()))
            }
            Ok(None) => {}
            Err(why) => notes.push(why),
        }
    }
    found
}

/// Whether a file may be called so.
fn is_name(name: &str) -> bool {
    const LONGEST: usize = 48;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    !name.is_empty() && name.len() <= LONGEST && name.chars().all(fits)
}

#[cfg(test)]
mod tests;
