//! What a provider did itself, for people: what its tools were given and gave, and where an answer is from.

use std::collections::HashSet;

use safepoint::message::{Citation, ProviderBlock, ProviderPart, ResultStatus};
use unicode_width::UnicodeWidthStr as _;

use crate::render::text::{cut, one_line};

/// The columns where it is not known how many there are: lines in a file are not broken.
const UNKNOWN: usize = 240;

/// A use of one of the provider's tools, in one line; none for other blocks.
pub(crate) fn begun(block: &ProviderBlock, columns: Option<usize>) -> Option<String> {
    let ProviderPart::Use { tool, input, .. } = &block.part else { return None };
    let (tool, input) = (one_line(tool), one_line(input));
    Some(
        cut(&format!("▸ {tool} (by the provider) {input}"), columns.unwrap_or(UNKNOWN)).trim_end().to_owned(),
    )
}

/// What a use gave; none where the block says nothing of that.
pub(crate) struct Gave<'b> {
    pub(crate) tool: &'b str,
    pub(crate) status: ResultStatus,
    /// The beginning of it; empty where the provider does not show it.
    pub(crate) text: &'b str,
}

pub(crate) fn gave(block: &ProviderBlock) -> Option<Gave<'_>> {
    match &block.part {
        ProviderPart::Use { tool, result: Some(status), .. } => {
            Some(Gave { tool, status: *status, text: "" })
        }
        ProviderPart::Result { tool, status, text, .. } => Some(Gave { tool, status: *status, text }),
        ProviderPart::Use { result: None, .. } | ProviderPart::Citations(_) => None,
    }
}

impl Gave<'_> {
    pub(crate) fn head(&self) -> String {
        let how = if self.status == ResultStatus::Ok { "completed" } else { "failed" };
        format!("▪ {}: {how}", one_line(self.tool))
    }

    /// All of it in one line.
    pub(crate) fn line(&self, columns: Option<usize>) -> String {
        let (head, text) = (self.head(), one_line(self.text));
        let line = if text.is_empty() { head } else { format!("{head}: {text}") };
        cut(&line, columns.unwrap_or(UNKNOWN))
    }
}

/// Where an answer is from: each place once, the first ones in lines of their own; none if no place is named. A title that does
/// not fit beside its address is above it, and an address is never cut.
pub(crate) fn sources<'m>(
    citations: impl Iterator<Item = &'m Citation>,
    columns: Option<usize>,
) -> Option<String> {
    const SHOWN: usize = 8;
    let mut known = HashSet::new();
    let mut lines = Vec::new();
    for citation in citations {
        let [url, title] = [&citation.url, &citation.title]
            .map(|text| text.as_deref().map(one_line).filter(|text| !text.is_empty()));
        let Some(place) = url.clone().or_else(|| title.clone()) else { continue };
        if !known.insert(place) || known.len() > SHOWN {
            continue;
        }
        let lead = format!("  {}. ", known.len());
        let room = columns.unwrap_or(usize::MAX).saturating_sub(lead.len());
        match (title, url) {
            (Some(title), Some(url)) if title.width() + url.width() + 2 > room => {
                lines.push(format!("{lead}{}", cut(&title, room)));
                lines.push(format!("{}{url}", " ".repeat(lead.len())));
            }
            (Some(title), Some(url)) => lines.push(format!("{lead}{title}  {url}")),
            (Some(title), None) => lines.push(format!("{lead}{}", cut(&title, room))),
            (None, url) => lines.push(format!("{lead}{}", url.unwrap_or_default())),
        }
    }
    let more = known.len().saturating_sub(SHOWN);
    if more > 0 {
        lines.push(format!("  … and {more} more"));
    }
    (!lines.is_empty()).then(|| format!("sources:\n{}", lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn used(tool: &str, input: &str, result: Option<ResultStatus>) -> ProviderBlock {
        let (id, tool, input) = ("u".into(), tool.into(), input.into());
        ProviderBlock::new("w", ProviderPart::Use { id, tool, input, result }, Value::Null)
    }

    fn cited(url: &str, title: &str) -> Citation {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Citation::new(some(url), some(title), None)
    }

    /// S4.24: a use is one line that fits, whatever it was given, and hides nothing.
    #[test]
    fn a_use_is_one_line() {
        let code = used("code_execution", "import math\nprint(math.pi)\u{1b}[2J", None);
        let line = begun(&code, None).unwrap();
        assert!(line.starts_with("▸ code_execution (by the provider) import math print(math.pi)"), "{line}");
        assert!(!line.contains(['\n', '\u{1b}']), "{line}");
        assert_eq!(begun(&code, Some(40)).unwrap(), "▸ code_execution (by the provider) impo…");
        assert_eq!(begun(&used("web_search", "", None), None).unwrap(), "▸ web_search (by the provider)");
        assert!(gave(&code).is_none());
        let failed = used("web_search", "x", Some(ResultStatus::Error));
        assert_eq!(gave(&failed).unwrap().line(None), "▪ web_search: failed");
    }

    /// S4.24: each source is there once, its address whole; of very many the first are there and the others are counted.
    #[test]
    fn sources_are_a_short_list() {
        let (long, page) = ("https://example.com/a/rather/long/path/to/one/page", "https://example.com/b");
        let all =
            [cited(long, "A page of some name"), cited(page, "B"), cited(long, "A"), cited("", "notes.pdf")];
        let wide = "sources:\n  1. A page of some name  https://example.com/a/rather/long/path/to/one/page\n  2. B  https://example.com/b\n  3. notes.pdf";
        assert_eq!(sources(all.iter(), Some(200)).unwrap(), wide);
        assert_eq!(sources(all.iter(), None).unwrap(), wide);
        let narrow = "sources:\n  1. A page of some name\n     https://example.com/a/rather/long/path/to/one/page\n  2. B  https://example.com/b\n  3. notes.pdf";
        assert_eq!(sources(all.iter(), Some(60)).unwrap(), narrow);
        let many: Vec<Citation> = (0..20).map(|n| cited(&format!("https://example.com/{n}"), "")).collect();
        let shown = sources(many.iter(), Some(60)).unwrap();
        assert_eq!(shown.lines().count(), 10);
        assert!(shown.ends_with("  8. https://example.com/7\n  … and 12 more"), "{shown}");
        assert_eq!(sources([cited("", "")].iter(), None), None);
    }
}
