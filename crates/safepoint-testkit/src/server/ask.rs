//! What a client asks of a response that is kept.

/// A request about a response that the server keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The response's id.
    pub response: String,
    /// What was asked.
    pub what: What,
}

/// What can be asked about a response. Exhaustive: the server answers these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// To call it off.
    Cancel,
    /// Its events, behind the one with this number.
    Rest {
        /// The number; none = from the first.
        after: Option<usize>,
    },
}

impl What {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Rest { .. } => "rest",
        }
    }
}

impl Ask {
    pub(super) fn of(method: &str, path: &str) -> Option<Self> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (_, about) = path.rsplit_once("/responses/")?;
        let what = match (method, about.split_once('/')) {
            ("POST", Some((_, "cancel"))) => What::Cancel,
            ("GET", None) => {
                let after = query.split('&').find_map(|pair| pair.strip_prefix("starting_after="));
                What::Rest { after: after.and_then(|after| after.parse().ok()) }
            }
            _ => return None,
        };
        let response = about.split('/').next().unwrap_or_default().to_owned();
        Some(Self { response, what })
    }
}
