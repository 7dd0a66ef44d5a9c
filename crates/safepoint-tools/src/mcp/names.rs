//! Names that every provider takes, from names that a server made up; and which of them are wanted.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::limits;

/// Between the name of a server and that of its tool.
const BETWEEN: &str = "__";
/// How much of a digest tells two names apart.
const DIGEST_BYTES: usize = 4;

/// Which tools of a server are offered, and under which names.
#[derive(Clone, Debug, Default)]
pub(super) struct Pick {
    pub(super) include: Vec<String>,
    pub(super) exclude: Vec<String>,
    pub(super) rename: BTreeMap<String, String>,
}

impl Pick {
    /// Whether a tool of this name is offered at all.
    pub(super) fn takes(&self, name: &str) -> bool {
        let is_in = |patterns: &[String]| patterns.iter().any(|pattern| fits(pattern, name));
        (self.include.is_empty() || is_in(&self.include)) && !is_in(&self.exclude)
    }

    /// Which of these words fit no tool of the server, in a sentence each: a typing error that would hide nothing, or
    /// everything.
    pub(super) fn unmatched(&self, names: &[String]) -> Vec<String> {
        let patterns = |key: &'static str, patterns: &[String]| {
            let unknown = patterns.iter().filter(|pattern| !names.iter().any(|name| fits(pattern, name)));
            unknown
                .map(|pattern| format!("`{key}` has `{pattern}`, which fits no tool of it"))
                .collect::<Vec<_>>()
        };
        let renamed = self.rename.keys().filter(|tool| !names.contains(tool));
        let renamed = renamed.map(|tool| format!("`rename` has `{tool}`, which is no tool of it"));
        let mut all = patterns("include", &self.include);
        all.extend(patterns("exclude", &self.exclude));
        all.extend(renamed);
        all
    }
}

/// Whether a name fits a pattern, in which `*` is any text.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('*') else { return pattern == name };
    let Some(rest) = name.strip_prefix(before) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| fits(after, &rest[at..]))
}

/// Whether a server may have this name: it becomes a part of its tools' names, and must not be mistaken for another's.
pub(super) fn is_server_name(name: &str) -> bool {
    const LONGEST: usize = 32;
    (1..=LONGEST).contains(&name.len()) && is_plain(name) && !name.contains(BETWEEN) && !name.ends_with('_')
}

/// Whether every provider takes it as the name of a tool.
pub(super) fn is_tool_name(name: &str) -> bool {
    (1..=limits::MCP_NAME_BYTES).contains(&name.len()) && is_plain(name)
}

fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The name under which a tool is offered: the server's and its own. What a provider would refuse is replaced, and then
/// a digest of the original is added, so that two names never become one, and the same name is the same always.
pub(super) fn offered(server: &str, tool: &str) -> String {
    let plain = format!("{server}{BETWEEN}{tool}");
    if !tool.is_empty() && is_tool_name(&plain) {
        return plain;
    }
    let mut name: String =
        plain.chars().map(|c| if is_plain(c.encode_utf8(&mut [0; 4])) { c } else { '_' }).collect();
    let digest = Sha256::digest(tool.as_bytes());
    let mark: String = digest.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect();
    name.truncate(limits::MCP_NAME_BYTES - mark.len() - 1);
    format!("{name}_{mark}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_name_is_kept_behind_its_servers() {
        assert_eq!(offered("files", "read-file"), "files__read-file");
    }

    /// S4.10: names come from strangers.
    #[test]
    fn a_name_that_a_provider_would_refuse_is_made_plain_and_stays_apart_from_others() {
        let long = "x".repeat(200);
        for odd in ["files/read", "files.read", "", "läuft", "a b", "</tool>", long.as_str()] {
            let name = offered("files", odd);
            assert!(is_tool_name(&name), "{name}");
            assert_eq!(name, offered("files", odd));
        }
        assert_ne!(offered("files", "a/b"), offered("files", "a.b"));
        assert_ne!(offered("files", &long), offered("files", &format!("{long}y")));
    }

    #[test]
    fn patterns_take_and_leave() {
        let pick = |include: &[&str], exclude: &[&str]| Pick {
            include: include.iter().map(ToString::to_string).collect(),
            exclude: exclude.iter().map(ToString::to_string).collect(),
            ..Pick::default()
        };
        assert!(pick(&[], &[]).takes("anything"));
        assert!(pick(&["read*", "list"], &[]).takes("read_file") && !pick(&["read*"], &[]).takes("write"));
        assert!(
            !pick(&["*"], &["*_file"]).takes("read_file") && pick(&["*"], &["*_file"]).takes("read_files")
        );
        assert!(pick(&["a*b*c"], &[]).takes("a-b-b-c") && !pick(&["a*b*c"], &[]).takes("acb"));
    }

    #[test]
    fn a_servers_name_is_short_and_plain() {
        assert!(is_server_name("git-hub_2"));
        for wrong in ["", "a__b", "a_", "a b", "ü", &"x".repeat(33)] {
            assert!(!is_server_name(wrong), "{wrong:?}");
        }
    }
}
