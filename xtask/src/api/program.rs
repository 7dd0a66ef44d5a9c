//! What the engine shows to a program: these names at the root, each name once, and no more types than can be looked over.

use std::collections::BTreeSet;

/// The crate that this is about.
pub(super) const ENGINE: &str = "safepoint";

/// What stands at the root beside modules. The name `tool` is a module too.
const ROOT: [&str; 25] = [
    "Agent",
    "AgentBuilder",
    "Answer",
    "Grace",
    "Halt",
    "History",
    "Limits",
    "Model",
    "Outcome",
    "Reason",
    "Receipt",
    "Run",
    "RunHandle",
    "SafePoints",
    "Session",
    "SessionHandle",
    "Steer",
    "Stop",
    "StopRequest",
    "Tool",
    "ToolContext",
    "ToolResult",
    "Usage",
    "secs",
    // The attribute, beside the module.
    "tool",
];

/// Types and traits outside `raw`.
const MOST_TYPES: usize = 173;

/// What is against it, of the names at the root, of the paths of what has several, and of the count of types.
pub(super) fn faults(at_root: &BTreeSet<String>, repeated: &[String], types: usize) -> Vec<String> {
    let root: BTreeSet<&str> = ROOT.into_iter().collect();
    let here: BTreeSet<&str> = at_root.iter().map(String::as_str).collect();
    let new = here
        .difference(&root)
        .map(|name| format!("`{name}` is at the root: put it into the module of its noun, or into `raw`"));
    let gone = root.difference(&here).map(|name| format!("`{name}` is not at the root"));
    let twice = repeated.iter().map(|paths| format!("exported more than once: {paths}"));
    let many = (types > MOST_TYPES).then(|| {
        format!("{types} types and traits outside `raw`, at most {MOST_TYPES}: merge some, or move them")
    });
    new.chain(gone).chain(twice).chain(many).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_the_count_and_second_paths_are_held() {
        let root: BTreeSet<String> = ROOT.iter().map(ToString::to_string).collect();
        assert_eq!(faults(&root, &[], MOST_TYPES), Vec::<String>::new());
        assert_eq!(faults(&root, &[], MOST_TYPES + 1).len(), 1);
        assert_eq!(faults(&root, &["History, history::History".into()], 1).len(), 1);
        let mut other = root;
        other.remove("Agent");
        other.insert("Price".into());
        assert_eq!(faults(&other, &[], 1).len(), 2, "one too many, and one that is missing");
    }
}
