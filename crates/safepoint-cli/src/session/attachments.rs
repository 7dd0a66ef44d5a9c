//! Files that go with a prompt: an image or a document, by what its first bytes are, whatever it is called. A provider
//! refuses the whole conversation over one that is not what it says.

use std::path::Path;

use safepoint::message::{MOST_BYTES, Part};

use crate::{args::run::RunArgs, exit::Usage};

/// The files as parts of a message.
///
/// # Errors
/// A file that cannot be read, is too large, or is of no kind that a model takes; a session, which keeps text alone.
pub(crate) fn parts(args: &RunArgs) -> Result<Vec<Part>, Usage> {
    let files = &args.attach;
    if (args.session.is_some() || args.store.is_some()) && !files.is_empty() {
        let why = "--attach goes with a conversation that is not kept: leave out --session and --store";
        return Err(Usage(why.into()));
    }
    files
        .iter()
        .map(|file| part(file).map_err(|why| Usage(format!("--attach {}: {why}", file.display()))))
        .collect()
}

/// What a file is, by how it begins.
fn kind(bytes: &[u8]) -> Option<&'static str> {
    const WEBP_AT: usize = 8;
    match bytes {
        _ if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if bytes.starts_with(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") => Some("image/gif"),
        _ if bytes.starts_with(b"RIFF") && bytes[WEBP_AT.min(bytes.len())..].starts_with(b"WEBP") => {
            Some("image/webp")
        }
        _ if bytes.starts_with(b"%PDF-") => Some(PDF),
        _ => None,
    }
}

const PDF: &str = "application/pdf";

/// A file as a part of a message.
///
/// # Errors
/// Why it cannot be one.
pub(crate) fn part(file: &Path) -> Result<Part, String> {
    let about = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is no file".into());
    }
    let size = about.len();
    if size > MOST_BYTES as u64 {
        return Err(format!("it has {size} bytes, and {MOST_BYTES} are the most"));
    }
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    if bytes.is_empty() {
        return Err("it is empty".into());
    }
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match kind(&bytes) {
        Some(PDF) => Part::file(name, PDF, &bytes),
        Some(image) => Part::image(image, &bytes),
        None => {
            let what = "it does not begin like any; text goes into the prompt";
            return Err(format!("attach png, jpg, gif, webp or pdf; {what}"));
        }
    }
    .map_err(|too_large| too_large.to_string())
}
