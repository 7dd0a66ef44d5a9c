//! What this system can enforce, found by trying it in a separate process.

use std::{collections::BTreeMap, ffi::OsString};

/// The first argument that makes a program a helper.
pub(crate) const ARGUMENT: &str = "__safepoint-confine";
/// The second one of a helper that only tries.
pub(crate) const PROBE: &str = "probe";

/// What confines, each by other means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layer {
    /// Landlock: what may be written.
    Files,
    /// Landlock: which processes may be signalled.
    Processes,
    /// A seccomp filter: sockets, and calls that reach around the other layers.
    Calls,
    /// A separate network, with separate mounts and memory segments.
    Namespaces,
}

impl Layer {
    pub(crate) const ALL: [Self; 4] = [Self::Files, Self::Processes, Self::Calls, Self::Namespaces];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Processes => "processes",
            Self::Calls => "calls",
            Self::Namespaces => "namespaces",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.name() == name)
    }

    fn lacks(self) -> &'static str {
        match self {
            Self::Files => "commands may write any file of yours",
            Self::Processes => "commands may signal your other processes",
            Self::Calls => "commands may open any socket",
            Self::Namespaces => {
                "commands have no separate network, and the files of Safepoint and the hooks of git are not covered"
            }
        }
    }
}

/// What this system enforces of a confinement, and why it does not enforce the rest.
///
/// ```
/// let layers = safepoint_sandbox::Layers::read("namespaces\tunshare: not permitted\nend\n");
/// assert!(!layers.is_complete());
/// assert!(layers.missing()[0].ends_with("(unshare: not permitted)"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    missing: BTreeMap<Layer, String>,
}

impl Layers {
    /// The arguments with which the program that calls [`confine_main_if_asked`](crate::confine_main_if_asked) is started so
    /// that it tries each layer and writes to standard output what [`Layers::read`] reads.
    #[must_use]
    pub fn probe() -> Vec<OsString> {
        vec![ARGUMENT.into(), PROBE.into()]
    }

    /// What a probe has written. Of one that was cut short nothing is believed.
    #[must_use]
    pub fn read(written: &str) -> Self {
        let mut missing = BTreeMap::new();
        let mut is_whole = false;
        for line in written.lines() {
            match line.split_once('\t') {
                Some((name, why)) => missing.extend(Layer::of(name).map(|layer| (layer, why.to_owned()))),
                None => is_whole |= line == END,
            }
        }
        if is_whole { Self { missing } } else { Self::none("it could not be tried") }
    }

    /// That nothing is enforced, and why.
    #[must_use]
    pub fn none(why: &str) -> Self {
        Self { missing: Layer::ALL.into_iter().map(|layer| (layer, why.to_owned())).collect() }
    }

    /// Whether everything is enforced: only then a command needs no question for what it does inside.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether nothing is enforced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.missing.len() == Layer::ALL.len()
    }

    /// What is not enforced, one line for each layer: what follows from it, and why it is so.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.missing.iter().map(|(layer, why)| format!("{} ({why})", layer.lacks())).collect()
    }

    pub(crate) fn held(&self) -> Vec<Layer> {
        Layer::ALL.into_iter().filter(|layer| !self.missing.contains_key(layer)).collect()
    }

    /// What [`Layers::read`] reads.
    pub(crate) fn written(missing: &[(Layer, String)]) -> String {
        let lines = missing.iter().map(|(layer, why)| {
            let why = why.replace(['\n', '\t'], " ");
            format!("{}\t{why}\n", layer.name())
        });
        lines.chain([format!("{END}\n")]).collect()
    }
}

/// The last line of a probe.
const END: &str = "end";

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.27: a layer is there only if a whole probe says so.
    #[test]
    fn a_probe_that_was_cut_short_is_not_believed() {
        assert!(Layers::read("end\n").is_complete());
        assert!(Layers::read("").is_empty() && Layers::read("files\tnone\n").is_empty());
        let written = Layers::written(&[(Layer::Calls, "one\nline".into())]);
        let layers = Layers::read(&written);
        assert_eq!(layers.missing(), ["commands may open any socket (one line)"]);
        assert_eq!(layers.held(), [Layer::Files, Layer::Processes, Layer::Namespaces]);
    }
}
