//! Steps of cargo's commands.
//!
//! The workspace is built with `--workspace`, not crate by crate: the features of all crates are unified only then.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::ci::Ci;
use crate::machine::{Place, cargo_tool, has_nightly, has_target, is_root};
use crate::process::{Result, command, read, run, succeeds, wrong};
use crate::workspace::{Package, packages};

const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

/// Tests say what they cannot test, and fail then where everything can be.
pub(crate) fn tests(ci: &mut Ci) -> Result {
    let may_mount = || succeeds(command("unshare -m mount -t tmpfs none /mnt"));
    let others_may_read = || succeeds(command(NOBODY).args(["test", "-r", "Cargo.toml"]));
    if is_root() && may_mount() && others_may_read() {
        // Some runners ignore SIGHUP, which tests send.
        let tests = "env --default-signal=HUP cargo test --workspace";
        return run(command(tests).env("NOT_TESTED", "fail"));
    }
    ci.not_checked(
        "what tests mark as NOT TESTED above: it needs root, who may mount, and a clone that others may read",
    );
    run(command("cargo test --workspace"))
}

pub(crate) fn fmt(_: &mut Ci) -> Result {
    run(command("cargo fmt --all --check"))
}

pub(crate) fn clippy(_: &mut Ci) -> Result {
    run(command("cargo clippy --workspace --all-targets --all-features --quiet -- -D warnings"))
}

pub(crate) fn rustdoc(_: &mut Ci) -> Result {
    let doc = "cargo doc --workspace --all-features --no-deps --quiet";
    run(command(doc).env("RUSTDOCFLAGS", "-D warnings"))
}

pub(crate) fn msrv(ci: &mut Ci) -> Result {
    let version = ci.workspace.package("offload-cli")?.rust_version.clone();
    let install = "rustup toolchain install --profile minimal --no-self-update";
    let is_there = succeeds(command("rustup run").arg(&version).args(["rustc", "--version"]))
        || succeeds(command(install).arg(&version));
    if !is_there {
        ci.not_checked(format!("the oldest Rust that is promised: no Rust {version} to be had"));
        return Ok(());
    }
    run(command("cargo")
        .arg(format!("+{version}"))
        .args(["check", "--quiet", "--workspace", "--target-dir"])
        .arg(ci.workspace.target.join("msrv")))
}

/// Each published package, in a copy of the workspace, with the oldest version of each dependency that its manifest allows.
pub(crate) fn minimal(ci: &mut Ci) -> Result {
    if !has_nightly() {
        ci.not_checked("lower bounds of dependencies: no nightly compiler");
        return Ok(());
    }
    let place = Place::new()?;
    let listed = read(command("git ls-files -z --cached --others --exclude-standard"))?;
    for file in listed.split_terminator('\0').map(Path::new).filter(|file| file.is_file()) {
        let copy = place.join(file);
        fs::create_dir_all(copy.parent().unwrap_or(&place))?;
        fs::copy(file, copy)?;
    }
    fs::remove_file(place.join("Cargo.lock"))?;
    let lock = "cargo +nightly generate-lockfile --quiet -Zdirect-minimal-versions";
    let output = command(lock).current_dir(&*place).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    if told.contains("failed to select a version") {
        return wrong(told);
    }
    if !output.status.success() {
        ci.not_checked(format!("lower bounds of dependencies: cargo cannot list them: {told}"));
        return Ok(());
    }
    for package in ci.workspace.published()? {
        for features in [&[][..], &["--all-features"]] {
            // One package at a time: together, one hides that another lacks a feature.
            let check = "cargo check --quiet --locked --target-dir";
            let end = run(command(check)
                .arg(ci.workspace.target.join("minimal"))
                .args(["--package", &*package.name])
                .args(features)
                .current_dir(&*place));
            if end.is_err() {
                let name = &package.name;
                return wrong(format!(
                    "{name}: fails with the oldest dependencies of its manifest"
                ));
            }
        }
    }
    Ok(())
}

/// Each crate that has features, without them. The step `clippy` checks all features.
pub(crate) fn features(ci: &mut Ci) -> Result {
    for package in ci.workspace.published()? {
        if !package.features.is_empty() {
            lint(package, &["--no-default-features"])?;
        }
    }
    let ccob = ci.workspace.package("ccob")?;
    let object_edit = ci.workspace.package("object-edit")?;
    lint(object_edit, &["--no-default-features", "--features", "objects"])?;
    for set in ["ruzstd", "miniz_oxide", "zstd", "std,ruzstd"] {
        lint(ccob, &["--no-default-features", "--features", set])?;
    }
    let codecs = ci.workspace.package("offload-codecs")?;
    for set in ["ruzstd", "ruzstd,std", "miniz_oxide", "zstd", "lz4", "stream"] {
        lint(codecs, &["--no-default-features", "--features", set])?;
    }
    // Both zstd codecs pass the same tests.
    run(command("cargo test --quiet -p offload-codecs -p ccob --all-features"))?;
    run(command("cargo test --quiet -p ccob --no-default-features"))?;
    run(command("cargo test --quiet -p target-id --features serde --test all serde::"))
}

fn lint(package: &Package, features: &[&str]) -> Result {
    run(command("cargo clippy --quiet --manifest-path")
        .arg(package.directory.join("Cargo.toml"))
        .args(features)
        .args(["--", "-D", "warnings"]))
}

const BARE: &str = "x86_64-unknown-none";

/// A target without std refuses every dependency that needs it.
pub(crate) fn no_std(ci: &mut Ci) -> Result {
    if !has_target(BARE) {
        ci.not_checked(format!("the ground floor without std: no target {BARE} to be had"));
        return Ok(());
    }
    let crates = ci.workspace.no_std();
    let features = no_std_features(&crates);
    let check = || {
        let mut check = command("cargo check --quiet --no-default-features --target");
        check.arg(BARE).args(packages(&crates));
        check
    };
    run(check())?;
    run(check().arg("--features").arg(features))
}

/// Returns the features that need no std, as cargo takes them.
fn no_std_features(crates: &[&Package]) -> String {
    let of = |package: &Package| {
        let named = |feature: &String| format!("{}/{feature}", package.name);
        package.no_std_features.iter().map(named).collect::<Vec<_>>()
    };
    crates.iter().flat_map(|package| of(package)).collect::<Vec<_>>().join(",")
}

/// Licences, duplicates, sources, known vulnerabilities.
pub(crate) fn licences(ci: &mut Ci) -> Result {
    cargo_tool("cargo-deny")?;
    run(command("cargo deny check bans licenses sources"))?;
    // RustSec's database is on GitHub. A machine that cannot reach it knows no vulnerabilities.
    if succeeds(command("cargo deny fetch db").stdout(Stdio::null())) {
        return run(command("cargo deny check --disable-fetch advisories"));
    }
    ci.not_checked(
        "known vulnerabilities: RustSec's database cannot be fetched (cargo deny check advisories)",
    );
    Ok(())
}

/// Every place of the damaged samples and every call that can fail, where the gate takes some of them.
pub(crate) fn thorough(ci: &mut Ci) -> Result {
    let target: &Path = &ci.workspace.target.join("thorough");
    run(command("cargo test --no-fail-fast --workspace --lib --bins --tests --target-dir")
        .arg(target)
        .env("THOROUGH", "1")
        .env("PROPTEST_CASES", "512")
        // Optimized a little, so that hours become minutes.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1"))
}
