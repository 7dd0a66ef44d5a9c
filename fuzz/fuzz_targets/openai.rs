//! Fuzzes `safepoint_fuzz::openai`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| safepoint_fuzz::openai(data));
