//! Nothing but a place for tests: the Rust code in README.md and docs/ is compiled and run as that of these items.

#[doc = include_str!("../../README.md")]
struct Readme;
