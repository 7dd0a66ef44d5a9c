//! What a model sees of a long output: its head and tail, and where all of it is.

use std::{
    io::{self, Write as _},
    path::PathBuf,
    time::Duration,
};

use safepoint_scope::Scope;
use tokio::time::timeout;

use crate::value::{
    event::OutputExtent,
    message::{MOST_BYTES, Part, PartSource},
    spill::private_file,
    text::{head, tail},
};

/// The most images and files of one result.
const MOST_PARTS: usize = 16;

/// Limits the parts of one result; the text says how many are left out.
pub(super) fn bounded(parts: Vec<Part>, text: &mut String) -> Vec<Part> {
    let mut bytes = 0;
    let given = parts.len();
    let fits = |part: &Part| {
        bytes += match &part.source {
            PartSource::Base64(letters) => letters.len(),
            PartSource::Url(url) => url.len(),
        };
        bytes <= MOST_BYTES
    };
    let taken: Vec<Part> = parts.into_iter().take(MOST_PARTS).take_while(fits).collect();
    if taken.len() < given {
        let left_out = given - taken.len();
        text.push_str(&format!(
            "\n[{left_out} of {given} images and files left out: there is too much of them]"
        ));
    }
    taken
}

/// What is shown of an output that its tool has already shortened.
pub(super) fn narrowed(text: &str, budget: usize) -> String {
    let (head, tail) = ends(text, budget);
    format!("{head}\n[… more left out …]\n{tail}")
}

/// Shortens `whole` to about `budget` bytes and writes all of it to a file that only its owner can read. If
/// the disk takes longer than `patience`, the file is not named and nothing waits for it.
pub(super) async fn shorten(
    whole: String,
    budget: usize,
    patience: Duration,
    run: &Scope,
) -> (String, OutputExtent) {
    let bytes = whole.len();
    let (head, tail) = ends(&whole, budget);
    let (head, tail) = (head.to_owned(), tail.to_owned());
    let spilled = timeout(patience, run.spawn_blocking("spilling an output", move || spill(&whole))).await;
    let (file, place) = match spilled {
        Ok(Ok(Ok(path))) => {
            let path = path.display().to_string();
            (Some(path.clone()), format!("the whole output is in {path}"))
        }
        Ok(Ok(Err(error))) => (None, format!("the rest could not be kept: {error}")),
        Ok(Err(_panicked_or_shut_down)) => (None, "the rest could not be kept".to_owned()),
        Err(_elapsed) => (None, "the disk was too slow to keep the rest".to_owned()),
    };
    let left_out = bytes - head.len() - tail.len();
    let text = format!("{head}\n[… {left_out} of {bytes} bytes left out; {place} …]\n{tail}");
    (text, OutputExtent::Truncated { bytes, file })
}

/// Two thirds of the budget from the front, one third from the back.
fn ends(whole: &str, budget: usize) -> (&str, &str) {
    (head(whole, budget * 2 / 3), tail(whole, budget / 3))
}

fn spill(whole: &str) -> io::Result<PathBuf> {
    let (mut file, path) = private_file(&std::env::temp_dir())?;
    file.write_all(whole.as_bytes())?;
    Ok(path)
}
