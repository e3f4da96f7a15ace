//! The order of ROCm's loader, as its source has it.

use kpack::search::{Loader, Miss, PackPath, Variables, key, lookup, patterns, places};
use kpack::{Kpack, NewKpack, Scheme};

use crate::packs::bytes;

fn paths(places: &[PackPath]) -> Vec<&str> {
    places.iter().map(PackPath::path).collect()
}

#[test]
fn places_are_those_of_the_loader() {
    let marker = ["../.kpack/a_@GFXARCH@.kpack".to_string(), "/opt/b.kpack".to_string()];
    let none = Variables::default();
    let targets = ["amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "gfx9-4-generic"];
    let found = places(&marker, &none, &targets);
    // All targets for a pattern, then the next pattern.
    assert_eq!(
        paths(&found),
        [
            "../.kpack/a_gfx942:sramecc+:xnack-.kpack",
            "../.kpack/a_gfx942:sramecc+.kpack",
            "../.kpack/a_gfx942:xnack-.kpack",
            "../.kpack/a_gfx942.kpack",
            "../.kpack/a_gfx9-4-generic.kpack",
            "/opt/b.kpack",
        ]
    );
    assert!(found.iter().all(PackPath::is_of_library));
    // Paths of variables are taken as they are, placeholder and all.
    let prefix = none.with_prefix("x_@GFXARCH@.kpack::/y");
    let found = places(&marker, &prefix, &["gfx942"]);
    assert_eq!(
        paths(&found),
        ["x_@GFXARCH@.kpack", "/y", "../.kpack/a_gfx942.kpack", "/opt/b.kpack"]
    );
    assert_eq!(found.iter().filter(|place| !place.is_of_library()).count(), 2);
    let list = prefix.with_list("/z");
    assert_eq!(paths(&places(&marker, &list, &["gfx942"])), ["/z"]);
    // A list without paths counts as no list.
    for empty in ["", ":", "::"] {
        let list = none.with_list(empty);
        assert_eq!(places(&marker, &list, &["gfx942"]).len(), 2);
        assert_eq!(patterns(&marker, &list.with_prefix("/p")), ["/p", &*marker[0], &*marker[1]]);
    }
    let windows = none.with_list("C:\\a.kpack;D:\\b.kpack").with_separator(';');
    assert_eq!(paths(&places(&marker, &windows, &[])), ["C:\\a.kpack", "D:\\b.kpack"]);
}

/// A pack for a target, with code for these wrappers of `l`.
fn pack(arch: &str, wrappers: &[u64]) -> Vec<u8> {
    let mut new = NewKpack::new("g", arch, Scheme::Plain);
    for wrapper in wrappers {
        new.add("l", *wrapper, arch, 1);
    }
    bytes(&new, &vec![b"c".to_vec(); wrappers.len()])
}

#[test]
fn loaders_differ_where_a_pack_lacks_the_code() {
    let gpu = ["gfx942:sramecc+:xnack-"];
    let [variant, bare] = [pack("gfx942:xnack-", &[0]), pack("gfx942", &[0, 1])];
    let packs = [&variant, &bare].map(|pack| Kpack::parse(pack).unwrap());
    let tocs = [packs[0].toc(), packs[1].toc()];
    let found = |n, loader| {
        let hit = lookup(&tocs, &gpu, &key("l", n), loader)?;
        Ok((hit.pack, hit.entry.arch().to_string()))
    };
    for loader in [Loader::First, Loader::Later] {
        assert_eq!(found(0, loader), Ok((0, "gfx942:xnack-".to_string())));
        assert_eq!(found(2, loader), Err(Miss::KernelNotFound));
    }
    assert_eq!(found(1, Loader::First), Err(Miss::KernelNotFound));
    assert_eq!(found(1, Loader::Later), Ok((1, "gfx942".to_string())));
}

#[test]
fn targets_come_before_packs() {
    let [other, generic] = [pack("gfx9-4-generic", &[0]), pack("gfx942", &[0])];
    let packs = [&other, &generic].map(|pack| Kpack::parse(pack).unwrap());
    let tocs = [packs[0].toc(), packs[1].toc()];
    let gpu = ["gfx942", "gfx9-4-generic"];
    assert_eq!(lookup(&tocs, &gpu, "l#0", Loader::Later).map(|hit| hit.pack), Ok(1));
    assert_eq!(lookup(&tocs[..1], &gpu, "l#0", Loader::Later).map(|hit| hit.pack), Ok(0));
    assert_eq!(lookup(&tocs, &["gfx90a"], "l#0", Loader::Later), Err(Miss::ArchNotFound));
    assert_eq!(lookup(&[], &gpu, "l#0", Loader::Later), Err(Miss::ArchiveNotFound));
}

#[test]
fn numbers_of_errors_are_those_of_the_header() {
    let all = [
        (Miss::KernelNotFound, 5),
        (Miss::Disabled, 8),
        (Miss::InvalidMarker, 12),
        (Miss::ArchiveNotFound, 13),
        (Miss::ArchNotFound, 14),
    ];
    for (miss, code) in all {
        assert_eq!(miss.code(), code);
        assert!(!miss.to_string().is_empty());
    }
}
