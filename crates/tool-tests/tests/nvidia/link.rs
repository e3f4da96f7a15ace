//! The link step for CUDA by an unmodified clang: programs register the same fatbinaries as with LLVM's linker wrapper and
//! NVIDIA's `fatbinary`, byte for byte.

use crate::common::tool;
use std::os::unix::fs::symlink;

use crate::edit::RIG;
use crate::edit_rig::cuda::Units;
use crate::edit_rig::observe::{Seen, observe};
use crate::edit_rig::settle;
use crate::edit_rig::zoo::{Builder, Units as _};

/// Returns what a program says and registers, without its build ID and without addresses of its host code.
fn facts(seen: &Seen) -> String {
    let text = format!("{}{}", seen.answers, seen.log);
    let lines = text.lines().filter(|line| !line.starts_with("build ID "));
    let lines = lines.map(|line| match line.split_once(" at ") {
        Some((start, end)) => {
            [start, end.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit())].concat()
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn programs_register_the_same_fatbinaries() {
    let ours = tempfile::tempdir().unwrap();
    let tool = tool("clang-linker-wrapper");
    symlink(tool, ours.path().join("clang-linker-wrapper")).unwrap();
    let links: Vec<_> = Units::links().iter().filter(|link| link.units == Units::RdcNew).collect();
    assert_eq!(links.len(), 2);
    for link in links {
        let theirs = RIG.file(link.name);
        let path = ours.path().join(link.name);
        let builder = Builder { place: theirs.place.clone() };
        let mut step = builder.link_step(link);
        step.insert(1, format!("-B{}", ours.path().display()));
        let at = step.iter().rposition(|word| word == "-o").unwrap() + 1;
        step[at] = path.to_str().unwrap().to_owned();
        settle(&builder.step(&step));
        let seen = observe(theirs, &path).unwrap();
        assert!(seen.log.contains(": registered\n"), "{}", seen.log);
        let before = &RIG.before(theirs).seen;
        assert_eq!(facts(&seen), facts(before), "{}", link.name);
        assert!(seen.containers == before.containers, "{}", link.name);
        assert!(seen.containers.iter().all(|fatbinary| !fatbinary.is_empty()));
    }
}
