//! Confines a command on Linux. It and all that it starts write only below given directories and in a temporary folder of
//! their own, reach no network and no socket of another program, and touch no process outside.
//!
//! The program that runs commands is also the helper that confines them: it starts itself with the arguments of
//! [`Confinement::command`], and [`confine_main_if_asked`] in its `main` applies the confinement to that new process and
//! executes the command in its place. No code of ours runs between a fork and an exec.
//!
//! ```no_run
//! use safepoint_sandbox::{Confinement, Layers, confine_main_if_asked};
//!
//! confine_main_if_asked(); // the first line of main
//! let found = std::process::Command::new("/proc/self/exe").args(Layers::probe()).output()?;
//! let layers = Layers::read(&String::from_utf8_lossy(&found.stdout));
//! let confinement = Confinement::new("project", layers)?;
//! let mut build = std::process::Command::new("/proc/self/exe");
//! build.args(confinement.command("make", ["test"])).env("TMPDIR", confinement.temporary());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Invariants**
//! - Nothing is run where a layer that was found to be there cannot be applied: the helper ends with code 125.
//! - A layer is applied to the process itself before the command exists, and no process can take one off.

#[cfg(not(target_os = "linux"))]
compile_error!("safepoint-sandbox confines commands by means of Linux: on another system leave it out.");

mod confinement;
mod helper;
mod layers;
mod opening;
mod plan;
mod temporary;

pub use confinement::{Confinement, ConfinementError};
pub use helper::confine_main_if_asked;
pub use layers::Layers;
pub use opening::Opening;
