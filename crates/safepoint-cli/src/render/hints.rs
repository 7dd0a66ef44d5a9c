//! What a library's hint is on this command line: a library names settings, and here they are flags.

use std::borrow::Cow;

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

/// What a failure says, without the words of the library that saw it: what happened, as a person would say it.
pub(crate) fn in_words(message: &str) -> Cow<'_, str> {
    const BROKE: &str = "the connection broke while the model answered";
    let Some(causes) = message.strip_prefix(BROKE).and_then(|rest| rest.strip_prefix(": ")) else {
        return message.into();
    };
    let causes = causes.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| causes.contains(word));
    let why = if has(&["reset by peer", "broken pipe", "connection reset"]) {
        "the other side, or a proxy between, reset it"
    } else if has(&["timed out", "deadline"]) {
        "nothing came over it for too long"
    } else if has(&["end of file", "eof", "incomplete", "closed", "end before"]) {
        "it was closed before the answer was whole"
    } else {
        return message.into();
    };
    format!("{BROKE}: {why}").into()
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
    fn a_broken_connection_is_said_in_plain_words() {
        let broke = |cause: &str| format!("the connection broke while the model answered: {cause}");
        for (cause, why) in [
            ("error reading a body from connection: unexpected EOF during chunk size line", "closed before"),
            ("error reading a body from connection: Connection reset by peer (os error 104)", "reset it"),
            ("operation timed out", "too long"),
        ] {
            let said = in_words(&broke(cause)).into_owned();
            assert!(said.contains(why) && !said.contains("body"), "{said}");
        }
        assert_eq!(in_words(&broke("a new kind")), broke("a new kind"));
        assert_eq!(in_words("the provider answered 500: closed"), "the provider answered 500: closed");
    }

    #[test]
    fn a_hint_names_the_flags_of_this_command_line() {
        assert!(here("context_window", "name its window").ends_with("the history)"));
        assert!(here("provider", "check the API key").contains("--api-key-env"));
        assert!(here("tool", "name one of its ways: pass").ends_with("(--backend-auth WAY names one)"));
        assert_eq!(here("provider", "try again later"), "try again later");
    }
}
