//! How Markdown looks in this terminal: its colours, its background, and whether it knows links. Nothing is asked of the terminal:
//! the environment and the config file say it.

use std::path::PathBuf;

use ratatui_core::style::{Color, Modifier, Style};
use serde::Deserialize;

/// The background of the terminal. Exhaustive: light or dark.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Theme {
    Light,
    Dark,
}

/// The colours of the terminal. Exhaustive: none are wanted, the 16 of its palette, 256, or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colours {
    No,
    #[default]
    Sixteen,
    Many,
    All,
}

/// How Markdown looks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    pub(crate) colours: Colours,
    /// The background, if it is known.
    pub(crate) theme: Option<Theme>,
    /// Whether the terminal is known to show links.
    pub(crate) has_links: bool,
    /// Where files may be linked to.
    pub(crate) root: Option<PathBuf>,
}

/// What a word of code is. Exhaustive: each has a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Keyword,
    /// A type, a key, a constant, or a variable of a shell.
    Name,
    Text,
    Number,
    Comment,
    Removed,
    Added,
}

impl Look {
    /// That of this environment: `get` reads a variable. The theme of the config file outranks it.
    pub(crate) fn of(
        get: impl Fn(&str) -> Option<String>,
        theme: Option<Theme>,
        root: Option<PathBuf>,
    ) -> Self {
        let get = |name: &str| get(name).filter(|value| !value.is_empty());
        let term = get("TERM").unwrap_or_default();
        let is_true = get("COLORTERM").is_some_and(|value| value == "truecolor" || value == "24bit");
        let colours = match () {
            () if get("NO_COLOR").is_some() || term == "dumb" => Colours::No,
            () if is_true || term.ends_with("-direct") => Colours::All,
            () if term.contains("256color") || term.contains("kitty") || term.contains("ghostty") => {
                Colours::Many
            }
            () => Colours::Sixteen,
        };
        let theme = theme.or_else(|| get("COLORFGBG").as_deref().and_then(background));
        let has_links = colours != Colours::No && knows_links(&term, &get);
        Self { colours, theme, has_links, root }
    }

    /// The background, where the terminal has colours that are chosen for it.
    pub(crate) fn background(&self) -> Option<Theme> {
        self.theme.filter(|_| matches!(self.colours, Colours::Many | Colours::All))
    }

    /// Whether marks stay where they are written, because no style can stand for them.
    pub(crate) fn keeps_marks(&self) -> bool {
        self.colours == Colours::No
    }

    /// Code within a line, and code in a language that is not known.
    pub(crate) fn code(&self) -> Style {
        match (self.colours, self.theme) {
            (Colours::All | Colours::Many, Some(Theme::Light)) => self.colour(24, (0x00, 0x5f, 0x87)),
            _ => super::CODE,
        }
    }

    pub(crate) fn link(&self) -> Style {
        let style = Style::new().add_modifier(Modifier::UNDERLINED);
        match (self.colours, self.theme) {
            (Colours::All | Colours::Many, Some(Theme::Light)) => {
                style.patch(self.colour(25, (0x00, 0x5f, 0xaf)))
            }
            (Colours::All | Colours::Many, Some(Theme::Dark)) => {
                style.patch(self.colour(75, (0x5f, 0xaf, 0xff)))
            }
            _ => style,
        }
    }

    /// The style of a word of code. The 16 colours of the palette are chosen so that they can be read on both backgrounds.
    pub(crate) fn token(&self, token: Token) -> Style {
        let dim = Style::new().add_modifier(Modifier::DIM);
        match (self.background(), token) {
            (None, Token::Keyword) => Style::new().fg(Color::Magenta),
            (None, Token::Name | Token::Number) => Style::new().fg(Color::Cyan),
            (None | Some(_), Token::Removed) => Style::new().fg(Color::Red),
            (None | Some(_), Token::Added) | (None, Token::Text) => Style::new().fg(Color::Green),
            (None, Token::Comment) => dim,
            (Some(Theme::Dark), Token::Keyword) => self.colour(176, (0xd7, 0x87, 0xd7)),
            (Some(Theme::Dark), Token::Name) => self.colour(117, (0x87, 0xd7, 0xff)),
            (Some(Theme::Dark), Token::Text) => self.colour(150, (0xaf, 0xd7, 0x87)),
            (Some(Theme::Dark), Token::Number) => self.colour(216, (0xff, 0xaf, 0x87)),
            (Some(Theme::Dark), Token::Comment) => self.colour(245, (0x8a, 0x8a, 0x8a)),
            (Some(Theme::Light), Token::Keyword) => self.colour(90, (0x87, 0x00, 0x87)),
            (Some(Theme::Light), Token::Name) => self.colour(25, (0x00, 0x5f, 0xaf)),
            (Some(Theme::Light), Token::Text) => self.colour(22, (0x00, 0x5f, 0x00)),
            (Some(Theme::Light), Token::Number) => self.colour(130, (0xaf, 0x5f, 0x00)),
            (Some(Theme::Light), Token::Comment) => self.colour(242, (0x6c, 0x6c, 0x6c)),
        }
    }

