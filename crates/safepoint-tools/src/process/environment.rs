//! Which variables of the runtime's environment a command is given: by default none whose name says that it holds a
//! secret, or whose value is an address with a password in it (S4.13).
//!
//! **Invariants** A command gets exactly the list that is made here. Guards and keepers hold no more than the core.

use std::ffi::{OsStr, OsString};

/// The environment variable that marks every process of a run (S4.9).
pub const RUN_MARK: &str = "SAFEPOINT_RUN";
/// The environment variable that marks every process of one command.
pub const COMMAND_MARK: &str = "SAFEPOINT_COMMAND";

/// What every program needs to work, and nothing that anybody would keep to themselves.
const CORE: [&str; 9] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];
/// A name that holds one of these anywhere is a secret's.
const SECRET: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTHORIZATION"];
/// A name that has one of these between its underscores is a secret's.
const SECRET_PARTS: [&str; 4] = ["PASS", "PAT", "PWD", "JWT"];
/// Parts that are no secret's where they are the whole name.
const WHOLE: [&str; 2] = ["PAT", "PWD"];
/// A name that ends in one of these is a secret's.
const SECRET_ENDS: [&str; 6] = ["PASS", "AUTH", "COOKIE", "COOKIES", "CREDS", "HEADERS"];
/// Words that end so and are no secret's: what is asked for one, where X keeps its own, and words of other things.
const OTHER_ENDS: [&str; 7] = ["ASKPASS", "XAUTH", "COMPASS", "BYPASS", "SURPASS", "TRESPASS", "ERPASS"];
/// What the name of a secret ends in that only says where it is.
const PLACES: [&str; 5] = ["_FILE", "_PATH", "_DIR", "_ENV", "_URL"];

/// Which variables of the runtime's environment a command is given, before the changes of the command's
/// [`CommandSpec::env`](super::CommandSpec::env).
///
/// ```
/// use safepoint_tools::process::CommandEnvironment;
///
/// let environment = CommandEnvironment::filtered().keep(["GITHUB_TOKEN"]).withhold(["INTERNAL_HOST"]);
/// assert!(environment.gives("GITHUB_TOKEN") && environment.gives("PATH"));
/// assert!(!environment.gives("OPENAI_API_KEY") && !environment.gives("INTERNAL_HOST"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "a setting returns the changed value"]
pub struct CommandEnvironment {
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

impl CommandEnvironment {
    /// Only what every program needs: `PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `TERM`, `LANG`, `LC_ALL`, `TMPDIR`.
    pub fn core() -> Self {
        Self { inherit: Inherit::Core, ..Self::default() }
    }

    /// All but the variables that [hold a secret](is_secret) by their name, or a [password](password_in) in an address that is
    /// their value: the default.
    pub fn filtered() -> Self {
        Self::default()
    }

    /// All of it, keys included.
    pub fn all() -> Self {
        Self { inherit: Inherit::All, ..Self::default() }
    }

    /// Gives these variables too, whatever their names are and whatever else is said of them.
    pub fn keep(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.keep.extend(names.into_iter().map(Into::into));
        self
    }

    /// Does not give these, whatever their names are, unless they are [kept](Self::keep).
    pub fn withhold(mut self, names: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.withhold.extend(names.into_iter().map(Into::into));
        self
    }

    /// Whether a command is given this variable, as far as its name says. Of those that are [filtered](Self::filtered) one
    /// whose value has a [password](password_in) is not.
    #[must_use]
    pub fn gives(&self, name: impl AsRef<OsStr>) -> bool {
        let name = name.as_ref();
        if self.keeps(name) {
            return true;
        }
        !self.withhold.iter().any(|listed| listed == name)
            && match self.inherit {
                Inherit::Core => is_core(name),
                // A name that is no text names no key.
                Inherit::Filtered => !name.to_str().is_some_and(is_secret),
                Inherit::All => true,
            }
    }

    /// What of this process's environment is given.
    pub(super) fn given(&self) -> Vec<(OsString, OsString)> {
        std::env::vars_os().filter(|(name, value)| self.gives(name) && !self.withholds(name, value)).collect()
    }

    /// Whether it is withheld for its value.
    fn withholds(&self, name: &OsStr, value: &OsStr) -> bool {
        self.inherit == Inherit::Filtered
            && !self.keeps(name)
            && password_in(&value.to_string_lossy()).is_some()
    }

