//! `xtask picture`: what a terminal shows, as text with its colours, drawn as an SVG.
//!
//! It reads what `tmux capture-pane -e -p` writes: lines, with styles as `ESC [ … m` and nothing else.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

const COLUMNS: usize = 80;
const CELL: f64 = 8.43;
const ROW: f64 = 18.0;
const SIZE: f64 = 14.0;
const MARGIN: f64 = 16.0;
const BAR: f64 = 28.0;

/// Draws one file into another; with a title in the bar.
pub(crate) fn draw(args: &[String]) -> Result<()> {
    let [from, to, title] = args else { anyhow::bail!("usage: cargo xtask picture FROM.ansi TO.svg TITLE") };
    let text = std::fs::read_to_string(from).with_context(|| format!("{from} cannot be read"))?;
    std::fs::write(to, svg(&text, title)).with_context(|| format!("{to} cannot be written"))
}

fn svg(text: &str, title: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    #[expect(clippy::cast_precision_loss, reason = "a screen has few rows")]
    let (width, height) =
        (COLUMNS as f64 * CELL + 2.0 * MARGIN, lines.len() as f64 * ROW + 2.0 * MARGIN + BAR);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n\
         <circle cx=\"18\" cy=\"16\" r=\"5\" fill=\"#3a3f4b\"/><circle cx=\"36\" cy=\"16\" r=\"5\" fill=\"#3a3f4b\"/><circle cx=\"54\" cy=\"16\" r=\"5\" fill=\"#3a3f4b\"/>\n\
         <g font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"{SIZE}\">\n\
         <text x=\"76\" y=\"21\" fill=\"#7d8590\">{}</text>\n",
        escaped(title)
    );
    let mut style = Style::default();
    for (row, line) in lines.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a screen has few rows")]
        let y = BAR + MARGIN + ROW * (row as f64 + 0.75);
        draw_line(line, y, &mut style, &mut out);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// How the next letters look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Style {
    weight: Weight,
    is_italic: bool,
    colour: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Weight {
    #[default]
    Plain,
    Bold,
    Dim,
}

impl Style {
    fn apply(&mut self, code: u8) {
        match code {
            0 => *self = Self::default(),
            1 => self.weight = Weight::Bold,
            2 => self.weight = Weight::Dim,
            3 => self.is_italic = true,
            22 => self.weight = Weight::Plain,
            23 => self.is_italic = false,
            31..=36 => self.colour = Some(code),
            39 => self.colour = None,
            _ => {}
        }
    }

    fn fill(self) -> &'static str {
        match (self.colour, self.weight) {
            (Some(31), _) => "#ff7b72",
            (Some(32), _) => "#7ee787",
            (Some(33), _) => "#e3b341",
            (Some(34), _) => "#79c0ff",
            (Some(35), _) => "#d2a8ff",
            (Some(36), _) => "#76e3ea",
            (_, Weight::Dim) => "#8b949e",
            _ => "#e6edf3",
        }
    }
}

fn draw_line(line: &str, y: f64, style: &mut Style, out: &mut String) {
    let mut column = 0;
    let mut parts = line.split('\x1b');
    draw_run(parts.next().unwrap_or_default(), y, &mut column, *style, out);
    for part in parts {
        let Some((codes, text)) = part.strip_prefix('[').and_then(|part| part.split_once('m')) else {
            continue;
        };
        if codes.is_empty() {
            *style = Style::default();
        }
        codes.split(';').filter_map(|code| code.parse().ok()).for_each(|code| style.apply(code));
        draw_run(text, y, &mut column, *style, out);
    }
}

fn draw_run(text: &str, y: f64, column: &mut usize, style: Style, out: &mut String) {
    let lead = text.chars().take_while(|c| *c == ' ').count();
    let words = text.trim_end();
    #[expect(clippy::cast_precision_loss, reason = "a row has few columns")]
    let x = MARGIN + CELL * (*column + lead) as f64;
    *column += text.chars().count();
    if words.trim().is_empty() {
        return;
    }
    let weight = if style.weight == Weight::Bold { " font-weight=\"bold\"" } else { "" };
    let slant = if style.is_italic { " font-style=\"italic\"" } else { "" };
    let (fill, words) = (style.fill(), escaped(words.trim_start()).replace(' ', "\u{a0}"));
    if writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{fill}\"{weight}{slant}>{words}</text>").is_err()
    {
        // Writing to a string does not fail.
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_become_attributes_and_text_stays() {
        let drawn = svg("a \x1b[1;33mb <c>\x1b[0m\n  \x1b[2md", "t & u");
        assert!(drawn.contains("fill=\"#e3b341\" font-weight=\"bold\">b\u{a0}&lt;c&gt;</text>"), "{drawn}");
        assert!(drawn.contains(&format!("x=\"{:.1}\" y", MARGIN + 2.0 * CELL)), "{drawn}");
        assert!(drawn.contains("fill=\"#8b949e\">d</text>") && drawn.contains("t &amp; u"), "{drawn}");
    }
}
