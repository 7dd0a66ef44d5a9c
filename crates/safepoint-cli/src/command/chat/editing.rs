//! Ctrl-G: the terminal is the external editor's for a while, and then the chat's again. The turn continues meanwhile.
//!
//! **Invariants**: the text of the input stays until the editor has ended well; an editor that fails changes nothing.

use std::{
    io::{self, Write as _},
    path::Path,
    process::ExitStatus,
};

use safepoint::raw::spill::private_file;
use tokio::{
    process::Command,
    task::{JoinHandle, spawn_blocking},
};

use super::{desk::tell, driver::Driver, lent::Lent};
use crate::render::chat::{input::Draft, typing::TypingNews};

/// A text that is larger is not taken from an editor.
const LARGEST: u64 = 1 << 20;
/// What is opened where the environment names no editor.
const USUAL: &str = "vi";

impl Driver {
    /// Opens what is typed in the external editor.
    pub(super) fn edit(&mut self, draft: Draft) {
        if self.desk.lent.is_lent() {
            return;
        }
        let given = self.lend_terminal();
        let (later, lent) = (self.later.0.clone(), self.desk.lent.clone());
        let _task: JoinHandle<()> = tokio::spawn(async move {
            let edited = match given {
                Ok(()) => edit(draft.whole(), &lent).await,
                Err(error) => Err(format!("the terminal cannot be given away: {error}")),
            };
            tell(&later, TypingNews::Edited(draft, edited));
        });
    }
}

/// The text as the editor leaves it.
async fn edit(text: String, lent: &Lent) -> Result<String, String> {
    let written = text.clone();
    let file = spawn_blocking(move || {
        let (mut file, path) = private_file(&std::env::temp_dir())?;
        file.write_all(written.as_bytes())?;
        io::Result::Ok(path)
    });
    let path = file.await.map_err(io::Error::other).flatten();
    let path = path.map_err(|error| format!("no file could be made for the editor: {error}"))?;
    let named = |name: &&str| std::env::var(name).is_ok_and(|editor| !editor.trim().is_empty());
    let variable = ["VISUAL", "EDITOR"].into_iter().find(named);
    let editor = variable.map_or_else(|| Ok(USUAL.to_owned()), std::env::var).unwrap_or_default();
    let ended = run(&editor, &path, lent).await;
    let hint = if variable.is_none() { "; set VISUAL or EDITOR to yours" } else { "" };
    // What cannot be read is the person's: it stays.
    let is_kept = matches!(&ended, Ok(status) if status.success());
    let failed = |how: String| format!("{editor} {how}, so nothing was changed{hint}");
    let edited = match ended {
        Ok(status) if status.success() => spawn_blocking({
            let path = path.clone();
            move || read(&path)
        })
        .await
        .map_err(io::Error::other)
        .flatten()
        .map_err(|error| format!("{}: {error}; nothing was changed", path.display())),
        Ok(status) => Err(failed(format!("ended with {status}"))),
        Err(error) => Err(failed(format!("cannot be started: {error}"))),
    };
    if !(is_kept && edited.is_err()) && std::fs::remove_file(&path).is_err() {
        // The editor has removed it itself.
    }
    // An editor ends the last line, which a message does not need.
    edited.map(|edited| match edited.strip_suffix('\n') {
        Some(without) if !text.ends_with('\n') => without.to_owned(),
        _ => edited,
    })
}

/// As git does it, so that an editor may be named with arguments.
async fn run(editor: &str, file: &Path, lent: &Lent) -> io::Result<ExitStatus> {
    let mut program = Command::new("/bin/sh");
    program.arg("-c").arg(format!("{editor} \"$@\"")).arg(editor).arg(file);
    lent.run(&mut program, None).await
}

fn read(path: &Path) -> io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > LARGEST {
        return Err(io::Error::other(format!("it has {size} bytes, and {LARGEST} are the most")));
    }
    std::fs::read_to_string(path)
}
