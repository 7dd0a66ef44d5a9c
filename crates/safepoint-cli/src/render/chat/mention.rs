//! Files in a message: as `@path`, or `@"path"` where it has blanks.

use std::path::PathBuf;

/// A path as it stands in a message, with what separates it from the next word; a directory can be gone on with.
pub(super) fn mention(path: &str) -> String {
    let has_blanks = path.contains(|letter: char| letter.is_whitespace() || letter == '"');
    match (has_blanks, path.ends_with('/')) {
        (true, true) => format!("@\"{path}"),
        (true, false) => format!("@\"{path}\" "),
        (false, true) => format!("@{path}"),
        (false, false) => format!("@{path} "),
    }
}

/// Where the `@` of the word at the cursor is, and what is typed behind it.
pub(super) fn file_word(text: &str, cursor: usize) -> Option<(usize, &str)> {
    let before = text.get(..cursor)?;
    let quoted = before.rfind("@\"").filter(|at| !before[at + 2..].contains(['"', '\n']));
    let start = match quoted {
        Some(start) => start,
        None => {
            let word = before
                .rfind(char::is_whitespace)
                .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
            word + before[word..].find('@')?
        }
    };
    let is_begun =
        before[..start].chars().next_back().is_none_or(|c| c.is_whitespace() || "([{'".contains(c));
    let query = before[start + 1..].trim_start_matches('"');
    is_begun.then_some((start, query))
}

/// The files of a message that go with it: images and documents behind an `@`.
pub(super) fn mentioned(text: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let is_begun = text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || "([{'".contains(c));
        let rest = &text[at + 1..];
        let path = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split(['"', '\n']).next(),
            None => rest.split(char::is_whitespace).next(),
        };
        let path =
            path.map(|path| path.trim_end_matches([',', ';', ':', '.', '!', '?', ')', ']', '}', '\'']));
        let path = path.filter(|path| is_begun && can_be_attached(path)).map(PathBuf::from);
        files.extend(path.filter(|path| !files.contains(path)));
    }
    files
}

/// Whether its name is that of an image or a document that a message can have.
pub(crate) fn can_be_attached(path: &str) -> bool {
    let kind = path.rsplit_once('.').map(|(_, kind)| kind.to_ascii_lowercase());
    kind.is_some_and(|kind| matches!(&*kind, "png" | "jpg" | "jpeg" | "gif" | "webp" | "pdf"))
}

/// The path that a paste is, if it may be one of a file that can be attached: as a terminal pastes what is dropped on it.
pub(crate) fn pasted_path(pasted: &str) -> Option<String> {
    let text = pasted.trim();
    if text.is_empty() || text.contains('\n') {
        return None;
    }
    let text = text.strip_prefix("file://").unwrap_or(text);
    let unquoted = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    let path = unquoted.map_or_else(|| text.replace("\\ ", " "), str::to_owned);
    let is_path = path.starts_with(['/', '.', '~']) || !path.contains(char::is_whitespace);
    (is_path && can_be_attached(&path)).then_some(path)
}
