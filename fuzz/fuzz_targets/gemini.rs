//! Fuzzes `safepoint_fuzz::gemini`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| safepoint_fuzz::gemini(data));
