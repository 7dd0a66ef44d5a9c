//! `write_file`: the whole of a file, in one piece or not at all.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Seek, Write},
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, openat, renameat, statat, unlinkat};
use safepoint::{
    stop::Failure,
    tool::{EffectClass, FnTool, OnStop, from_blocking_fn},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    before::{Before, Content, Opaque},
    diff,
};
use crate::{
    Root,
    root::{fault, kind_of, refusal},
};

const NEW_FILE: u32 = 0o666;
const PERMISSIONS: u32 = 0o7777;

#[derive(Deserialize, JsonSchema)]
pub(super) struct WriteArgs {
    /// The file, relative to the root directory. Missing directories are made.
    pub(super) path: String,
    /// The whole new content.
    pub(super) content: String,
    /// The state of the file that a person saw. The model is not offered it.
    #[schemars(skip)]
    pub(super) if_sha256: Option<String>,
}

/// Writes files below `root`.
///
/// A call with the argument `if_sha256`, which the model is not offered, changes nothing if the file's content has another
/// SHA-256 and is not what would be written either; `absent` is the state of no file. A person approved the change of that
/// content ([`EditPreview`](crate::EditPreview)). The call's progress is the unified diff of what was changed.
#[must_use]
pub fn write_file(root: Arc<Root>) -> FnTool {
    let about = "Writes a file: makes it, or replaces all of its content.";
    let place = root.place();
    from_blocking_fn("write_file", about, move |cx, args: WriteArgs| {
        let before = change(&root, &args)?;
        cx.progress(match before {
            Content::Absent => diff::report(&args.path, None, &args.content),
            Content::Text(before) => diff::report(&args.path, Some(&before), &args.content),
            Content::Opaque(opaque) => format!("replaced {}\n", opaque.what()),
        });
        Ok(format!("wrote {} bytes to {}", args.content.len(), args.path))
    })
    // The same content twice is the same file; it is short, so a stop lets it end.
    .with(|spec| spec.effect(EffectClass::Idempotent).on_stop(OnStop::Finish(None)).place(place))
}

/// Writes the file; what was there before.
fn change(root: &Root, args: &WriteArgs) -> Result<Content, Failure> {
    let _change = root.change();
    let content = match Before::read(root, &args.path) {
        // After a crash the call may run a second time: then it has been done.
        Ok(before) if before.content == Content::Text(args.content.clone()) => before.content,
        Ok(before) => {
            before.check(&args.path, args.if_sha256.as_deref())?;
            before.content
        }
        // What cannot be read may still be replaced, unless a person saw what it was.
        Err(_unread) if args.if_sha256.is_none() => Content::Opaque(Opaque::Unread),
        Err(unread) => return Err(unread),
    };
    replace(root, &args.path, args.content.as_bytes())?;
    Ok(content)
}

/// Puts `content` in the place of what is there.
pub(super) fn replace(root: &Root, path: &str, content: &[u8]) -> Result<(), Failure> {
    let (directory, name) = root.parent_of(path)?;
    match kind_of(&directory, name) {
        None | Some(FileType::RegularFile) => {
            swap(&directory, name, content).map_err(|error| fault("write", path, &error))
        }
        // A link stays a link: what it points to, if that is inside too, gets the content.
        Some(FileType::Symlink) => {
            let file = root.open_existing(path)?;
            if !file.metadata().is_ok_and(|found| found.is_file()) {
                return Err(refusal(format!("{path:?} does not lead to a regular file")));
            }
            overwrite(file, content).map_err(|error| Failure::new(format!("cannot write {path:?}: {error}")))
        }
        Some(FileType::Directory) => Err(refusal(format!("{path:?} is a directory"))),
        Some(_) => Err(refusal(format!("{path:?} is not a regular file"))),
    }
}

/// Writes a new file beside the old one and renames it over it, so that no reader ever sees half of it.
fn swap(directory: &OwnedFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let passing = format!(".safepoint-{}", uuid::Uuid::new_v4().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, &passing, flags, Mode::from_raw_mode(NEW_FILE))?;
    let moved = fill(file, directory, name, content)
        .and_then(|()| Ok(renameat(directory, &passing, directory, name)?));
    if moved.is_err() && unlinkat(directory, &passing, AtFlags::empty()).is_err() {
        // it stays behind under a name that says whose it is
    }
    moved
}

fn fill(file: OwnedFd, directory: impl AsFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    if let Ok(old) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        fchmod(&file, Mode::from_raw_mode(old.st_mode & PERMISSIONS))?;
    }
    let mut file = File::from(file);
    file.write_all(content)
}

fn overwrite(mut file: File, content: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}
