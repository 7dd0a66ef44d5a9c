//! Fuzzes `safepoint_fuzz::sse`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| safepoint_fuzz::sse(data));
