//! `offload gpus`. Suggestions, and messages about the contents of a file, are in `cases/suggest`.

use crate::common::{offload, stdout};

#[test]
fn gpus_are_listed_for_all_vendors_or_one() {
    assert!(stdout(&offload(["gpus"])).lines().count() > 400);
    let vendor = stdout(&offload(["gpus", "intel"]));
    assert!(vendor.lines().count() > 20);
    assert!(vendor.lines().skip(1).all(|line| line.contains("  Intel  ")), "{vendor}");
}
