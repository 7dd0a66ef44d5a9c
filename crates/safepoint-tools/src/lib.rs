//! Tools for Safepoint agents: commands under a guard that leaves nothing behind, files, search, http, and the tools
//! of MCP servers (the feature `mcp`, on by default).

#[cfg(not(target_os = "linux"))]
mod unsupported;

pub mod limits;
pub mod lines;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod process;

mod files;
mod http;
mod root;
mod search;
mod shell;
mod sleep;
mod toolbox;

pub use files::{EditPreview, SecretFiles, WrongLine, edit_file, list_dir, read_file, write_file};
pub use http::{http_get, is_public};
pub use root::{Root, RootError};
pub use safepoint_sandbox::{Confinement, ConfinementError, Layers, Opening};
pub use search::search;
pub use shell::{confined_shell, shell, shell_outside};
pub use sleep::sleep;
pub use toolbox::{Toolbox, UnknownTool, toolbox};
