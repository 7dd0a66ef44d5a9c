//! Where sessions are stored, as it is named: a file, or a database.
//!
//! **Invariants**: reading never fails, so that no message about a mistake repeats a password. What is shown of an address has none.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use clap::builder::{PathBufValueParser, TypedValueParser};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};

/// The schemes of a database.
const SCHEMES: [&str; 2] = ["postgres", "postgresql"];
/// Stands for an address of which nothing can be shown, since it is not known where its password ends.
const UNSHOWN: &str = "postgres://…";
/// What an address may say behind its `?` that is shown. What it says of anything else may be a password.
const SHOWN: [&str; 9] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "port",
    "sslmode",
    "sslrootcert",
    "tcp_user_timeout",
];

/// A store. Exhaustive: a file of SQLite, or a PostgreSQL database.
#[derive(Clone)]
pub(crate) enum StorePlace {
    File(PathBuf),
    Postgres(DatabaseAddress),
}

/// The address of a database, with its password.
#[derive(Clone)]
pub(crate) struct DatabaseAddress {
    whole: SecretString,
    /// The same without a password.
    shown: String,
}

/// Reads a place of an argument, which is not empty.
pub(crate) fn parser() -> impl TypedValueParser<Value = StorePlace> {
    PathBufValueParser::new().map(StorePlace::from)
}

impl From<PathBuf> for StorePlace {
    fn from(named: PathBuf) -> Self {
        match named.to_str().map(DatabaseAddress::read) {
            Some(Some(address)) => Self::Postgres(address),
            Some(None) | None => Self::File(named),
        }
    }
}

impl From<OsString> for StorePlace {
    fn from(named: OsString) -> Self {
        PathBuf::from(named).into()
    }
}

impl StorePlace {
    /// Its file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

impl DatabaseAddress {
    /// What is written like an address of something on a network, or was meant so; the path of a file is not.
    fn read(named: &str) -> Option<Self> {
        let named = named.trim();
        let is_scheme = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.');
        let address = named.split_once("://");
        let Some((scheme, rest)) =
            address.filter(|(scheme, _)| !scheme.is_empty() && scheme.chars().all(is_scheme))
        else {
            // It may hold a password: no file is made of that name, and none of it is shown.
            return is_mistyped(named).then(|| Self { whole: named.into(), shown: UNSHOWN.to_owned() });
        };
        let is_known = SCHEMES.iter().any(|known| scheme.eq_ignore_ascii_case(known));
        let shown = shown(rest).filter(|_| is_known).unwrap_or_else(|| UNSHOWN.to_owned());
        // The store compares the scheme letter by letter.
        let whole =
            if is_known { format!("{}://{rest}", scheme.to_ascii_lowercase()) } else { named.to_owned() };
        Some(Self { whole: whole.into(), shown })
    }

    /// The address, with its password: for the store alone.
    ///
    /// # Errors
    /// What is wrong with it, which repeats nothing of it.
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "this build opens no database"))]
    pub(crate) fn whole(&self) -> Result<&str, &'static str> {
        if self.shown == UNSHOWN {
            return Err(
                "it is written as postgres://USER:PASSWORD@HOST:PORT/DATABASE, where `@ : / ? %` of a name or a password are \
                 %40 %3A %2F %3F %25",
            );
        }
        Ok(self.whole.expose_secret())
    }

    /// What of the address is secret.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let whole = self.whole.expose_secret();
        let rest = whole.split_once("://").map_or(whole, |(_, rest)| rest);
        let of_user = rest.rsplit_once('@').and_then(|(user, _)| user.split_once(':')).map(|(_, word)| word);
        let of_query = rest
            .split_once('?')
            .and_then(|(_, query)| query.split('&').find_map(|pair| pair.strip_prefix("password=")));
        of_user.into_iter().chain(of_query).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    /// A name for files about this database: the same for each password.
    pub(crate) fn digest(&self) -> String {
        const LETTERS: usize = 16;
        let digest = Sha256::digest(self.shown.as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..LETTERS].to_owned()
    }
}

/// Whether a name is that of a database with a mistake in its scheme, or without one: `postgres:/…`, `postgres//…`, `user:password@…`.
/// A file of such a name is reached by `./`.
fn is_mistyped(named: &str) -> bool {
    let lower = named.to_ascii_lowercase();
    let behind = SCHEMES.iter().filter_map(|scheme| lower.strip_prefix(scheme));
    let first = named.split('/').next().unwrap_or_default();
    let has_user = first.split_once('@').is_some_and(|(user, _)| user.contains(':'));
    has_user || behind.into_iter().any(|behind| behind.starts_with([':', ';']) || behind.starts_with("//"))
}

