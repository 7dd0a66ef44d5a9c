//! A story as one page that needs nothing else.

use super::story::Story;

/// The page.
pub(super) fn page(story: &Story) -> String {
    let text = escaped(&super::text::text(story));
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>safepoint trace</title><pre>{text}</pre></html>\n"
    )
}

/// As text of a page: nothing in it is markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