    fn colour(&self, index: u8, (red, green, blue): (u8, u8, u8)) -> Style {
        Style::new().fg(match self.colours {
            Colours::All => Color::Rgb(red, green, blue),
            _ => Color::Indexed(index),
        })
    }
}

/// A colour of the terminal's palette as it can be read on this background: terminals with a light one show yellow, green and cyan
/// too pale for text, and those with a dark one show blue too dark.
pub(crate) fn readable(colour: Color, theme: Theme) -> Color {
    Color::Indexed(match (theme, colour) {
        (Theme::Light, Color::Red) => 124,
        (Theme::Light, Color::Green) => 22,
        (Theme::Light, Color::Yellow) => 94,
        (Theme::Light, Color::Blue) => 25,
        (Theme::Light, Color::Magenta) => 90,
        (Theme::Light, Color::Cyan) => 24,
        (Theme::Dark, Color::Blue) => 75,
        _ => return colour,
    })
}

/// `COLORFGBG` is the number of the colour of the text and that of the background, as in `15;0`.
fn background(value: &str) -> Option<Theme> {
    match value.rsplit(';').next()?.parse::<u8>().ok()? {
        0..=6 | 8 => Some(Theme::Dark),
        7 | 9..=15 => Some(Theme::Light),
        _ => None,
    }
}

/// Whether it is a terminal that shows links (OSC 8). Inside a multiplexer the variables of the terminal outside say nothing.
fn knows_links(term: &str, get: &impl Fn(&str) -> Option<String>) -> bool {
    const PROGRAMS: [&str; 8] =
        ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "Tabby", "WarpTerminal"];
    let program = get("TERM_PROGRAM").unwrap_or_default();
    if get("TMUX").is_some() {
        const FIRST: (u32, u32) = (3, 4);
        let version = get("TERM_PROGRAM_VERSION").unwrap_or_default();
        let mut numbers =
            version.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse().ok());
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        return program == "tmux" && version >= FIRST;
    }
    if get("STY").is_some() || term.starts_with("screen") {
        return false;
    }
    let number = |name| get(name).and_then(|value| value.parse::<u32>().ok()).unwrap_or(0);
    PROGRAMS.contains(&program.as_str())
        || ["xterm-kitty", "xterm-ghostty", "foot", "alacritty", "wezterm", "contour"]
            .iter()
            .any(|known| term.starts_with(known))
        || get("WT_SESSION").is_some()
        || number("VTE_VERSION") >= 5000
        || number("KONSOLE_VERSION") >= 201_200
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(variables: &[(&str, &str)]) -> Look {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Look::of(get, None, None)
    }

    /// S12.55
    #[test]
    fn the_environment_says_which_colours_and_which_background() {
        assert_eq!(look(&[("TERM", "xterm")]).colours, Colours::Sixteen);
        assert_eq!(look(&[("TERM", "xterm-256color")]).colours, Colours::Many);
        assert_eq!(look(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")]).colours, Colours::All);
        assert_eq!(
            look(&[("TERM", "xterm"), ("COLORTERM", "truecolor"), ("NO_COLOR", "1")]).colours,
            Colours::No
        );
        for (value, theme) in [
            ("15;0", Some(Theme::Dark)),
            ("0;15", Some(Theme::Light)),
            ("0;default;15", Some(Theme::Light)),
            ("x", None),
        ] {
            assert_eq!(look(&[("TERM", "xterm"), ("COLORFGBG", value)]).theme, theme, "{value}");
        }
        let get = |_: &str| Some("15;0".to_owned());
        assert_eq!(
            Look::of(get, Some(Theme::Light), None).theme,
            Some(Theme::Light),
            "the config file outranks it"
        );
    }

    /// S12.55: each stands out from a white background with a contrast of at least 4.5, as WCAG counts it.
    #[test]
    fn the_colours_of_the_palette_can_be_read_on_a_light_background() {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let step = |digit: u8| if digit == 0 { 0 } else { 55 + 40 * digit };
        for colour in [Color::Red, Color::Green, Color::Yellow, Color::Blue, Color::Magenta, Color::Cyan] {
            let Color::Indexed(index @ 16..=231) = readable(colour, Theme::Light) else {
                panic!("{colour} stays as it is")
            };
            let [red, green, blue] = [(index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6].map(step);
            let light = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
            assert!(1.05 / (light + 0.05) >= 4.5, "{colour}: {light}");
        }
    }

    /// S12.55
    #[test]
    fn links_are_for_terminals_that_are_known_to_show_them() {
        assert!(look(&[("TERM", "xterm-kitty")]).has_links);
        assert!(look(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")]).has_links);
        assert!(!look(&[("TERM", "xterm-256color")]).has_links);
        let tmux = |version| {
            look(&[
                ("TERM", "tmux-256color"),
                ("VTE_VERSION", "7600"),
                ("TMUX", "x"),
                ("TERM_PROGRAM", "tmux"),
                ("TERM_PROGRAM_VERSION", version),
            ])
        };
        assert!(!tmux("3.3a").has_links && tmux("3.4").has_links && tmux("3.10b").has_links);
        assert!(!look(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")]).has_links);
    }
}
