//! Removes secrets from text on its way out, one part at a time: a long line is never in memory as a whole
//! (S12.4).

use std::{io, str};

use safepoint::secret::Secrets;

/// The size of a part in bytes. A shorter text goes out in one write.
const PART: usize = 64 << 10;

/// Writes its input without secrets. [`Self::finish`] writes the end.
pub(super) struct Cleaned<'a, W> {
    out: W,
    secrets: &'a Secrets,
    /// Bytes that may begin a secret or a character, and bytes that were not scanned yet.
    held: Vec<u8>,
}

impl<'a, W: io::Write> Cleaned<'a, W> {
    pub(super) fn new(secrets: &'a Secrets, out: W) -> Self {
        Self { out, secrets, held: Vec::new() }
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// If the output refuses it.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let text = String::from_utf8_lossy(&self.held);
        self.out.write_all(self.secrets.clean(text).as_bytes())?;
        self.out.flush()
    }

    /// Writes the bytes that begin no secret.
    fn pass(&mut self) -> io::Result<()> {
        let whole = str::from_utf8(&self.held).map_or_else(|broken| broken.valid_up_to(), str::len);
        let rest = self.held.split_off(whole);
        let text = String::from_utf8(std::mem::take(&mut self.held)).map_err(io::Error::other)?;
        let text = self.secrets.clean(text);
        let (known, begun) = text.split_at(text.len() - self.secrets.begun(&text));
        self.held.extend_from_slice(begun.as_bytes());
        self.held.extend_from_slice(&rest);
        self.out.write_all(known.as_bytes())
    }
}

impl<W: io::Write> io::Write for Cleaned<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        if self.held.len() >= PART {
            self.pass()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// S8.10: a secret does not go out, at any place and in any fragments; everything else does.
    #[test]
    fn a_secret_on_the_border_of_two_parts_does_not_go_out() {
        let secrets = Secrets::of([("KEY".to_owned(), "sk-ünicorn-123456".to_owned())]);
        for before in [0, 1, PART - 20, PART - 9, PART - 1, PART, 2 * PART - 3] {
            for size in [1, 7, PART, 3 * PART] {
                let text = format!("{}sk-ünicorn-123456 sk-ü{}", "é".repeat(before / 2), "x".repeat(PART));
                let mut out = Vec::new();
                let mut cleaned = Cleaned::new(&secrets, &mut out);
                text.as_bytes().chunks(size).for_each(|chunk| cleaned.write_all(chunk).unwrap());
                cleaned.finish().unwrap();
                assert_eq!(String::from_utf8(out).unwrap(), secrets.clean(&*text), "{before} {size}");
            }
        }
    }
}
