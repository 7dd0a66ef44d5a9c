//! The text of a block: code, bold, italic, strike-through and links, as pieces.
//!
//! **Invariants**: the text is one line for the parser, behind a letter that begins no block, so nothing in it is a block, a definition or a
//! line of HTML; what the parser makes of a character reference is made harmless before it is measured.

use std::{
    path::{Component, Path},
    sync::Arc,
};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use ratatui_core::style::{Modifier, Style};

use super::{DIM, look::Look, wrap::StyledText};
use crate::output;

/// What stands for the end of a line while the text is parsed. It is a blank for the parser, and never in a text that was made harmless.
const BREAK: char = '\u{c}';
const GUARD: char = '.';

/// The pieces of a text of one or more lines.
pub(crate) fn pieces(text: &str, base: Style, look: &Look) -> Vec<StyledText> {
    let mut line = String::with_capacity(text.len() + 1);
    line.push(GUARD);
    for (index, part) in text.split('\n').enumerate() {
        if index > 0 {
            // Two blanks or a backslash at the end of a line break it: all lines are broken here.
            let kept = line.trim_end_matches(' ').len();
            line.truncate(kept.max(GUARD.len_utf8()));
            if line.ends_with('\\') && !line.ends_with("\\\\") {
                line.pop();
            }
            line.push(BREAK);
        }
        line.push_str(if index > 0 { part.trim_start_matches(' ') } else { part });
    }
    let mut reading = InlineReader { look, base, styles: Vec::new(), links: Vec::new(), pieces: Vec::new() };
    for event in Parser::new_ext(&line, Options::ENABLE_STRIKETHROUGH) {
        reading.event(event);
    }
    reading.finish()
}

struct InlineReader<'a> {
    look: &'a Look,
    base: Style,
    styles: Vec<Style>,
    /// Where the open links lead, and where their text begins.
    links: Vec<(Arc<str>, usize)>,
    pieces: Vec<StyledText>,
}

impl InlineReader<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::Strong) => self.open(Modifier::BOLD, "**"),
            Event::Start(Tag::Emphasis) => self.open(Modifier::ITALIC, "*"),
            Event::Start(Tag::Strikethrough) => self.open(Modifier::CROSSED_OUT, "~~"),
            Event::End(TagEnd::Strong) => self.close("**"),
            Event::End(TagEnd::Emphasis) => self.close("*"),
            Event::End(TagEnd::Strikethrough) => self.close("~~"),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.links.push((dest_url.as_ref().into(), self.pieces.len()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(),
            Event::Code(code) if self.look.keeps_marks() => self.text(&format!("`{code}`"), Style::new()),
            Event::Code(code) => self.text(&code, self.look.code()),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text, Style::new()),
            Event::SoftBreak | Event::HardBreak => self.text("\n", Style::new()),
            _ => {}
        }
    }

    fn open(&mut self, modifier: Modifier, mark: &str) {
        self.mark(mark);
        self.styles.push(Style::new().add_modifier(modifier));
    }

    fn close(&mut self, mark: &str) {
        self.styles.pop();
        self.mark(mark);
    }

    /// A mark stays where no style can stand for it.
    fn mark(&mut self, mark: &str) {
        if self.look.keeps_marks() {
            self.text(mark, Style::new());
        }
    }

    fn text(&mut self, text: &str, own: Style) {
        let text = output::plain(&text.replace(BREAK, "\n")).replace('\t', super::TAB);
        let style = self.styles.iter().fold(self.base, |style, more| style.patch(*more)).patch(own);
        // A link begins another piece.
        let is_inside = self.links.last().is_none_or(|(_, from)| *from < self.pieces.len());
        match self.pieces.last_mut().filter(|last| is_inside && last.style == style && last.link.is_none()) {
            Some(last) => last.text.push_str(&text),
            None => self.pieces.push(StyledText::new(text, style)),
        }
    }

    /// The link's text leads there, or its target stands behind it.
    fn end_link(&mut self) {
        let Some((target, from)) = self.links.pop() else { return };
        let from = from.min(self.pieces.len());
        let shown: String = self.pieces[from..].iter().map(|piece| piece.text.as_str()).collect();
        let checked = checked(&target, self.look.root.as_deref());
        if let (Some(checked), true) = (&checked, self.look.has_links) {
            for piece in &mut self.pieces[from..] {
                piece.style = piece.style.patch(self.look.link());
                piece.link = Some(Arc::clone(checked));
            }
            return;
        }
        let is_said = shown == *target || target.strip_prefix("mailto:") == Some(shown.as_str());
        if !is_said && !target.is_empty() {
            let dim = if self.look.keeps_marks() { Style::new() } else { DIM };
            let target = output::plain(&target).replace(['\n', '\t'], " ");
            self.pieces.push(StyledText::new(format!(" ({target})"), dim));
        }
    }

    fn finish(mut self) -> Vec<StyledText> {
        if let Some(first) = self.pieces.first_mut() {
            first.text.remove(0);
        }
        self.pieces.retain(|piece| !piece.text.is_empty());
        self.pieces
    }
}