    /// Whether it is given, whatever else is said of it.
    fn keeps(&self, name: &OsStr) -> bool {
        self.keep.iter().any(|listed| listed == name)
    }
}

/// Whether a variable of this name is of a secret, and is [withheld](CommandEnvironment::filtered): its name has KEY, TOKEN, SECRET,
/// PASSWORD or the like in it, or ends in PASS, AUTH, COOKIE, CREDS or HEADERS, in upper or lower case.
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_part = |part: &str| SECRET_PARTS.contains(&part) && !WHOLE.contains(&&*name);
    let ends_in = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    SECRET.iter().any(|word| name.contains(word))
        || name.split('_').any(is_part)
        || ends_in(&SECRET_ENDS) && !ends_in(&OTHER_ENDS)
}

/// The password of an address, `SCHEME://USER:PASSWORD@HOST`, that a value is, or has in it. A variable with one is
/// [withheld](CommandEnvironment::filtered), whatever its name is.
#[must_use]
pub fn password_in(value: &str) -> Option<&str> {
    value.split("://").skip(1).find_map(|rest| {
        let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '/' | '?' | '#' | '"' | '\'');
        let authority = rest.split(is_end).next()?;
        let (user, _host) = authority.rsplit_once('@')?;
        let (_name, password) = user.split_once(':')?;
        Some(password).filter(|password| !password.is_empty())
    })
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
    fn names_of_secrets_are_known() {
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
            "PASS",
            "MYPASS",
            "db_pass",
            "PGPASS",
            "AUTH",
            "NPM_AUTH",
            "npm_config__auth",
            "PROXYAUTH",
            "GITHUB_OAUTH",
            "HTTP_AUTHORIZATION",
            "COOKIE",
            "SESSION_COOKIE",
            "COOKIES",
            "CREDENTIALS",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "DB_CREDS",
            "PASSPHRASE",
            "JWT",
        ] {
            assert!(is_secret(name), "{name}");
        }
    }

    /// S4.13
    #[test]
    fn names_that_only_sound_like_a_secret_are_given() {
        for name in [
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "LANG",
            "CARGO_HOME",
            "PATTERN_DIR",
            "SSH_AUTH_SOCK",
            "SSH_ASKPASS",
            "GIT_ASKPASS",
            "SUDO_ASKPASS",
            "SSH_ASKPASS_REQUIRE",
            "XAUTHORITY",
            "XAUTH",
            "GIT_AUTHOR_NAME",
            "GIT_AUTHOR_EMAIL",
            "AUTHOR",
            "AUTH_TYPE",
            "COMPASS",
            "COMPASS_URL",
            "ENCOMPASS",
            "CACHE_BYPASS",
            "OVERPASS",
            "PASSENGER_HOME",
            "COOKIE_DOMAIN",
            "COOKIECUTTER_CONFIG",
            "AUTHBIND_LIB",
        ] {
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

    /// S4.13
    #[test]
    fn the_password_of_an_address_is_found_in_a_value() {
        for (value, found) in [
            ("postgres://u:hunter2@host/db", Some("hunter2")),
            ("redis://:hunter2@host:6379", Some("hunter2")),
            ("http://u:p@ss:w@proxy:3128", Some("p@ss:w")),
            ("jdbc:postgresql://u:hunter2@host/db?x=y@z", Some("hunter2")),
            ("https://a.example/ https://u:hunter2@b.example/", Some("hunter2")),
            ("{\"url\": \"amqp://u:hunter2@host\"}", Some("hunter2")),
            ("ssh://git@host:22/x", None),
            ("https://host:8080/x@y", None),
            ("https://u:@host", None),
            ("https://host/?to=u:p@x", None),
            ("u:p@host", None),
            ("", None),
        ] {
            assert_eq!(password_in(value), found, "{value}");
        }
    }

    /// S4.13: what a person names is given; what a program withholds is not, not even of all.
    #[test]
    fn what_is_named_outranks_its_name() {
        let all = CommandEnvironment::all().withhold(["CORP", "OTHER"]).keep(["CORP"]);
        assert!(all.gives("CORP") && !all.gives("OTHER") && all.gives("API_KEY"));
        let core = CommandEnvironment::core().keep(["NEEDED"]);
        assert!(core.gives("PATH") && core.gives("NEEDED") && !core.gives("EDITOR"));
        let (name, value) = (OsStr::new("DATABASE_URL"), OsStr::new("postgres://u:hunter2@host/db"));
        assert!(CommandEnvironment::filtered().withholds(name, value) && !all.withholds(name, value));
        assert!(!CommandEnvironment::filtered().keep([name]).withholds(name, value));
    }
}
