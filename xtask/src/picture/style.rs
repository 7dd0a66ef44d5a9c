//! How letters of a picture look, and the codes that say it.

use super::colours::{Colour, Theme};

/// The lines below and through letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    is_underlined: bool,
    is_struck: bool,
}

/// How the next letters look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    weight: Weight,
    is_italic: bool,
    lines: Lines,
    is_reversed: bool,
    colour: Option<Colour>,
    back: Option<Colour>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Weight {
    #[default]
    Plain,
    Bold,
    Dim,
}

impl Style {
    /// Takes in the codes between `ESC [` and `m`.
    pub(super) fn apply(&mut self, codes: &str) {
        if codes.is_empty() {
            *self = Self::default();
        }
        let mut codes = codes.split(';').filter_map(|code| code.parse().ok());
        while let Some(code) = codes.next() {
            match code {
                38 => self.colour = extended(&mut codes),
                48 => self.back = extended(&mut codes),
                code => self.apply_one(code),
            }
        }
    }

    fn apply_one(&mut self, code: u8) {
        match code {
            0 => *self = Self::default(),
            1 => self.weight = Weight::Bold,
            2 => self.weight = Weight::Dim,
            3 => self.is_italic = true,
            4 => self.lines.is_underlined = true,
            7 => self.is_reversed = true,
            9 => self.lines.is_struck = true,
            22 => self.weight = Weight::Plain,
            23 => self.is_italic = false,
            24 => self.lines.is_underlined = false,
            27 => self.is_reversed = false,
            29 => self.lines.is_struck = false,
            30..=37 => self.colour = Some(Colour::Indexed(code - 30)),
            39 => self.colour = None,
            40..=47 => self.back = Some(Colour::Indexed(code - 40)),
            49 => self.back = None,
            90..=97 => self.colour = Some(Colour::Indexed(code - 82)),
            _ => {}
        }
    }

    /// The colour of the letters.
    pub(super) fn fill(self, theme: Theme) -> String {
        match self.is_reversed {
            true => self.back.map_or_else(|| theme.back().to_owned(), |back| theme.of(back)),
            false => self.ink(theme),
        }
    }

    /// What is behind the letters, if it is not the picture's own.
    pub(super) fn back(self, theme: Theme) -> Option<String> {
        match self.is_reversed {
            true => Some(self.ink(theme)),
            false => self.back.map(|back| theme.of(back)),
        }
    }

    fn ink(self, theme: Theme) -> String {
        match (self.colour, self.weight) {
            (Some(colour), _) => theme.of(colour),
            (None, Weight::Dim) => theme.dim().to_owned(),
            (None, _) => theme.text().to_owned(),
        }
    }

    /// The attributes of the text beside its colour.
    pub(super) fn attributes(self) -> String {
        let line = match (self.lines.is_underlined, self.lines.is_struck) {
            (true, true) => " text-decoration=\"underline line-through\"",
            (true, false) => " text-decoration=\"underline\"",
            (false, true) => " text-decoration=\"line-through\"",
            (false, false) => "",
        };
        let weight = if self.weight == Weight::Bold { " font-weight=\"bold\"" } else { "" };
        let slant = if self.is_italic { " font-style=\"italic\"" } else { "" };
        format!("{weight}{slant}{line}")
    }
}

/// The colour behind `38;5;N` or `38;2;R;G;B`.
fn extended(codes: &mut impl Iterator<Item = u8>) -> Option<Colour> {
    match codes.next()? {
        5 => codes.next().map(Colour::Indexed),
        2 => Some(Colour::Rgb(codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}
