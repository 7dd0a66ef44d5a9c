//! What stands at a path before it is changed, and its state as an approval names it.

use std::io::Read;

use safepoint::stop::Failure;
use sha2::{Digest as _, Sha256};

use super::is_binary;
use crate::{
    Root, limits,
    root::{fault, refusal},
};

/// The state of a path where there is no file.
const ABSENT: &str = "absent";

/// What is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Before {
    pub(super) content: Content,
    /// The SHA-256 of the content, or [`ABSENT`]; none of a file that is too large to be compared.
    pub(super) state: Option<String>,
}

/// What a file holds. Exhaustive: there is none; text; or what no diff can show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Absent,
    Text(String),
    Opaque(Opaque),
}

/// Content that is not shown line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opaque {
    TooLarge(u64),
    Binary(u64),
    Unread,
    NotUtf8(u64, std::str::Utf8Error),
}

impl Opaque {
    /// What it is, with its article.
    pub(super) fn what(&self) -> String {
        match self {
            Self::TooLarge(bytes) => format!("a file of {bytes} bytes, which is too large to be compared"),
            Self::Unread => "a file that cannot be read".to_owned(),
            Self::Binary(bytes) => format!("a binary file of {bytes} bytes"),
            Self::NotUtf8(bytes, _) => format!("a file of {bytes} bytes that is not UTF-8"),
        }
    }
}

impl Before {
    /// Reads what is there: a file, or none. The whole is in memory only up to the size that `edit_file` takes.
    pub(super) fn read(root: &Root, path: &str) -> Result<Self, Failure> {
        const PIECE: usize = 1 << 16;
        let Some(mut file) = root.find_file(path)? else {
            return Ok(Self { content: Content::Absent, state: Some(ABSENT.to_owned()) });
        };
        let size = file.metadata().map_err(|error| fault("read", path, &error))?.len();
        if size > limits::COMPARED_BYTES {
            return Ok(Self { content: Content::Opaque(Opaque::TooLarge(size)), state: None });
        }
        let (mut hasher, mut bytes, mut size) = (Sha256::new(), Vec::new(), 0_u64);
        let mut piece = vec![0; PIECE];
        loop {
            let read = file.read(&mut piece).map_err(|error| fault("read", path, &error))?;
            if read == 0 {
                break;
            }
            hasher.update(&piece[..read]);
            size += read as u64;
            if size <= limits::EDIT_BYTES {
                bytes.extend_from_slice(&piece[..read]);
            }
        }
        let state = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { content: Content::of(bytes, size), state: Some(state) })
    }

    /// Whether it is still what a person was asked about, if they were.
    pub(super) fn check(&self, path: &str, shown: Option<&str>) -> Result<(), Failure> {
        match shown {
            Some(shown) if self.state.as_deref() != Some(shown) => Err(refusal(format!(
                "{path:?} has changed since a person was asked about this call, so that it would do something else than what \
                 they saw; nothing was changed. Read the file again, and call again"
            ))),
            Some(_) | None => Ok(()),
        }
    }
}

impl Content {
    fn of(bytes: Vec<u8>, size: u64) -> Self {
        if size > limits::EDIT_BYTES {
            return Self::Opaque(Opaque::TooLarge(size));
        }
        if is_binary(&bytes) {
            return Self::Opaque(Opaque::Binary(size));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Opaque(Opaque::NotUtf8(size, error.utf8_error())),
        }
    }
}
