//! JSON that is nested deeper than anything here reads: what is too deep is cut out, and the rest is read.
//!
//! **Invariants**: one pass over the bytes, which keeps nothing but how deep it is; JSON stays JSON.

use crate::lines::JsonPlace;

/// What stands for a value that is nested too deeply.
pub(super) const TOO_DEEP: &str = "[nested too deeply to be read]";

/// The text with every list and object that lies below this many others replaced by [`TOO_DEEP`]; none if there is none.
pub(super) fn cut(text: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut kept = Vec::with_capacity(text.len());
    let (mut depth, mut place) = (0_usize, JsonPlace::Outside);
    for byte in text {
        let was_kept = depth <= most;
        place = place.after(*byte);
        match (place, byte) {
            (JsonPlace::Outside, b'[' | b'{') => {
                depth += 1;
                if depth == most + 1 {
                    kept.push(b'"');
                    kept.extend_from_slice(TOO_DEEP.as_bytes());
                    kept.push(b'"');
                }
            }
            (JsonPlace::Outside, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if was_kept && depth <= most {
            kept.push(*byte);
        }
    }
    (kept != text).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_deep_is_cut_out_and_nothing_else() {
        let cut = |text: &str| cut(text.as_bytes(), 2).map(|kept| String::from_utf8(kept).unwrap());
        for fine in ["", "1", "[]", r#"{"a":[1,"]]]","\"[[["]}"#, r#"[{"[[[":"\\"},{}]"#] {
            assert_eq!(cut(fine), None, "{fine}");
        }
        let deep = format!("\"{TOO_DEEP}\"");
        assert_eq!(cut("[[[]]]"), Some(format!("[[{deep}]]")));
        assert_eq!(
            cut(r#"{"a":{"b":{"c":[["]"]]},"d":1},"e":[[],2]}"#),
            Some(format!(r#"{{"a":{{"b":{deep},"d":1}},"e":[{deep},2]}}"#)),
        );
        assert_eq!(cut(&"[".repeat(100_000)), Some(format!("[[{deep}")));
    }
}
