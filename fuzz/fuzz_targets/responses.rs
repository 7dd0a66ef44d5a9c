//! Fuzzes `safepoint_fuzz::responses`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| safepoint_fuzz::responses(data));
