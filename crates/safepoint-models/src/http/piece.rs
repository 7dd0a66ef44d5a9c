//! A piece of an answer, of which events are taken one after the other.

use bytes::{Buf as _, Bytes};

use crate::sse::{SseDecoder, SseError, SseEvent};

/// The next event of a piece, which keeps what is behind it; none once the piece is used up.
pub(super) fn next_event<'d>(
    decoder: &'d mut SseDecoder,
    piece: &mut Bytes,
) -> Result<Option<&'d SseEvent>, SseError> {
    let mut rest = &piece[..];
    let event = decoder.next(&mut rest)?;
    let left = rest.len();
    keep_last(piece, left);
    Ok(event)
}

/// Keeps the last `left` bytes of a piece. With the last of them it lets go of the memory that the connection reads into: an
/// empty piece would hold on to it, for as long as the stream is silent.
fn keep_last(piece: &mut Bytes, left: usize) {
    if left == 0 {
        *piece = Bytes::new();
    } else {
        piece.advance(piece.len().saturating_sub(left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_that_is_used_up_holds_nothing() {
        let whole = Bytes::from(b"data: a\n\ndata: b\n\n".to_vec());
        let mut piece = whole.clone();
        keep_last(&mut piece, 9);
        assert_eq!(piece, &b"data: b\n\n"[..]);
        assert!(!whole.is_unique());
        keep_last(&mut piece, 0);
        assert!(piece.is_empty() && whole.is_unique());
    }
}
