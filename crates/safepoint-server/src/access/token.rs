//! Tokens: made once, shown once, and kept as a digest in a file that is read again when it changes.
//!
//! **Invariants**: no secret is stored or shown again; a file that cannot be read has no token, also where it could be read before;
//! digests are compared in a time that does not depend on them.

use std::{
    fmt, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard},
    time::SystemTime,
};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use sha2::{Digest as _, Sha256};

use super::principal::{AccessScope, Principal};

/// What each token begins with.
const PREFIX: &str = "spt_";
/// The random bytes of a secret.
const SECRET_BYTES: usize = 32;
/// The random bytes of an id.
const ID_BYTES: usize = 6;
/// The digits of a digest.
const DIGITS: usize = 64;

/// A token as the file keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TokenRow {
    /// What names it: the part of the token that is no secret.
    pub id: String,
    /// Who uses it.
    pub name: String,
    /// What for.
    pub scopes: Vec<AccessScope>,
    /// With which agents; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Whether it sees the sessions of all principals.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub see_all: bool,
    /// Until when it is valid; none: until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// The SHA-256 of the secret, in hexadecimal digits.
    #[serde(deserialize_with = "digits")]
    sha256: String,
}

/// What a new token is made with.
#[derive(Clone, Debug)]
#[must_use = "hand it to `TokenFile::add`"]
pub struct NewToken {
    /// Who uses it, with which scopes and agents.
    pub principal: Principal,
    /// Until when it is valid; none: until it is revoked.
    pub expires: Option<Timestamp>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    token: Vec<TokenRow>,
}

/// The file of the tokens: only its owner may read it.
pub struct TokenFile {
    path: PathBuf,
    /// Held for one look, with the file read again if it changed; no other lock is taken under it.
    read: Mutex<LastLook>,
    on_broken: Option<BrokenListener>,
}

/// What learns that the file cannot be read.
type BrokenListener = Box<dyn Fn(&io::Error) + Send + Sync>;

/// What the last look at the file found. Exhaustive: no file, the tokens and of which file, or why it cannot be read.
#[derive(Debug, Default)]
enum LastLook {
    #[default]
    Nothing,
    Tokens(Stamp, Vec<TokenRow>),
    Broken(String),
}

/// What changes with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    length: u64,
}

