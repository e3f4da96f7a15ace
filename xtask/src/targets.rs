//! Everything compiles for other systems, and the libraries are right where numbers have 32 bits or the other byte order.
//!
//! Nothing is installed but targets of rustup's.

use std::env;
use std::process::Command;
use std::time::Instant;

use crate::ci::Ci;
use crate::machine::{has, has_target, is_x86_64_linux, need};
use crate::process::{self, Result, Stop, command, lacking, read, succeeds};
use crate::workspace::{Workspace, packages};

/// Name of a system, and its check, which gets the libraries whose tests run.
type System = (&'static str, fn(&Workspace, &[String]) -> Result);

const SYSTEMS: [System; 5] =
    [("windows", windows), ("macos", macos), ("wasm", wasm), ("i686", i686), ("s390x", s390x)];

/// Tests of the upper floors take minutes there: before releases.
pub(crate) fn step(ci: &mut Ci) -> Result {
    need("s390x-linux-gnu-gcc qemu-s390x", "gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user")?;
    succeeds(command("rustup component add --toolchain nightly rust-src"));
    let (small, big) = (ci.workspace.nightly("i686"), ci.workspace.nightly("s390x"));
    let end = check(&ci.workspace, &named(&["windows", "macos", "wasm", "i686"])?, &small);
    ci.may_lack("some of the other systems", end)?;
    let end = check(&ci.workspace, &named(&["s390x"])?, &big);
    ci.may_lack("libraries where the largest byte comes first", end)
}

/// Checks all systems, or the named ones. `CRATES`: the libraries whose tests run, by default all
/// (`CRATES=ccob .ci/xtask targets s390x`).
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    let names: Vec<_> = arguments.iter().map(String::as_str).collect();
    let systems = if names.is_empty() { SYSTEMS.to_vec() } else { named(&names)? };
    let tested = match env::var("CRATES") {
        Ok(names) if !names.is_empty() => names.split_whitespace().map(str::to_owned).collect(),
        _ => workspace.libraries()?.iter().map(|package| package.name.clone()).collect::<Vec<_>>(),
    };
    check(workspace, &systems, &tested)
}

fn named(names: &[&str]) -> Result<Vec<System>> {
    let find = |name: &&str| {
        let found = SYSTEMS.iter().find(|system| system.0 == *name);
        found.copied().ok_or_else(|| Stop::Misused(format!("no target '{name}'")))
    };
    names.iter().map(find).collect()
}

/// Checks systems, and continues after one that cannot be checked here.
fn check(workspace: &Workspace, systems: &[System], tested: &[String]) -> Result {
    let mut end = Ok(());
    for (name, system) in systems {
        let start = Instant::now();
        match system(workspace, tested) {
            Err(Stop::Lacking) => end = Err(Stop::Lacking),
            other => other?,
        }
        println!("{name}: {} s", start.elapsed().as_secs());
    }
    end
}

fn windows(_: &Workspace, _: &[String]) -> Result {
    compiles_for("x86_64-pc-windows-gnu", "Windows")
}

fn macos(_: &Workspace, _: &[String]) -> Result {
    compiles_for("aarch64-apple-darwin", "macOS")
}

/// libzstd and TLS are C, which takes a compiler for the target: not even to check. Without them all is Rust.
fn compiles_for(triple: &str, name: &str) -> Result {
    if !has_target(triple) {
        return Err(lacking(name));
    }
    let check = "cargo clippy --quiet --workspace --exclude offload-benches --exclude oracles \
                 --exclude offload-tool-network --no-default-features --lib --bins --target";
    process::run(command(check).args([triple, "--", "-D", "warnings"]))
}

const WASM: &str = "wasm32-unknown-unknown";

/// Compiles for a system that is neither Unix nor Windows.
fn wasm(workspace: &Workspace, _: &[String]) -> Result {
    let mut check = if has_target(WASM) {
        command("cargo check --quiet --target")
    } else if can_make_std() {
        command("cargo +nightly check --quiet -Zbuild-std=std,panic_abort --target")
    } else {
        return Err(lacking("WebAssembly"));
    };
    process::run(check.arg(WASM).args(packages(&workspace.libraries()?)))
}

/// Runs here, linked by what comes with Rust.
fn i686(_: &Workspace, tested: &[String]) -> Result {
    let triple = "i686-unknown-linux-musl";
    if !is_x86_64_linux() || !has_target(triple) {
        return Err(lacking("the libraries where numbers are of 32 bits"));
    }
    let flags = "-Clinker=rust-lld -Clink-self-contained=yes";
    let mut test = command("cargo test --quiet --target");
    test.arg(triple).env("CARGO_TARGET_I686_UNKNOWN_LINUX_MUSL_RUSTFLAGS", flags);
    process::run(of(&mut test, tested).env("PROPTEST_CASES", "32"))
}

/// Emulated, and so optimized a little. The largest byte comes first here.
fn s390x(_: &Workspace, tested: &[String]) -> Result {
    if !has("s390x-linux-gnu-gcc") || !has("qemu-s390x") || !can_make_std() {
        return Err(lacking("the libraries where the largest byte comes first"));
    }
    let mut test = command(
        "cargo +nightly test --quiet -Zbuild-std=std,panic_unwind --target s390x-unknown-linux-gnu",
    );
    test.env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER", "s390x-linux-gnu-gcc")
        .env("CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER", "qemu-s390x -L /usr/s390x-linux-gnu")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    process::run(of(&mut test, tested).env("PROPTEST_CASES", "4"))
}

fn of<'c>(test: &'c mut Command, crates: &[String]) -> &'c mut Command {
    test.args(["--lib", "--tests"]).args(crates.iter().map(|name| format!("--package={name}")))
}

/// Returns true if a nightly compiler can build a standard library.
fn can_make_std() -> bool {
    let root = read(command("rustup run nightly rustc --print sysroot")).unwrap_or_default();
    has(format!("{}/lib/rustlib/src/rust/library/Cargo.lock", root.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systems_are_known_by_name() {
        let found = named(&["s390x", "wasm"]).unwrap();
        assert_eq!(found.iter().map(|system| system.0).collect::<Vec<_>>(), ["s390x", "wasm"]);
        let error = named(&["s390"]).unwrap_err();
        assert!(matches!(error, Stop::Misused(text) if text == "no target 's390'"));
    }

    #[test]
    fn the_next_system_is_checked_although_one_is_lacking() {
        let workspace = Workspace { root: "/".into(), target: "/".into(), packages: Vec::new() };
        let lacks: System = ("lacks", |_, _| Err(Stop::Lacking));
        let works: System = ("works", |_, _| Ok(()));
        let fails: System = ("fails", |_, _| Err(Stop::Status(101)));
        assert!(check(&workspace, &[works], &[]).is_ok());
        assert!(matches!(check(&workspace, &[lacks, works], &[]), Err(Stop::Lacking)));
        assert!(matches!(check(&workspace, &[lacks, fails], &[]), Err(Stop::Status(101))));
    }
}
