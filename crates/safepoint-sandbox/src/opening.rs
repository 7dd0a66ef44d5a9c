//! What is opened for one command.

/// What is opened of a confinement for one command. Exhaustive: what a person can be asked about; a command for which all is
/// opened is not confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// The network, with the services of this machine that listen on it. Sockets of files stay closed.
    Network,
    /// Every file that the user may write, but for those that are hidden.
    Files,
}
