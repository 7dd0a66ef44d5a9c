//! What a model learns where a sandbox may have refused something to a command that failed.

use safepoint_sandbox::Confinement;

use super::outside;
use crate::process::Exit;

/// What programs write when a layer refuses something. Other reasons have the same words, so that no more is said than that
/// it may be so.
const FILES: [&str; 4] =
    ["Permission denied", "Operation not permitted", "Read-only file system", "Invalid cross-device link"];
const NETWORK: [&str; 6] = [
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Name or service not known",
    "getaddrinfo",
    "EAI_AGAIN",
];

/// One sentence on why, if the sandbox can have been it.
pub(super) fn why(confinement: Option<&Confinement>, exit: Exit, text: &str) -> Option<String> {
    let confinement = confinement?;
    if exit == Exit::Code(0) {
        return None;
    }
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let what = match (says(&NETWORK), says(&FILES)) {
        (true, true) => {
            "it reaches no network and no socket of another program, and writes only below the root and in $TMPDIR"
        }
        (true, false) => "it reaches no network and no socket of another program",
        (false, true) => {
            "it writes only below the root and in $TMPDIR, and reaches no other process, network or socket"
        }
        (false, false) => return None,
    };
    let temporary = confinement.temporary().display();
    let name = outside::NAME;
    Some(format!(
        "[the sandbox may have refused this: {what} (TMPDIR is {temporary}); where the task needs more, {name} asks a person]"
    ))
}

#[cfg(test)]
mod tests {
    use safepoint_sandbox::Layers;

    use super::*;

    /// S4.29: it is said only where a command failed, was confined, and wrote what a refusal looks like.
    #[test]
    fn only_what_can_have_been_refused_is_said_to_be() {
        let place = tempfile::tempdir().unwrap();
        let confinement = Confinement::new(place.path(), Layers::none("a test")).unwrap();
        let said = |exit, text| why(Some(&confinement), exit, text);
        let denied = "sh: cannot create /etc/x: Permission denied";
        assert!(said(Exit::Code(2), denied).unwrap().contains("may have refused this: it writes only below"));
        assert!(said(Exit::Code(6), "curl: (6) Could not resolve host: a").unwrap().contains("no network"));
        let both = format!("{denied}\ncurl: (6) Could not resolve host: a");
        let of_both = said(Exit::Code(6), &both).unwrap();
        assert!(
            of_both.contains("no network") && of_both.contains("writes only below the root"),
            "{of_both}"
        );
        assert_eq!(said(Exit::Code(0), denied), None);
        assert_eq!(said(Exit::Code(1), "assertion failed"), None);
        assert_eq!(why(None, Exit::Code(2), denied), None, "it was not confined");
    }
}