/// An address without its scheme and its password; none if it is not clear where these are.
fn shown(rest: &str) -> Option<String> {
    let (before, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (user, place) = match before.split_once('@') {
        Some((user, place)) => (Some(user.split(':').next().unwrap_or_default()), place),
        None => (None, before),
    };
    let hosts = place.split('/').next().unwrap_or_default();
    let is_host = |host: &str| {
        // An IPv6 address has colons too.
        let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
        behind.split_once(':').is_none_or(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let is_clear = !place.contains('@') && !query.contains('@') && hosts.split(',').all(is_host);
    if !is_clear {
        return None;
    }
    let pairs: Vec<&str> = query
        .split('&')
        .filter(|pair| pair.split_once('=').is_some_and(|(name, _)| SHOWN.contains(&name)))
        .collect();
    let user = user.map(|user| format!("{user}@")).unwrap_or_default();
    let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
    Some(format!("postgres://{user}{place}{query}"))
}

/// As it is shown, and typed again: an address without its password.
impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Postgres(address) => f.write_str(&address.shown),
        }
    }
}

impl fmt::Debug for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(named: &str) -> StorePlace {
        OsString::from(named).into()
    }

    /// S7.58: whatever is typed as a place, no password is shown.
    #[test]
    fn no_password_of_an_address_is_shown() {
        for (typed, seen) in [
            ("postgres://ann:hunter2@db.example/agents", "postgres://ann@db.example/agents"),
            ("POSTGRESQL://ann:hunter2@a:1,b:2/x", "postgres://ann@a:1,b:2/x"),
            (
                "postgres://ann:hunter2@[::1]:5432/x?sslmode=require",
                "postgres://ann@[::1]:5432/x?sslmode=require",
            ),
            (
                "postgres://h/x?password=hunter2&user=ann&application_name=a",
                "postgres://h/x?application_name=a",
            ),
            ("postgres://h/x?pass%77ord=hunter2", "postgres://h/x"),
            ("postgres:///x?host=/run/postgresql", "postgres:///x?host=/run/postgresql"),
            ("postgres://ann:hun@ter2@db.example/agents", UNSHOWN),
            ("postgres://ann:hun/t:hunter2@db.example/agents", "postgres://ann@db.example/agents"),
            ("postgres://ann:hunter2/agents", UNSHOWN),
            ("postgres://ann:hun?ter2@db.example/agents", UNSHOWN),
            ("mysql://ann:hunter2@db.example/agents", UNSHOWN),
            (" postgres://ann:hunter2@db.example/agents\n", "postgres://ann@db.example/agents"),
            ("postgres:/ann:hunter2@db.example/agents", UNSHOWN),
            ("postgres//ann:hunter2@db.example/agents", UNSHOWN),
            ("Postgresql:ann:hunter2@db.example/agents", UNSHOWN),
            ("postgres;//ann:hunter2@db.example/agents", UNSHOWN),
            ("ann:hunter2@db.example/agents", UNSHOWN),
        ] {
            let place = of(typed);
            assert!(place.file().is_none(), "{typed}");
            assert_eq!(place.to_string(), seen, "{typed}");
            assert_eq!(format!("{place:?}"), seen, "{typed}");
        }
    }

    #[test]
    fn what_is_no_address_is_a_file() {
        for typed in [
            "store.db",
            "/a/b.db",
            "postgres",
            "postgres.db",
            "a b://c",
            "./postgres:/x",
            "a@b.db",
            "/x/a:b@c",
        ] {
            assert_eq!(of(typed).file(), Some(Path::new(typed)));
        }
    }

    /// S7.58
    #[test]
    fn files_about_a_database_do_not_depend_on_its_password() {
        let digest = |typed| match of(typed) {
            StorePlace::Postgres(address) => address.digest(),
            StorePlace::File(_) => unreachable!("it is an address"),
        };
        let named = digest("postgres://ann:one@db.example/agents");
        assert_eq!(named, digest("postgresql://ann:two@db.example/agents"));
        assert_ne!(named, digest("postgres://ann:one@db.example/others"));
    }

    #[test]
    fn the_secrets_of_an_address_are_known() {
        let StorePlace::Postgres(address) = of("postgres://ann:one@h/x?password=two") else {
            unreachable!("it is an address")
        };
        assert_eq!(address.secrets(), ["one", "two"]);
    }
}