/// The address as a terminal may get it: `http`, `https`, `mailto`, or a file under the root, of visible ASCII characters alone.
pub(crate) fn checked(target: &str, root: Option<&Path>) -> Option<Arc<str>> {
    const LONGEST: usize = 2000;
    if target.is_empty() || target.len() > LONGEST || target.chars().any(char::is_control) {
        return None;
    }
    let scheme = target.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    });
    match scheme.map(str::to_ascii_lowercase).as_deref() {
        Some("http" | "https") if target.contains("://") => Some(encoded(target).into()),
        Some("mailto") => Some(encoded(target).into()),
        Some("file") => {
            file(target.get("file:".len()..)?.strip_prefix("//").filter(|path| path.starts_with('/'))?, root?)
        }
        Some(_) => None,
        None if target.starts_with(['#', '?']) || target.starts_with("//") => None,
        None => file(target, root?),
    }
}

/// A file that is named under the root, without its fragment. What is encoded in a name could lead elsewhere.
fn file(path: &str, root: &Path) -> Option<Arc<str>> {
    let path = Path::new(path.split(['#', '?']).next()?);
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::RootDir | Component::CurDir);
    let whole = root.join(path);
    let is_under = whole.strip_prefix(root).is_ok_and(|rest| rest.components().all(is_plain));
    if !is_under || path.as_os_str().as_encoded_bytes().contains(&b'%') {
        return None;
    }
    Some(format!("file://{}", encoded(whole.to_str()?)).into())
}

/// With everything but visible ASCII characters percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'!'..=b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, look: &Look) -> String {
        pieces(text, Style::new(), look).iter().map(|piece| piece.text.as_str()).collect()
    }

    /// S12.54
    #[test]
    fn nothing_in_a_text_is_a_block_or_lost() {
        for text in [
            "# a",
            "> a",
            "- a",
            "1. a",
            "[a]: http://b",
            "    a",
            "***",
            "a\n> b",
            "a\n- b",
            "a\n===",
            "<div>\na",
            "a\n\u{2028}",
        ] {
            let plain = output::plain(text);
            let lines = plain.split('\n').collect::<Vec<_>>().join("\n");
            assert_eq!(shown(text, &Look::default()), lines, "{text:?}");
        }
    }

    /// S12.55, S8.12: a character reference is no way around the check.
    #[test]
    fn a_character_reference_is_no_control_character() {
        assert!(!shown("&#27;[2J &#155; &amp;", &Look::default()).contains('\u{9b}'));
        assert!(shown("&#27;[2J", &Look::default()).starts_with("\\u{1b}[2J"));
    }

    /// S12.55: only addresses of the four kinds are links, and a link's text never hides another address from a terminal without links.
    #[test]
    fn a_target_is_checked() {
        let root = Path::new("/srv/project");
        let under = |target| checked(target, Some(root)).map(|target| target.to_string());
        for good in ["https://example.org/a?b#c", "http://a/", "HTTPS://a/", "mailto:a@b.c"] {
            assert_eq!(under(good).as_deref(), Some(good));
        }
        assert_eq!(under("src/main.rs").as_deref(), Some("file:///srv/project/src/main.rs"));
        assert_eq!(under("./a b#L3").as_deref(), Some("file:///srv/project/./a%20b"));
        assert_eq!(under("file:///srv/project/a").as_deref(), Some("file:///srv/project/a"));
        assert_eq!(under("https://ü/").as_deref(), Some("https://%C3%BC/"));
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "../secret",
            "a/../../secret",
            "/etc/passwd",
            "%2e%2e/secret",
            "file://host/srv/project/a",
            "vscode://x",
            "data:text/html,x",
            "#a",
            "//host/a",
            "https:a",
            "https://a\u{7}b",
            "https://a\u{1b}\\b",
            "",
        ] {
            assert_eq!(under(bad), None, "{bad}");
        }
        assert_eq!(checked("src/main.rs", None), None);
        assert_eq!(checked(&format!("https://{}", "a".repeat(5000)), None), None);
    }

    /// S12.55
    #[test]
    fn a_link_is_one_where_it_can_be_and_shows_its_address_elsewhere() {
        let look = Look { has_links: true, ..Look::default() };
        let read = pieces("see [the *book*](https://a.b/c) and <https://d.e>.", Style::new(), &look);
        let targets: Vec<_> = read.iter().map(|piece| (piece.text.as_str(), piece.link.as_deref())).collect();
        assert_eq!(targets[1..3], [("the ", Some("https://a.b/c")), ("book", Some("https://a.b/c"))]);
        assert_eq!((targets[0], targets[3].1), (("see ", None), None));
        assert_eq!(
            shown("see [it](https://a.b/c), <https://d.e>", &Look::default()),
            "see it (https://a.b/c), https://d.e"
        );
        assert_eq!(shown("[it](javascript:x)", &look), "it (javascript:x)", "what is no link is seen");
    }

    #[test]
    fn without_styles_the_marks_stay() {
        let look = Look { colours: super::super::look::Colours::No, ..Look::default() };
        for text in ["a **b** *c* ~~d~~ `e`", "2 * 3 * 4"] {
            assert_eq!(shown(text, &look), text);
        }
    }
}
