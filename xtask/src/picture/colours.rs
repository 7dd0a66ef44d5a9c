//! The colours of a picture: those of its two themes, and the 256 that a number names.

/// What is behind the text. Exhaustive: dark or light.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Theme {
    Dark,
    Light,
}

/// A colour that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// The 16 of the palette. The light ones are those of Tango, which many terminals have: what cannot be read in them shows.
const DARK: [&str; 16] = [
    "#3a3f4b", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#e6edf3", "#6e7681",
    "#ffa198", "#7ee787", "#f2cc60", "#a5d6ff", "#e2c5ff", "#b3f0ff", "#ffffff",
];
const LIGHT: [&str; 16] = [
    "#2e3436", "#cc0000", "#4e9a06", "#c4a000", "#3465a4", "#75507b", "#06989a", "#d3d7cf", "#555753",
    "#ef2929", "#8ae234", "#fce94f", "#729fcf", "#ad7fa8", "#34e2e2", "#eeeeec",
];

impl Theme {
    pub(super) fn back(self) -> &'static str {
        if self == Self::Light { "#ffffff" } else { "#16181d" }
    }

    pub(super) fn text(self) -> &'static str {
        if self == Self::Light { "#1f2328" } else { "#e6edf3" }
    }

    pub(super) fn dim(self) -> &'static str {
        if self == Self::Light { "#848a91" } else { "#8b949e" }
    }

    pub(super) fn button(self) -> &'static str {
        if self == Self::Light { "#d0d7de" } else { "#3a3f4b" }
    }

    pub(super) fn bar(self) -> &'static str {
        if self == Self::Light { "#57606a" } else { "#7d8590" }
    }

    pub(super) fn of(self, colour: Colour) -> String {
        let palette = if self == Self::Light { &LIGHT } else { &DARK };
        match colour {
            Colour::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
            Colour::Indexed(index @ 16..=231) => {
                let step = |digit: u8| if digit == 0 { 0 } else { 55 + 40 * digit };
                let at = index - 16;
                format!("#{:02x}{:02x}{:02x}", step(at / 36), step(at / 6 % 6), step(at % 6))
            }
            Colour::Indexed(index @ 232..) => {
                let grey = 8 + 10 * (index - 232);
                format!("#{grey:02x}{grey:02x}{grey:02x}")
            }
            Colour::Indexed(index) => palette[usize::from(index)].to_owned(),
        }
    }
}
