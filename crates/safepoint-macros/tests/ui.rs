//! Programs that must not compile, and what the compiler says of them: here, where a build of them is the smallest.

/// S4.17, S4.18, S2.14: what is no tool, no arguments, no output or no model is said in these words; a stop is no error.
#[test]
fn wrong_programs_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
