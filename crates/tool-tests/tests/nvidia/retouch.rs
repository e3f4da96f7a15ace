//! CUDA files that patchelf, LIEF, strip or objcopy changed before an edit, after it, or both: `edit_rig/retouch.rs`.
//!
//! Needs what the tests of edited files need, and `.ci/post-link target/post-link`, or where `POST_LINK` points.

use crate::edit::{RIG, only};
use crate::edit_rig::retouch::{Edit, check};
use crate::edit_rig::settle;

const FILES: [&str; 8] = [
    "so-bfd",
    "so-lld",
    "so-gold",
    "so-mold",
    "so-bfd-rdc",
    "so-lld-referred",
    "pie-lld",
    "aarch64-so-bfd",
];

#[test]
#[ignore = "slow: .ci/run post_link"]
fn changed_files_are_edited_like_others() {
    let mut files = RIG.chosen();
    files.retain(|file| FILES.contains(&file.name));
    settle(&check(
        &files,
        &Edit {
            words: &["thin", "--keep", "sm_80", "--exact"],
            expected: &|file| only(file, |target| ["sm_80", "compute_80"].contains(&target)),
            more: &|_, _| Vec::new(),
        },
    ));
}
