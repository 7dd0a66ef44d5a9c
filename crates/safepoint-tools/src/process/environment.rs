//! Which variables of the runtime's environment a command is given: by default none whose name says that it holds a
//! secret (S4.13).
//!
//! **Invariants** A command gets exactly the list that is made here. Guards and keepers hold no more than the core.

use std::ffi::{OsStr, OsString};

use super::spec::{COMMAND_MARK, RUN_MARK};

/// What every program needs to work, and nothing that anybody would keep to themselves.
const CORE: [&str; 9] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];
/// A name that holds one of these anywhere is a secret's.
const SECRET: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"];
/// A name that has one of these between its underscores is a secret's, unless it is the whole name.
const SECRET_PARTS: [&str; 4] = ["PASS", "PAT", "PWD", "JWT"];
/// What the name of a secret ends in that only says where it is.
const PLACES: [&str; 5] = ["_FILE", "_PATH", "_DIR", "_ENV", "_URL"];

/// Which variables of the runtime's environment a command is given, before the changes of its own
/// [`CommandSpec::env`](super::CommandSpec::env).
///
/// ```
/// use safepoint_tools::process::Environment;
///
/// let environment = Environment::filtered().keep(["GITHUB_TOKEN"]).withhold(["INTERNAL_HOST"]);
/// assert!(environment.gives("GITHUB_TOKEN") && environment.gives("PATH"));
/// assert!(!environment.gives("OPENAI_API_KEY") && !environment.gives("INTERNAL_HOST"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    inherit: Inherit,
    keep: Vec<OsString>,
    withhold: Vec<OsString>,
}

/// Exhaustive: three sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inherit {
    Core,
    #[default]
    Filtered,
    All,
}

impl Environment {
    /// Only what every program needs: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TERM`, `LANG`, `LC_ALL`, `TMPDIR`.
    #[must_use]
    pub fn core() -> Self {
        Self { inherit: Inherit::Core, ..Self::default() }
    }

    /// All but the variables that [hold a secret](is_secret) by their name: the default.
    #[must_use]
    pub fn filtered() -> Self {
        Self::default()
    }

    /// All of it, keys included.
    #[must_use]
    pub fn all() -> Self {
        Self { inherit: Inherit::All, ..Self::default() }
    }

    /// Gives these variables too, whatever their names are and whatever else is said of them.
    #[must_use]
    pub fn keep(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.keep.extend(names.into_iter().map(Into::into));
        self
    }

    /// Does not give these, whatever their names are, unless they are [kept](Self::keep).
    #[must_use]
    pub fn withhold(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.withhold.extend(names.into_iter().map(Into::into));
        self
    }

    /// Whether a command is given this variable.
    #[must_use]
    pub fn gives(&self, name: impl AsRef<OsStr>) -> bool {
        let name = name.as_ref();
        let is_in = |names: &[OsString]| names.iter().any(|listed| listed == name);
        if is_in(&self.keep) {
            return true;
        }
        !is_in(&self.withhold)
            && match self.inherit {
                Inherit::Core => is_core(name),
                // A name that is no text is nobody's key.
                Inherit::Filtered => !name.to_str().is_some_and(is_secret),
                Inherit::All => true,
            }
    }

    /// What of this process's environment is given.
    pub(super) fn given(&self) -> Vec<(OsString, OsString)> {
        std::env::vars_os().filter(|(name, _)| self.gives(name)).collect()
    }
}

/// Whether a variable of this name is of a secret, and is [withheld](Environment::filtered): its name has KEY, TOKEN, SECRET, PASSWORD or the like in it, in
/// upper or lower case.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_part = |part: &str| part != name && SECRET_PARTS.contains(&part);
    SECRET.iter().any(|word| name.contains(word)) || name.split('_').any(is_part)
}

/// Whether the value of a variable of this name is a secret: it [is of one](is_secret), and does not only say where one is.
#[must_use]
pub fn holds_secret(name: &str) -> bool {
    let is_place = PLACES.iter().any(|place| name.to_ascii_uppercase().ends_with(place));
    !is_place && is_secret(name)
}

/// What a process of ours may hold for everybody to see: the core, and the marks of the commands that it runs inside of,
/// by which it is found.
pub(super) fn is_open(name: &OsStr) -> bool {
    is_core(name) || name == RUN_MARK || name == COMMAND_MARK
}

fn is_core(name: &OsStr) -> bool {
    CORE.iter().any(|core| name == *core)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.13
    #[test]
    fn names_of_secrets_are_known_and_others_are_not() {
        for name in [
            "OPENAI_API_KEY",
            "openai_api_key",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "DB_PASSWORD",
            "PGPASSWORD",
            "SMTP_PASS",
            "GITLAB_PAT",
            "MYSQL_PWD",
            "APIKEY",
            "SSH_KEY_PASSPHRASE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "MYSQL_ROOT_PASSWD",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "PWD", "OLDPWD", "LANG", "CARGO_HOME", "COMPASS", "PATTERN_DIR", "PASS"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }

    /// S8.10, S4.13: what only says where a secret is is withheld too, and is none itself.
    #[test]
    fn the_place_of_a_secret_is_none() {
        for (name, holds) in [
            ("OPENAI_API_KEY", true),
            ("github_token", true),
            ("PGPASSWORD", true),
            ("SSL_KEY_FILE", false),
            ("ssl_key_file", false),
            ("TOKEN_URL", false),
        ] {
            assert!(is_secret(name), "{name}");
            assert_eq!(holds_secret(name), holds, "{name}");
        }
        assert!(!holds_secret("PATH") && !holds_secret("PWD"));
    }

    /// S4.13: what a person names is given; what a program withholds is not, not even of all.
    #[test]
    fn what_is_named_outranks_its_name() {
        let all = Environment::all().withhold(["CORP", "OTHER"]).keep(["CORP"]);
        assert!(all.gives("CORP") && !all.gives("OTHER") && all.gives("API_KEY"));
        let core = Environment::core().keep(["NEEDED"]);
        assert!(core.gives("PATH") && core.gives("NEEDED") && !core.gives("EDITOR"));
    }
}
