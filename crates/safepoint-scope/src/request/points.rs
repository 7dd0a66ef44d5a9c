//! Safe points: the boundaries at which a run's state is whole (S1.3).

use std::{fmt, ops::BitOr, str::FromStr};

use crate::request::InvalidRequest;

/// A set of safe points, never empty: there is no way to build an empty one.
///
/// ```
/// use safepoint_scope::SafePoints;
/// let whole_round = SafePoints::AFTER_MODEL | SafePoints::AFTER_ALL_CALLS;
/// assert_eq!(whole_round.to_string(), "after-model,after-all-calls");
/// assert_eq!("after-model,after-all-calls".parse::<SafePoints>().unwrap(), whole_round);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SafePoints(u8);

const NAMES: [(&str, SafePoints); 3] = [
    ("after-model", SafePoints::AFTER_MODEL),
    ("after-started-calls", SafePoints::AFTER_STARTED_CALLS),
    ("after-all-calls", SafePoints::AFTER_ALL_CALLS),
];

impl SafePoints {
    /// The model's message is complete, none of its calls has started.
    pub const AFTER_MODEL: Self = Self(0b001);
    /// No started call is alive; those not started stay unstarted.
    pub const AFTER_STARTED_CALLS: Self = Self(0b010);
    /// The round is complete.
    pub const AFTER_ALL_CALLS: Self = Self(0b100);
    /// Whichever comes first.
    pub const ANY: Self = Self(0b111);

    /// Both sets together.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a point is in both sets.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of the points, in the order in which a round reaches them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.into_iter().filter(move |(_, point)| self.intersects(*point)).map(|(name, _)| name)
    }

    pub(crate) const fn from_bits(bits: u8) -> Option<Self> {
        match bits & Self::ANY.0 {
            0 => None,
            bits => Some(Self(bits)),
        }
    }
}

impl BitOr for SafePoints {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.or(other)
    }
}

impl fmt::Display for SafePoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.names().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for SafePoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SafePoints({self})")
    }
}

impl FromStr for SafePoints {
    type Err = InvalidRequest;

    fn from_str(text: &str) -> Result<Self, InvalidRequest> {
        let mut bits = 0;
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            bits |= match name {
                "any" => Self::ANY.0,
                name => NAMES
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, point)| point.0)
                    .ok_or_else(|| InvalidRequest::unknown_point(name))?,
            };
        }
        Self::from_bits(bits).ok_or_else(InvalidRequest::no_points)
    }
}
