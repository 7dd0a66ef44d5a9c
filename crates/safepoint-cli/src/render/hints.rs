//! What a library's hint is on this command line: a library names settings, and here they are flags.

use safepoint::store;

/// The hint, with the flags that do what it says.
pub(crate) fn here(code: &str, hint: &str) -> String {
    let flags = match code {
        "context_window" => "--window TOKENS sets it; --on-full drop or summarise shortens the history",
        "provider" if hint.contains("API key") => "--api-key-env NAME names another variable",
        "tool" if hint.contains("one of its ways") => "--backend-auth WAY names one",
        "tool" if hint.contains("by a rule") => {
            "[[rules]] of the configuration allow it, --approve auto allows all"
        }
        _ => return hint.to_owned(),
    };
    format!("{hint} ({flags})")
}

/// What to do where a command failed for a reason that says it.
pub(crate) fn after(error: &anyhow::Error) -> Option<&'static str> {
    let is_full = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref::<store::Error>(), Some(store::Error::Full(_)))
    };
    error.chain().any(is_full).then_some(
        "free space on the store's disk and try again; `safepoint sessions rm` frees space in the store and needs about 1 MiB",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_flags_of_this_command_line() {
        assert!(here("context_window", "name its window").ends_with("the history)"));
        assert!(here("provider", "check the API key").contains("--api-key-env"));
        assert!(here("tool", "name one of its ways: pass").ends_with("(--backend-auth WAY names one)"));
        assert_eq!(here("provider", "try again later"), "try again later");
    }
}
