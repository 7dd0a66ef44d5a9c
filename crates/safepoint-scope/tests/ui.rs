//! Programs that must not compile (S2.14, S1.6).

/// S2.14, S1.6: no effect without its permit, no stop as an error, no request that makes no sense.
#[test]
fn wrong_programs_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
