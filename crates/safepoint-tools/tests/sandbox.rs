//! Confined commands: what must not get out, what must work inside, and that a stop works through it. As root, where the
//! tests run as root, and as an ordinary user.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod sandbox {
    pub(crate) mod support;

    #[expect(unsafe_code, reason = "an attempt makes system calls that have no safe form")]
    mod attempts;
    mod cost;
    mod escapes;
    mod inside;
    mod openings;
}
