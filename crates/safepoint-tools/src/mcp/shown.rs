//! Pictures and documents of a server that a model can be shown: by their first bytes, whatever the server calls them.
//! A provider refuses every later request of the conversation over one that is not what it says.

use safepoint::message::{MOST_BYTES, Part, PartKind, PartSource};

/// How each kind begins, as Base64.
const BEGINNINGS: [(&str, PartKind, &str); 5] = [
    ("iVBORw0KGgo", PartKind::Image, "image/png"),
    ("/9j/", PartKind::Image, "image/jpeg"),
    ("R0lGOD", PartKind::Image, "image/gif"),
    ("UklGR", PartKind::Image, "image/webp"),
    ("JVBERi0", PartKind::File, "application/pdf"),
];

/// The part that these letters are, if they are one that can be sent.
pub(super) fn part(letters: &str) -> Option<Part> {
    let (_, kind, media_type) = BEGINNINGS.iter().find(|(begins, ..)| letters.starts_with(begins))?;
    (letters.len() <= MOST_BYTES && is_base64(letters)).then(|| Part {
        kind: *kind,
        media_type: (*media_type).to_owned(),
        name: None,
        source: PartSource::Base64(letters.into()),
    })
}

fn is_base64(letters: &str) -> bool {
    const GROUP: usize = 4;
    let body = letters.strip_suffix("==").or_else(|| letters.strip_suffix('=')).unwrap_or(letters);
    letters.len().is_multiple_of(GROUP)
        && body.bytes().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/'))
}
