//! What is kept, what is spilled, and what is said of it.

use std::fs;

use proptest::prelude::*;

use super::*;

fn capture(budget: usize) -> (Capture, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Capture::spilling_to(budget, directory.path()), directory)
}

#[test]
fn what_fits_is_kept_whole_and_makes_no_file() {
    let (mut capture, _directory) = capture(8);
    capture.push(b"abc");
    capture.push(b"defgh");
    let got = capture.captured();
    assert_eq!((got.text.as_str(), got.total, got.truncated, got.file), ("abcdefgh", 8, false, None));
}

/// S4.7
#[test]
fn head_and_tail_stay_and_the_file_holds_everything() {
    let (mut capture, _directory) = capture(8);
    capture.push(b"abcdef");
    capture.push(b"ghijkl");
    let got = capture.captured();
    assert!(got.text.starts_with("abcd\n[... 4 bytes are left out here"), "{}", got.text);
    assert!(got.text.ends_with("]\nijkl"), "{}", got.text);
    assert_eq!(fs::read(got.file.unwrap()).unwrap(), b"abcdefghijkl");
}

#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (mut capture, _directory) = capture(2);
    capture.push(b"secret");
    let file = capture.captured().file.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn without_a_place_for_the_file_the_text_says_so() {
    let mut capture = Capture::spilling_to(4, "/nonexistent/place");
    capture.push(b"abcdefgh");
    let got = capture.captured();
    assert!(got.text.contains("they were not kept: no file could be made for it"), "{}", got.text);
    assert_eq!(got.file, None);
}

#[test]
fn a_character_cut_by_the_budget_is_not_called_broken() {
    let (mut capture, _directory) = capture(8);
    capture.push("aäöüäöüäöü".as_bytes());
    let text = capture.text();
    assert!(!text.contains('\u{fffd}') && !text.contains("not UTF-8"), "{text}");
}

#[test]
fn bytes_that_are_no_text_are_shown_with_a_notice() {
    let (mut capture, _directory) = capture(64);
    capture.push(b"ok \xff\xfe end");
    let text = capture.text();
    assert!(text.starts_with("ok \u{fffd}\u{fffd} end") && text.contains("not UTF-8"), "{text}");
}

proptest! {
    #[test]
    fn memory_stays_within_the_budget_and_head_and_tail_are_right(
        budget in 0_usize..40,
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 0..12),
    ) {
        let (mut capture, _directory) = capture(budget);
        let all: Vec<u8> = chunks.concat();
        for chunk in &chunks {
            capture.push(chunk);
            prop_assert!(capture.head.len() + capture.tail.len() <= budget);
        }
        let half = budget / 2;
        prop_assert_eq!(capture.head.as_slice(), &all[..all.len().min(half)]);
        let tail: Vec<u8> = capture.tail.iter().copied().collect();
        prop_assert!(all.ends_with(&tail));
        prop_assert_eq!(tail.len(), all.len().saturating_sub(half).min(half));
        if let Some(file) = capture.captured().file {
            prop_assert_eq!(fs::read(file).unwrap(), all);
        }
    }
}
