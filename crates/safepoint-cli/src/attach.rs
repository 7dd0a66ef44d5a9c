//! Files that go with a prompt: an image or a document, by what its name says.

use std::path::Path;

use safepoint::message::{MOST_BYTES, Part, UserMessage};

use crate::args::{RunArgs, Usage};

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

/// The prompt, with what goes with the first one.
pub(crate) fn to(text: String, attached: &mut Vec<Part>) -> UserMessage {
    UserMessage { text, parts: std::mem::take(attached) }
}

fn part(file: &Path) -> Result<Part, String> {
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase()).unwrap_or_default();
    let image = match ending.as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        "pdf" => None,
        _ => return Err("attach png, jpg, gif, webp or pdf; text goes into the prompt".into()),
    };
    let size = std::fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > MOST_BYTES as u64 {
        return Err(format!("it has {size} bytes, and {MOST_BYTES} are the most"));
    }
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match image {
        Some(kind) => Part::image(kind, &bytes),
        None => Part::file(name, "application/pdf", &bytes),
    }
    .map_err(|too_large| too_large.to_string())
}
