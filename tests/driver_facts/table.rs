//! The table of facts names tests that exist, and every test is in it.

use std::collections::BTreeSet;

const TABLE: &str = include_str!("../../docs/driver-facts.md");

const SOURCES: [&str; 8] = [
    include_str!("captures.rs"),
    include_str!("commands.rs"),
    include_str!("ending.rs"),
    include_str!("graphs.rs"),
    include_str!("hip_tests.rs"),
    include_str!("joining.rs"),
    include_str!("old_hip.rs"),
    include_str!("profiles.rs"),
];

fn tests() -> BTreeSet<&'static str> {
    let functions = SOURCES.iter().flat_map(|source| source.split("#[test]\nfn ").skip(1));
    functions.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name).collect()
}

/// What stands between backticks and can be the name of a test.
fn named() -> BTreeSet<&'static str> {
    let is_name = |text: &&str| {
        text.contains('_') && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let lines = TABLE.lines().filter(|line| line.starts_with('|'));
    lines.flat_map(|line| line.split('`').skip(1).step_by(2)).filter(is_name).collect()
}

#[test]
fn every_test_that_the_table_of_facts_names_exists() {
    let missing: Vec<_> = named().difference(&tests()).copied().collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

#[test]
fn every_test_of_a_fact_is_in_the_table() {
    // These are about the simulated device itself.
    let own = [
        "profiles_have_names_and_the_default_is_the_strict_one",
        "the_default_refuses_and_kills_whatever_any_driver_in_use_does",
        "an_event_that_nobody_recorded_holds_up_nobody",
    ];
    let named = named();
    let left: Vec<_> =
        tests().into_iter().filter(|test| !named.contains(test) && !own.contains(test)).collect();
    assert!(left.is_empty(), "not in the table: {left:#?}");
}
