//! `xtask picture`: what a terminal shows, as text with its colours, drawn as an SVG.
//!
//! It reads what `tmux capture-pane -e -p` writes: lines, with styles as `ESC [ … m` and nothing else that is drawn.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

mod colours;
mod style;

use colours::Theme;
use style::Style;

/// Columns of a picture, if it is not said.
const COLUMNS: usize = 80;
const CELL: f64 = 8.43;
const ROW: f64 = 18.0;
const SIZE: f64 = 14.0;
const MARGIN: f64 = 16.0;
const BAR: f64 = 28.0;

/// Draws one file into another; with a title in the bar.
pub(crate) fn draw(args: &[String]) -> Result<()> {
    const USAGE: &str = "usage: cargo xtask picture FROM.ansi TO.svg TITLE [COLUMNS [light|dark]]";
    let (from, to, title, rest) = match args {
        [from, to, title, rest @ ..] if rest.len() <= 2 => (from, to, title, rest),
        _ => anyhow::bail!(USAGE),
    };
    let columns = rest.first().map_or(Ok(COLUMNS), |columns| columns.parse()).context(USAGE)?;
    let theme = match rest.get(1).map(String::as_str) {
        None | Some("dark") => Theme::Dark,
        Some("light") => Theme::Light,
        Some(_) => anyhow::bail!(USAGE),
    };
    let text = std::fs::read_to_string(from).with_context(|| format!("{from} cannot be read"))?;
    std::fs::write(to, svg(&text, title, columns, theme)).with_context(|| format!("{to} cannot be written"))
}

fn svg(text: &str, title: &str, columns: usize, theme: Theme) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let (width, height) = (across(columns) + 2.0 * MARGIN, across_rows(lines.len()) + 2.0 * MARGIN + BAR);
    let (back, button, bar) = (theme.back(), theme.button(), theme.bar());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{back}\"/>\n\
         <circle cx=\"18\" cy=\"16\" r=\"5\" fill=\"{button}\"/><circle cx=\"36\" cy=\"16\" r=\"5\" fill=\"{button}\"/><circle cx=\"54\" cy=\"16\" r=\"5\" fill=\"{button}\"/>\n\
         <g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"{SIZE}\">\n\
         <text x=\"76\" y=\"21\" fill=\"{bar}\">{}</text>\n",
        escaped(title)
    );
    let mut style = Style::default();
    for (row, line) in lines.iter().enumerate() {
        draw_line(line, BAR + MARGIN + across_rows(row), theme, &mut style, &mut out);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

#[expect(clippy::cast_precision_loss, reason = "a row has few columns")]
fn across(columns: usize) -> f64 {
    columns as f64 * CELL
}

#[expect(clippy::cast_precision_loss, reason = "a screen has few rows")]
fn across_rows(rows: usize) -> f64 {
    rows as f64 * ROW
}

fn draw_line(line: &str, y: f64, theme: Theme, style: &mut Style, out: &mut String) {
    let mut column = 0;
    let mut parts = line.split('\x1b');
    draw_run(parts.next().unwrap_or_default(), (y, &mut column), *style, theme, out);
    for part in parts {
        // The end of a link; its address is no text of the screen.
        if let Some(text) = part.strip_prefix('\\') {
            draw_run(text, (y, &mut column), *style, theme, out);
            continue;
        }
        let Some((codes, text)) = part.strip_prefix('[').and_then(|part| part.split_once('m')) else {
            continue;
        };
        style.apply(codes);
        draw_run(text, (y, &mut column), *style, theme, out);
    }
}

fn draw_run(text: &str, (y, column): (f64, &mut usize), style: Style, theme: Theme, out: &mut String) {
    let wide: usize = text.chars().map(cells).sum();
    if let Some(back) = style.back(theme).filter(|_| wide > 0) {
        let (x, top, width) = (MARGIN + across(*column), y, across(wide));
        put(
            out,
            &format!(
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{ROW}\" fill=\"{back}\"/>"
            ),
        );
    }
    // A letter of two columns stands on its own: fonts differ in how wide it is.
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if cells(first) == 2 {
            first.len_utf8()
        } else {
            rest.find(|letter| cells(letter) == 2).unwrap_or(rest.len())
        };
        let (piece, after) = rest.split_at(end);
        draw_words(piece, (y, *column), style, theme, out);
        *column += piece.chars().map(cells).sum::<usize>();
        rest = after;
    }
}

fn draw_words(text: &str, (y, column): (f64, usize), style: Style, theme: Theme, out: &mut String) {
    let lead = text.chars().take_while(|c| *c == ' ').count();
    let words = text.trim();
    if words.is_empty() {
        return;
    }
    let (x, line) = (MARGIN + across(column + lead), y + 0.75 * ROW);
    let (fill, looks) = (style.fill(theme), style.attributes());
    let words = escaped(words).replace(' ', "\u{a0}");
    put(out, &format!("<text x=\"{x:.1}\" y=\"{line:.1}\" fill=\"{fill}\"{looks}>{words}</text>"));
}

/// The columns of a letter, as terminals count them, roughly: none for a mark on the one before it, two for East Asian letters and emoji.
fn cells(letter: char) -> usize {
    match letter {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

fn put(out: &mut String, element: &str) {
    if writeln!(out, "{element}").is_err() {
        // Writing to a string does not fail.
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, theme: Theme) -> String {
        svg(text, "t & u", COLUMNS, theme)
    }

    #[test]
    fn styles_become_attributes_and_text_stays() {
        let drawn = drawn("a \x1b[1;33mb <c>\x1b[0m\n  \x1b[2md", Theme::Dark);
        assert!(drawn.contains("fill=\"#e3b341\" font-weight=\"bold\">b\u{a0}&lt;c&gt;</text>"), "{drawn}");
        assert!(drawn.contains(&format!("x=\"{:.1}\" y", MARGIN + 2.0 * CELL)), "{drawn}");
        assert!(drawn.contains("fill=\"#8b949e\">d</text>") && drawn.contains("t &amp; u"), "{drawn}");
    }

    #[test]
    fn what_is_reversed_has_a_back_and_the_many_colours_are_drawn() {
        let drawn = drawn("\x1b[7;31mx y\x1b[27;39mz\x1b[38;5;208mo\x1b[38;2;1;2;3mp\x1b[9mq", Theme::Light);
        let back = format!("width=\"{:.1}\" height=\"18\" fill=\"#cc0000\"/>", 3.0 * CELL);
        assert!(drawn.contains(&back) && drawn.contains("fill=\"#ffffff\">x\u{a0}y<"), "{drawn}");
        assert!(drawn.contains("fill=\"#1f2328\">z<") && drawn.contains("fill=\"#ff8700\">o<"), "{drawn}");
        assert!(drawn.contains("fill=\"#010203\">p<"), "{drawn}");
        assert!(drawn.contains("text-decoration=\"line-through\">q<"), "{drawn}");
    }

    #[test]
    fn a_wide_letter_takes_two_columns_and_a_link_none() {
        let drawn = drawn("\x1b]8;;https://a.b/\x1b\\日x\x1b]8;;\x1b\\y", Theme::Dark);
        assert!(
            drawn.contains(&format!("x=\"{:.1}\" y=\"57.5\" fill=\"#e6edf3\">x<", MARGIN + 2.0 * CELL)),
            "{drawn}"
        );
        assert!(
            drawn.contains(&format!("x=\"{:.1}\" y=\"57.5\" fill=\"#e6edf3\">y<", MARGIN + 3.0 * CELL)),
            "{drawn}"
        );
        assert!(!drawn.contains("a.b"), "{drawn}");
    }
}
