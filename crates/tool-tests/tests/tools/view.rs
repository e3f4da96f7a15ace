//! Output of `ls` and `match` on a terminal. The rest is in `cases/view`.

use std::fs;

use samples::bundle::bundle_of;

use crate::common::{data, new_command, stdout, tool};

/// A bundle with an empty image for the host and eight for GPUs.
fn bundle() -> Vec<u8> {
    let gpus = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"];
    let device = gpus.iter().map(|gpu| format!("hipv4-amdgcn-amd-amdhsa--{gpu}"));
    let ids: Vec<_> = [bundle_format::HIP_HOST_ID.to_owned()].into_iter().chain(device).collect();
    let images: Vec<Vec<u8>> = (0..ids.len()).map(|n| vec![1; 5000 * n]).collect();
    bundle_of(&ids.into_iter().zip(images).collect::<Vec<_>>(), 4096)
}

/// Returns the output on a terminal of this size.
fn on_terminal(lines: u32, cells: u32, args: &[&str]) -> String {
    // Quoted for a shell.
    let words = [&[tool("offload")], args].concat();
    let words = words.iter().map(|word| format!("'{}'", word.replace('\'', "'\\''")));
    let command =
        words.fold(format!("stty rows {lines} cols {cells};"), |all, word| all + " " + &word);
    let mut script = new_command("script");
    let output = script.args(["-qec", &command, "/dev/null"]).env("NO_COLOR", "1").output();
    stdout(&output.unwrap()).replace("\r\n", "\n")
}

#[test]
fn large_files_show_totals_on_a_terminal() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("many.hipfb");
    fs::write(&path, bundle()).unwrap();
    let path = path.to_str().unwrap();
    let text = on_terminal(8, 80, &["ls", path]);
    assert!(text.contains("TOTAL FOR") && !text.contains("bundle:0"), "{text}");
    assert!(text.contains("  9 images: --rows shows them\n"), "{text}");
    for args in [&["ls", "--rows", path][..], &["ls", "--tree", path], &["ls", "--hash", path]] {
        let text = on_terminal(8, 80, args);
        assert!(text.contains("bundle:0") && !text.contains("--rows"), "{args:?}: {text}");
    }
    assert!(on_terminal(9, 80, &["ls", path]).contains("bundle:0"));
}

#[test]
fn tables_fit_eighty_cells() {
    let hip = data("hip-two-units-ccob.so");
    let hip = hip.to_str().unwrap();
    let text = on_terminal(50, 80, &["ls", hip]);
    let table: Vec<_> = text.lines().skip(1).collect();
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{text}");
    // The patterns of --in.
    assert!(text.contains("section:.hip_fatbin ccob:1 bundle:0"), "{text}");
    let text =
        on_terminal(50, 80, &["match", "--gpu", "gfx906,gfx90a:xnack-,gfx1100,gfx1201", hip]);
    let tables = text.lines().skip(1).filter(|line| line.starts_with(' '));
    assert!(tables.clone().count() > 4, "{text}");
    assert!(tables.clone().all(|line| line.chars().count() <= 80), "{text}");
}
