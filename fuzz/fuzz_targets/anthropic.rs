//! Fuzzes `safepoint_fuzz::anthropic`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| safepoint_fuzz::anthropic(data));
