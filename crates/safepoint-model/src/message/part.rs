//! Images, sounds and files that go with a message: their bytes, or where they are.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};

/// The most bytes of one part: providers refuse more in a request.
pub const MOST_BYTES: usize = 20 << 20;

/// An image, a sound or a file. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Its media type, such as `image/png`; empty where an address says it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// A file's name, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is in it.
    pub source: PartSource,
}

/// What a part is. Exhaustive: every wire must place or refuse each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A picture.
    Image,
    /// A document.
    File,
    /// A sound.
    Audio,
}

/// Where a part's bytes are. Exhaustive: here, or at an address that the provider reads itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartSource {
    /// Here, in base64.
    Base64(Arc<str>),
    /// At this address.
    Url(String),
}

impl Part {
    /// An image of these bytes.
    ///
    /// # Errors
    /// If there are more than [`MOST_BYTES`].
    pub fn image(media_type: impl Into<String>, bytes: &[u8]) -> Result<Self, TooLarge> {
        Ok(Self { kind: PartKind::Image, media_type: media_type.into(), name: None, source: here(bytes)? })
    }

    /// An image at an address, which the provider reads.
    #[must_use]
    pub fn image_at(url: impl Into<String>) -> Self {
        Self::at(PartKind::Image, url.into())
    }

    /// A file of these bytes.
    ///
    /// # Errors
    /// If there are more than [`MOST_BYTES`].
    pub fn file(
        name: impl Into<String>,
        media_type: impl Into<String>,
        bytes: &[u8],
    ) -> Result<Self, TooLarge> {
        let name = Some(name.into());
        Ok(Self { kind: PartKind::File, media_type: media_type.into(), name, source: here(bytes)? })
    }

    /// A file at an address, which the provider reads.
    #[must_use]
    pub fn file_at(url: impl Into<String>) -> Self {
        Self::at(PartKind::File, url.into())
    }

    /// A sound of these bytes, such as `audio/wav` or `audio/mpeg`.
    ///
    /// ```
    /// use safepoint::message::{Part, UserMessage};
    /// let message = UserMessage::from("what is said here?").with(Part::audio("audio/wav", b"RIFF")?);
    /// # Ok::<(), safepoint::message::TooLarge>(())
    /// ```
    ///
    /// # Errors
    /// If there are more than [`MOST_BYTES`].
    pub fn audio(media_type: impl Into<String>, bytes: &[u8]) -> Result<Self, TooLarge> {
        Ok(Self { kind: PartKind::Audio, media_type: media_type.into(), name: None, source: here(bytes)? })
    }

    /// A sound at an address, which the provider reads.
    #[must_use]
    pub fn audio_at(url: impl Into<String>) -> Self {
        Self::at(PartKind::Audio, url.into())
    }

    /// What stands in it, if its bytes are here, its media type is one of text, and they are UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match &self.source {
            PartSource::Base64(bytes) if self.media_type.starts_with("text/") => {
                String::from_utf8(BASE64_STANDARD.decode(bytes.as_bytes()).ok()?).ok()
            }
            PartSource::Base64(_) | PartSource::Url(_) => None,
        }
    }

    fn at(kind: PartKind, url: String) -> Self {
        Self { kind, media_type: String::new(), name: None, source: PartSource::Url(url) }
    }

    /// About how many bytes of text cost as much: figures of providers, rounded up.
    pub fn weight(&self) -> u64 {
        const IMAGE: u64 = 4_800;
        const FILE_SHARE: u64 = 8;
        match (self.kind, &self.source) {
            (PartKind::Image, _) | (PartKind::File | PartKind::Audio, PartSource::Url(_)) => IMAGE,
            (PartKind::File | PartKind::Audio, PartSource::Base64(bytes)) => {
                (bytes.len() as u64 / FILE_SHARE).max(IMAGE)
            }
        }
    }
}

fn here(bytes: &[u8]) -> Result<PartSource, TooLarge> {
    if bytes.len() > MOST_BYTES {
        return Err(TooLarge { bytes: bytes.len() });
    }
    Ok(PartSource::Base64(BASE64_STANDARD.encode(bytes).into()))
}

/// A part has more bytes than a request may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {bytes} bytes, and {MOST_BYTES} are the most that can be sent")]
pub struct TooLarge {
    /// How many it has.
    pub bytes: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S5.1: bytes are sent as RFC 4648 has them, padding included.
    #[test]
    fn bytes_are_written_as_base64() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, written) in vectors {
            assert_eq!(here(plain.as_bytes()), Ok(PartSource::Base64(written.into())));
        }
        assert_eq!(here(&[0xfb, 0xff, 0xfe]), Ok(PartSource::Base64("+//+".into())));
    }

    /// S5.1: a text can be read back from a part that holds one, and from no other.
    #[test]
    fn a_text_reads_back() {
        let of = |kind: &str, bytes: &[u8]| Part::file("a", kind, bytes).expect("it is small").text();
        assert_eq!(of("text/plain", "Grüße".as_bytes()).as_deref(), Some("Grüße"));
        assert_eq!(of("text/plain", &[0xff]), None);
        assert_eq!(of("application/pdf", b"%PDF"), None);
        assert_eq!(Part::file_at("https://example.com/a.txt").text(), None);
    }

    /// S12.1: what no request can hold is refused where it is made.
    #[test]
    fn a_part_is_bounded() {
        assert_eq!(
            Part::image("image/png", &vec![0; MOST_BYTES + 1]),
            Err(TooLarge { bytes: MOST_BYTES + 1 })
        );
    }

    /// S5.1: a history that was stored before there were parts reads, and writes as it was.
    #[test]
    fn old_messages_read() {
        let old = r#"{"text":"hello"}"#;
        let read: crate::message::UserMessage = serde_json::from_str(old).expect("an old message reads");
        assert_eq!(read, crate::message::UserMessage::from("hello"));
        assert_eq!(serde_json::to_string(&read).expect("a message is JSON"), old);
    }
}
