//! Nothing but a place for tests: the Rust code in README.md and docs/ is compiled and run as the documentation of
//! these items.

#[doc = include_str!("../../README.md")]
struct Readme;

#[doc = include_str!("../../docs/formats/target-ids.md")]
struct TargetIds;

#[doc = include_str!("../../docs/recipes/compiler.md")]
struct Compiler;

#[doc = include_str!("../../docs/recipes/list-images.md")]
struct ListImages;

#[doc = include_str!("../../docs/recipes/ranges.md")]
struct Ranges;
