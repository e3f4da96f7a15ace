//! Each fuzz target, for seconds, with AddressSanitizer.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::ci::Ci;
use crate::machine::{Place, cargo_tool, has_nightly, host};
use crate::process::{Result, all_succeed, command, read, run, wrong};

pub(crate) fn step(ci: &mut Ci) -> Result {
    if !has_nightly() {
        ci.not_checked("the fuzz targets: no nightly compiler");
        return Ok(());
    }
    cargo_tool("cargo-fuzz")?;
    run(command("cargo +nightly fuzz build --target-dir fuzz/target"))?;
    let listed = read(command("cargo +nightly fuzz list"))?;
    let programs = Path::new("fuzz/target").join(host(Some("nightly"))?).join("release");
    let logs = Place::new()?;
    // As many targets at a time as there are cores: each has one thread.
    let job = |target: &str| shortly(target, &programs, &logs.join(target)).is_ok();
    if all_succeed(listed.lines().collect(), job) {
        return Ok(());
    }
    wrong(format!("logs of all targets: {}", logs.keep().display()))
}

/// Runs a target that is built, and says what it did. All that it says goes into a log, which is shown if it fails.
fn shortly(target: &str, programs: &Path, log: &Path) -> Result {
    let (corpus, artifacts) = (format!("fuzz/corpus/{target}"), format!("fuzz/artifacts/{target}"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&artifacts)?;
    run(command("fuzz/seed").arg(target))?;
    let file = File::create(log)?;
    // A fixed seed: the same inputs every time, so that a failure is of this change. Long runs, with other seeds, are
    // what docs/details/fuzzing.md reports (fuzz/long).
    let options = "-seed=1 -runs=20000 -max_total_time=4 -max_len=65536 -rss_limit_mb=3000 -verbosity=0 -print_final_stats=1";
    let program = programs.join(target);
    let mut fuzzer = Command::new(&program);
    fuzzer.arg(corpus).arg(format!("-artifact_prefix={artifacts}/")).args(options.split(' '));
    let end = run(fuzzer.stderr(file.try_clone()?).stdout(file));
    let told = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    match end {
        Ok(()) => println!("{target}: {} runs", runs(&told)),
        Err(_) => println!("{told}--- {target} FAILED"),
    }
    end
}

/// Returns the number of runs that libfuzzer reports.
fn runs(told: &str) -> &str {
    told.lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .unwrap_or_default()
        .trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_told_at_the_end() {
        assert_eq!(runs("x\nstat::number_of_executed_units: 20000\nstat::y: 1\n"), "20000");
        assert_eq!(runs(""), "");
    }
}
