//! What a library's hint is on this command line: a library names settings, and here they are flags.

/// The hint, with the flags that do what it says.
pub(crate) fn here(code: &str, hint: &str) -> String {
    let flags = match code {
        "context_window" => "--window TOKENS says it, --on-full drop or summarise what happens",
        "provider" if hint.contains("API key") => "--api-key-env NAME names another variable",
        _ => return hint.to_owned(),
    };
    format!("{hint} ({flags})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_flags_of_this_command_line() {
        assert!(here("context_window", "name its window").ends_with("what happens)"));
        assert!(here("provider", "check the API key").contains("--api-key-env"));
        assert_eq!(here("provider", "try again later"), "try again later");
    }
}
