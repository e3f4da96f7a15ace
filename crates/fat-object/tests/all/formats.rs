//! `device-code` and the crates of the formats agree about what starts a container: it is below some of them.

use bundle_format::text::{Leader, is_text_bundle};
use fat_object::FileFormat;
use proptest::prelude::*;

#[test]
fn magics_are_those_of_the_formats() {
    for (magic, format) in [
        (&bundle_format::MAGIC[..], FileFormat::Bundle),
        (&ccob::MAGIC, FileFormat::CompressedBundle),
        (&offload_binary::MAGIC, FileFormat::OffloadBinary),
        (&llvm_bitcode::MAGIC, FileFormat::Bitcode),
        (&llvm_bitcode::WRAPPER_MAGIC, FileFormat::Bitcode),
    ] {
        assert_eq!(FileFormat::sniff(magic), format, "{magic:02x?}");
    }
}

proptest! {
    #[test]
    fn text_bundles_are_those_of_the_format(
        blank in "[\r\n ]{0,4}",
        leader in prop::sample::select(vec!["#", "//", ";", "--", "", "/"]),
        space in prop::sample::select(vec![" ", "", "  ", "\t"]),
        marker in prop::sample::select(vec![
            "__CLANG_OFFLOAD_BUNDLE____START__",
            "__CLANG_OFFLOAD_BUNDLE____END__",
            "__CLANG_OFFLOAD_BUNDLE__",
        ]),
        rest in prop::sample::select(vec![" host-x86_64", "", " ", "x"]),
    ) {
        let text = [&blank, leader, space, marker, rest].concat();
        let is_bundle = FileFormat::sniff(text.as_bytes()) == FileFormat::Bundle;
        // Without a leader the binary form starts with the same text.
        let is_binary = text.as_bytes().starts_with(&bundle_format::MAGIC);
        prop_assert_eq!(is_bundle, is_text_bundle(text.as_bytes()) || is_binary, "{:?}", text);
    }
}

#[test]
fn every_leader_starts_a_text_bundle() {
    for leader in [Leader::Hash, Leader::Slashes, Leader::Semicolon] {
        let text = format!("\n{} __CLANG_OFFLOAD_BUNDLE____START__ x", leader.as_str());
        assert_eq!(FileFormat::sniff(text.as_bytes()), FileFormat::Bundle, "{text}");
    }
}