impl TokenFile {
    /// The file of this path, which need not be there.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), read: Mutex::default(), on_broken: None }
    }

    /// What learns why a file that is there cannot be read, when a token is asked for: once, until the file can be read or why it
    /// cannot changes. It has no token until then (S13.49).
    #[must_use]
    pub fn on_broken(self, listener: impl Fn(&io::Error) + Send + Sync + 'static) -> Self {
        Self { on_broken: Some(Box::new(listener)), ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Who has this token; `None` if the token is unknown, not valid any more, or the file cannot be read.
    #[must_use]
    pub fn principal(&self, token: &str) -> Option<Principal> {
        let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
        let given = digest(secret);
        let rows = self.rows_now()?;
        let row = rows.iter().find(|row| row.id == id)?;
        let is_it = is_same(row.sha256.as_bytes(), given.as_bytes());
        let is_valid = row.expires.is_none_or(|expires| Timestamp::now() < expires);
        (is_it && is_valid).then(|| row.principal())
    }

    /// The tokens, in the order of their making.
    ///
    /// # Errors
    /// If the file is there and cannot be read: the file, the line and what is wrong there, and nothing that the line has.
    pub fn rows(&self) -> io::Result<Vec<TokenRow>> {
        match fs::read_to_string(&self.path) {
            Ok(text) => parsed(&text).map_err(|(line, why)| {
                let why = format!("{}, line {line}: {why}", self.path.display());
                io::Error::new(io::ErrorKind::InvalidData, why)
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))),
        }
    }

    /// Makes a token, and returns it: this is the only time that it can be seen.
    ///
    /// # Errors
    /// If the file cannot be read or written, or the system gives no random bytes.
    pub fn add(&self, new: NewToken) -> io::Result<String> {
        let (id, secret) = (random(ID_BYTES)?, random(SECRET_BYTES)?);
        let NewToken { principal, expires } = new;
        let row = TokenRow::of(&principal, id.clone(), &secret, expires);
        let mut rows = self.rows()?;
        rows.push(row);
        self.write(rows)?;
        Ok(format!("{PREFIX}{id}_{secret}"))
    }

    /// Removes the token of this id, and returns whether there was one.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn revoke(&self, id: &str) -> io::Result<bool> {
        let mut rows = self.rows()?;
        let before = rows.len();
        rows.retain(|row| row.id != id);
        let was_there = rows.len() < before;
        if was_there {
            self.write(rows)?;
        }
        Ok(was_there)
    }

    /// Replaces the file as a whole: a reader sees the old one or the new one.
    fn write(&self, rows: Vec<TokenRow>) -> io::Result<()> {
        let text = toml::to_string(&Table { token: rows }).map_err(io::Error::other)?;
        if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let next = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut file = private(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, &self.path)
    }

    /// The rows as the file has them now.
    fn rows_now(&self) -> Option<Vec<TokenRow>> {
        let (found, is_news) = self.look();
        match found {
            Ok(rows) => Some(rows),
            Err(error) => {
                if let Some(listener) = self.on_broken.as_ref().filter(|_| is_news) {
                    listener(&error);
                }
                None
            }
        }
    }

    /// Looks at the file, and returns whether the listener has yet to learn why it cannot be read.
    fn look(&self) -> (io::Result<Vec<TokenRow>>, bool) {
        let mut last = self.lock();
        let stamp = self.stamp();
        if let (Ok(stamp), LastLook::Tokens(seen, rows)) = (&stamp, &*last)
            && stamp == seen
        {
            return (Ok(rows.clone()), false);
        }
        match stamp.and_then(|stamp| Ok((stamp, self.rows()?))) {
            Ok((stamp, rows)) => {
                *last = LastLook::Tokens(stamp, rows.clone());
                (Ok(rows), false)
            }
            // A file that is not there is no broken one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *last = LastLook::Nothing;
                (Err(error), false)
            }
            Err(error) => {
                let why = error.to_string();
                let is_news = !matches!(&*last, LastLook::Broken(before) if *before == why);
                *last = LastLook::Broken(why);
                (Err(error), is_news)
            }
        }
    }

    fn stamp(&self) -> io::Result<Stamp> {
        let found = fs::metadata(&self.path)?;
        Ok(Stamp { modified: found.modified()?, length: found.len() })
    }

    fn lock(&self) -> MutexGuard<'_, LastLook> {
        self.read.lock().expect("no code under this lock panics")
    }
}

impl TokenRow {
    fn of(principal: &Principal, id: String, secret: &str, expires: Option<Timestamp>) -> Self {
        let scopes = AccessScope::ALL.into_iter().filter(|scope| principal.may(*scope)).collect();
        let (name, agents, see_all) = principal.parts();
        Self { id, name, scopes, agents, see_all, expires, sha256: digest(secret) }
    }

    fn principal(&self) -> Principal {
        let principal = Principal::new(self.name.clone(), self.scopes.iter().copied());
        let principal = match &self.agents {
            Some(agents) => principal.only_agents(agents.iter().cloned()),
            None => principal,
        };
        let principal = principal.with_token(&self.id);
        if self.see_all { principal.seeing_all() } else { principal }
    }
}

/// The tokens of this text, or the line that is wrong, and why. A token that was written there is not quoted.
fn parsed(text: &str) -> Result<Vec<TokenRow>, (usize, String)> {
    toml::from_str::<Table>(text).map(|table| table.token).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let why = match error.message() {
            quoted if quoted.contains(PREFIX) => "a token itself is there, which the file does not keep",
            why => why,
        };
        (before.matches('\n').count() + 1, why.to_owned())
    })
}

/// A digest in hexadecimal digits of either case, as digests are compared.
fn digits<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    if text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    // The secret itself may be there.
    Err(D::Error::custom(format!("`sha256` is not the {DIGITS} hexadecimal digits of a digest")))
}

#[cfg(unix)]
fn private(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    const OWNER_ALONE: u32 = 0o600;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(OWNER_ALONE).open(path)
}

#[cfg(not(unix))]
fn private(path: &Path) -> io::Result<fs::File> {
    fs::File::create(path)
}

fn random(bytes: usize) -> io::Result<String> {
    let mut found = vec![0; bytes];
    getrandom::fill(&mut found).map_err(io::Error::other)?;
    Ok(hex(&found))
}

fn digest(secret: &str) -> String {
    hex(&Sha256::digest(secret.as_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Looks at all of both, whatever differs.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |differing, (one, other)| differing | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differing) == 0
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}
