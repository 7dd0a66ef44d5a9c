//! Fuzzes `safepoint_fuzz::arguments`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| safepoint_fuzz::arguments(data));
