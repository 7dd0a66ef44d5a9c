//! What one line of text begins, if it is no container: a fence of code, a heading, a rule.

use ratatui_core::style::{Modifier, Style};

use super::highlight::Lexer;

/// A block of code: the fence that ends it, and what colours it.
#[derive(Clone, Debug)]
pub(super) struct Code {
    pub(super) fence: char,
    pub(super) length: usize,
    pub(super) lexer: Option<Lexer>,
}

/// Whether a line of text begins a block that is no container.
pub(super) fn begins(text: &str) -> bool {
    fence(text).is_some() || heading(text).is_some() || is_rule(text)
}

pub(super) fn fence(text: &str) -> Option<Code> {
    const LEAST: usize = 3;
    let fence = text.chars().next().filter(|letter| "`~".contains(*letter))?;
    let length = text.len() - text.trim_start_matches(fence).len();
    let name = text[length..].trim();
    if length < LEAST || fence == '`' && name.contains('`') {
        return None;
    }
    let name = name.split([' ', ',', '{', ':']).next().unwrap_or_default();
    Some(Code { fence, length, lexer: Lexer::of(name) })
}

/// The level of a heading, and its text.
pub(super) fn heading(text: &str) -> Option<(usize, &str)> {
    let title = text.trim_start_matches('#');
    let level = text.len() - title.len();
    let is_heading = (1..=6).contains(&level) && (title.is_empty() || title.starts_with(' '));
    let bare = title.trim();
    let closed = bare.trim_end_matches('#');
    let title = if closed.is_empty() || closed.ends_with(' ') { closed.trim_end() } else { bare };
    is_heading.then_some((level, title))
}

/// The level of the heading that this line underlines.
pub(super) fn underline(text: &str) -> Option<usize> {
    let text = text.trim_end();
    match text.bytes().next()? {
        b'=' if text.bytes().all(|byte| byte == b'=') => Some(1),
        b'-' if text.bytes().all(|byte| byte == b'-') => Some(2),
        _ => None,
    }
}

pub(super) fn heading_style(level: usize) -> Style {
    let style = Style::new().add_modifier(Modifier::BOLD);
    match level {
        1 => style.add_modifier(Modifier::UNDERLINED),
        2 => style,
        _ => style.add_modifier(Modifier::ITALIC),
    }
}

pub(super) fn is_rule(text: &str) -> bool {
    const LEAST: usize = 3;
    let first = text.bytes().next().unwrap_or_default();
    b"-*_".contains(&first)
        && text.bytes().all(|byte| byte == first || byte == b' ')
        && text.bytes().filter(|byte| *byte == first).count() >= LEAST
}
