//! Tools on files below a [`Root`](crate::Root): reading, writing, editing, listing.
//!
//! They block, so they run off the async threads. Reading ones are dropped by a stop; writing ones are short and are
//! let finish, so that their effect is known.

mod before;
mod diff;
mod edit;
mod list;
mod preview;
mod read;
mod secret;
mod write;

pub use edit::edit_file;
pub use list::list_dir;
pub use preview::EditPreview;
pub use read::read_file;
pub use secret::{SecretFiles, WrongLine};
pub use write::write_file;

/// Whether the bytes look like anything but text.
pub(crate) fn is_binary(sniff: &[u8]) -> bool {
    sniff.contains(&0)
}

/// Cuts at a character.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
