//! Files of HIP sources that patchelf, LIEF, strip or objcopy changed before an edit, after it, or both: `edit_rig/retouch.rs`.
//!
//! Needs what the tests of edited files need, and `.ci/post-link target/post-link`, or where `POST_LINK` points.

use std::fs;

use crate::edit::edit_rig::check::edit;
use crate::edit::edit_rig::retouch::{Edit, check};
use crate::edit::edit_rig::{observe, packs, settle};
use crate::edit::{RIG, only};
use crate::split::{join, split};

const FILES: [&str; 12] = [
    "so-bfd",
    "so-lld",
    "so-gold",
    "so-mold",
    "so-lld-relr",
    "so-bfd-2m",
    "pie-bfd",
    "pie-lld-debug",
    "exe-bfd",
    "exe-lld",
    "musl-so",
    "aarch64-so-lld",
];

#[test]
#[ignore = "slow: .ci/run post_link"]
fn changed_files_are_edited_like_others() {
    let mut files = RIG.chosen();
    files.retain(|file| FILES.contains(&file.name));
    settle(&check(
        &files,
        &Edit {
            words: &["thin", "--keep", "gfx1100,gfx906", "--exact"],
            expected: &|file| only(file, &["gfx1100", "gfx906"]),
            more: &|file, _| {
                // Bundles that the compiler has compressed are not put back byte for byte.
                if file.compressed {
                    return Vec::new();
                }
                let kept = only(file, &["gfx1100", "gfx906"]);
                let words = ["thin", "--keep", "gfx1100,gfx906", "--exact"];
                let found = edit(file, &file.path, &words).and_then(|thinned| {
                    let split = split(file, &thinned.path(), &[])?;
                    let seen = observe::observe(file, &split.host())?;
                    let mut complaints = packs::check(&split.directory(), &seen, &kept);
                    let joined = join(file, &split.host(), &[])?.bytes();
                    if joined != fs::read(thinned.path()).unwrap() {
                        complaints.push("joined it is not the file that was split".to_owned());
                    }
                    Ok(complaints)
                });
                found.unwrap_or_else(|error| vec![format!("split: {error}")])
            },
        },
    ));
}
