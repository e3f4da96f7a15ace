//! `offload gpus` as a whole. Suggestions, and what is said of what a file has, are in `cases/suggest`.

use crate::common::{offload, stdout};

#[test]
fn all_gpus_and_those_of_one_vendor() {
    assert!(stdout(&offload(["gpus"])).lines().count() > 400);
    let vendor = stdout(&offload(["gpus", "intel"]));
    assert!(vendor.lines().count() > 20);
    assert!(vendor.lines().skip(1).all(|line| line.contains("  Intel  ")), "{vendor}");
}
