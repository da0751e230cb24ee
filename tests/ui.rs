//! What the compiler must refuse, and what it must accept.
//!
//! Names: `cNN` a program that breaks a law, `uNN` a mistake of a user of this interface, `pNN` a
//! program that must compile and run. Left out until their features exist: fork (c22, c23, c24,
//! p05), host functions (c41, c42, c43), update of a graph (c48), child graphs (c54).
//!
//! The expected texts are those of the current stable compiler; after an upgrade, run with
//! `TRYBUILD=overwrite` and read what changed.

#[test]
fn forbidden_programs_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/fail/*.rs");
}

#[test]
fn allowed_programs_compile_and_run() {
    trybuild::TestCases::new().pass("tests/ui/pass/*.rs");
}
