//! The doors of the server: its own API, and those of protocols that other clients speak.

use std::{fmt, str::FromStr};

/// A protocol by which an agent is offered, beside the server's own API, which every agent has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Surface {
    /// OpenAI's Responses, at `/openai/v1`.
    Responses,
    /// A2A 1.0, at `/a2a/{agent}`.
    A2a,
    /// MCP, at `/mcp/{agent}`.
    Mcp,
}

impl Surface {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Responses, Self::A2a, Self::Mcp];

    /// The name, as the config file has it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::A2a => "a2a",
            Self::Mcp => "mcp",
        }
    }

    /// Whether this build has it.
    #[must_use]
    pub const fn is_built(self) -> bool {
        match self {
            Self::Responses | Self::A2a => true,
            Self::Mcp => cfg!(feature = "mcp"),
        }
    }

    /// Whether a client that is lost while it waits for the answer of this path may stop what it asked for (S13.3).
    pub(crate) fn stops_with_client(path: &str) -> bool {
        path.starts_with("/openai/") || path.starts_with("/mcp/")
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Surface {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(found) = Self::ALL.into_iter().find(|surface| surface.as_str() == text) else {
            return Err(format!("`{text}` is no surface: use responses, a2a or mcp"));
        };
        if found.is_built() {
            Ok(found)
        } else {
            Err(format!("this build has no `{text}`; build it with `--features {text}`"))
        }
    }
}
