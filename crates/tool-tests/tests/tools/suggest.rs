//! `offload gpus`. Suggestions, and messages about the contents of a file, are in `cases/suggest`.

use std::fs;

use crate::common::{data, new_command, offload, stderr, stdout, tool};
use crate::wheels::Place;

#[test]
fn gpus_are_listed_for_all_vendors_or_one() {
    assert!(stdout(&offload(["gpus"])).lines().count() > 400);
    let vendor = stdout(&offload(["gpus", "intel"]));
    assert!(vendor.lines().count() > 20);
    assert!(vendor.lines().skip(1).all(|line| line.contains("  Intel  ")), "{vendor}");
}

/// Options that take a GPU, by their lines in the help of a command: these placeholders are for nothing else, except for IDs of
/// entries and the targets of `wrap`, which are written as they are.
fn gpu_options(help: &str) -> Vec<String> {
    let named = ["<TARGET-ID>", "<TARGET-ID,...>", "<ID>", "<ID,...>", "<GPU,...>"];
    let option = |line: &str| {
        let mut words = line.split_whitespace();
        let option = words.find(|word| word.starts_with("--"))?.to_owned();
        let is_one = words.next().is_some_and(|word| named.contains(&word));
        let others = ["--id", "--offload-arch", "--output"];
        (is_one && !others.contains(&&*option)).then_some(option)
    };
    let mut options: Vec<_> =
        help.lines().filter(|line| line.starts_with("      --")).filter_map(option).collect();
    options.sort();
    options.dedup();
    options
}

#[test]
fn every_command_says_which_id_it_takes_for_a_product() {
    let place = Place::with("hip.hipfb", &fs::read(data("hip.hipfb")).unwrap());
    let commands = stdout(&new_command(tool("offload")).arg("-h").output().unwrap());
    let mut asked = 0;
    for line in commands.lines() {
        let Some(command) = line.strip_prefix("  ").and_then(|line| line.split(' ').next()) else {
            continue;
        };
        if command.is_empty() || !command.chars().all(|c| c.is_ascii_lowercase()) {
            continue;
        }
        let help = new_command(tool("offload")).args([command, "--help"]).output().unwrap();
        for option in gpu_options(&stdout(&help)) {
            let mut line = vec![command, &option, "RX 7600"];
            match command {
                "doctor" => line.extend(["--prefix", "none"]),
                "diff" => line.extend(["hip.hipfb", "hip.hipfb"]),
                "extract" => line.extend(["hip.hipfb", "-o", "out"]),
                "thin" => line.extend(["hip.hipfb", "--dry-run"]),
                "shrink" => line.extend(["hip.hipfb", "--plan"]),
                _ => line.push("hip.hipfb"),
            }
            let said = stderr(&place.offload(&line));
            assert!(said.contains("note: RX 7600 is gfx1102\n"), "{line:?}: {said}");
            assert_eq!(said.matches("is gfx1102").count(), 1, "{line:?}: {said}");
            // Documents have no notes; commands that have no such output refuse the option.
            for bare in ["--json", "--quiet"] {
                let said = stderr(&place.offload(&[&line[..], &[bare]].concat()));
                assert!(!said.contains("is gfx1102"), "{line:?} {bare}: {said}");
            }
            asked += 1;
        }
    }
    assert!(asked >= 11, "only {asked} options take a GPU");
}
