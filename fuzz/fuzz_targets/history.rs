//! Fuzzes `safepoint_fuzz::history`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| safepoint_fuzz::history(data));
