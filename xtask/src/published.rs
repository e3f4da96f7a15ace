//! Published packages and libraries, and the tools of others beside ours. The scripts in Python compare.

use std::path::Path;

use crate::ci::Ci;
use crate::files;
use crate::llvm::need_llvm;
use crate::machine::{cargo_tool, need, variable};
use crate::process::{Result, command, run};

/// Published packages beside the same files unpacked; thinned, checked, and installed by pip and uv.
pub(crate) fn packages(ci: &mut Ci) -> Result {
    need("zstd xz bzip2 rpmbuild rpm2cpio cpio objdump", "zstd xz-utils bzip2 rpm cpio binutils")?;
    need("dpkg-deb tar python3", "dpkg tar python3-pip")?;
    // Packages that programs could read differently.
    run(command("cargo test --quiet --locked -p gpu-packages --test all installers -- --ignored"))?;
    // Gigabytes are decompressed.
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    run(command("cargo build --release --quiet --locked -p offload-examples --bin wheels"))?;
    let end = run(command(".ci/packages").arg(ci.workspace.target.join("release")));
    ci.may_lack("published packages: they cannot be downloaded, or there is no pip", end)
}

/// Published libraries split into kernel packs, read independently, stripped, joined.
pub(crate) fn packs(ci: &mut Ci) -> Result {
    need("zstd strip", "zstd binutils")?;
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    let end = run(command(".ci/packs").arg(ci.workspace.target.join("release")));
    ci.may_lack("split published libraries: they cannot be downloaded, or there is no pip", end)
}

/// Published CUDA libraries thinned for a GPU, read independently, loaded.
pub(crate) fn shrunk(ci: &mut Ci) -> Result {
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    let end = run(command(".ci/shrunk").arg(ci.workspace.target.join("release")));
    ci.may_lack("thinned CUDA libraries: they cannot be downloaded, or there is no pip", end)
}

/// Variants of published wheels, beside variantlib.
pub(crate) fn variants(ci: &mut Ci) -> Result {
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    let end = run(command(".ci/variants").arg(ci.workspace.target.join("release")));
    ci.may_lack("variants of wheels: wheels or variantlib cannot be downloaded", end)
}

/// Environments of published packages, shrunk for a GPU, read independently.
pub(crate) fn environment(ci: &mut Ci) -> Result {
    need("zstd", "zstd")?;
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    let end = run(command(".ci/environment").arg(ci.workspace.target.join("release")));
    ci.may_lack("shrunk environments: they cannot be downloaded, or there is no pip", end)
}

/// Images of published packages in three layers, thinned, read independently and by container tools.
pub(crate) fn images(ci: &mut Ci) -> Result {
    need("zstd skopeo umoci podman", "zstd skopeo umoci podman")?;
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    let end = run(command(".ci/images").arg(ci.workspace.target.join("release")));
    ci.may_lack("thinned images: packages cannot be downloaded, or there is no pip", end)
}

/// JSON, SARIF, JUnit and CSV, read by programs that are not ours.
pub(crate) fn formats(ci: &mut Ci) -> Result {
    run(command("cargo build --quiet --workspace"))?;
    let end = run(command(".ci/formats").arg(ci.workspace.target.join("debug")));
    let what = "outputs for programs: there is no jsonschema or jq, or the schema of SARIF cannot be downloaded";
    ci.may_lack(what, end)
}

/// Accounts of the bytes of published CUDA libraries beside cubloaty.
pub(crate) fn bytes(ci: &mut Ci) -> Result {
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    let end = run(command(".ci/bytes").arg(ci.workspace.target.join("release")));
    ci.may_lack(
        "bytes beside cubloaty: it or a library cannot be downloaded, or there is no pip",
        end,
    )
}

/// The pages of published packages and libraries, read in a browser.
pub(crate) fn report(ci: &mut Ci) -> Result {
    need("chromium dpkg-deb python3", "chromium dpkg python3-pip")?;
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    let end = run(command(".ci/report").arg(ci.workspace.target.join("release")));
    let what =
        "pages in Chromium: Playwright or a package cannot be downloaded, or there is no pip";
    ci.may_lack(what, end)
}

/// The wheel of the Python module, its tests, and its rows of published wheels beside those of the tool.
pub(crate) fn bindings_python(ci: &mut Ci) -> Result {
    need("cc python3", "gcc python3-venv")?;
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    cargo_tool("cargo-deny")?;
    // The module is built for Linux: for other systems, crates of arrow use crates that nothing else does.
    for (package, target) in
        [("python", "--target x86_64-unknown-linux-gnu"), ("c", ""), ("web", "")]
    {
        let deny = format!("cargo deny --manifest-path bindings/{package}/Cargo.toml {target}");
        run(command(&deny).args("--config deny.toml check bans licenses sources".split(' ')))?;
    }
    let end = run(command(".ci/bindings-python").arg(ci.workspace.target.join("release")));
    ci.may_lack("the Python module: packages or wheels cannot be downloaded", end)
}

/// Scans of many wheels by Ray Data and Spark, whose workers are killed.
pub(crate) fn fleet(ci: &mut Ci) -> Result {
    need("cc python3 java", "gcc python3-venv default-jre-headless")?;
    run(command("cargo build --release --quiet --locked -p offload-cli --bin offload"))?;
    let built = ci.workspace.target.join("release");
    let end = run(command(".ci/bindings-python --wheel").arg(built));
    let what = "Ray Data and Spark: they, or what builds the Python module, cannot be downloaded";
    ci.may_lack(what, end)?;
    // The script above has put the only wheel there.
    let wheels = files::of(Path::new("target/wheels"))?;
    let end = run(command(".ci/fleet").args(wheels.last()));
    ci.may_lack(what, end)
}

/// Kernels of published libraries beside llvm-readobj and spirv-dis.
pub(crate) fn kernels(ci: &mut Ci) -> Result {
    need_llvm()?;
    run(command("cargo build --quiet --workspace"))?;
    let end = run(command(".ci/kernels").arg(ci.workspace.target.join("debug")));
    let what = "kernels beside llvm-readobj: a library cannot be downloaded, or there is no pip";
    ci.may_lack(what, end)
}

/// Entries of fatbinaries beside cuobjdump, and edited CUDA programs and libraries.
pub(crate) fn nvidia(ci: &mut Ci) -> Result {
    run(command("cargo build --quiet --workspace"))?;
    let tools = ci.workspace.target.join("debug");
    let end = run(command(".ci/nvidia").arg(&tools));
    let what = "NVIDIA's cuobjdump: it or a library cannot be downloaded, or there is no pip";
    ci.may_lack(what, end)?;
    let cuda = variable("CUDA", ci.workspace.target.join("nvidia"));
    let end = edited(&cuda);
    let what = "edited CUDA files: NVIDIA's tools cannot be downloaded, or there is no pip";
    ci.may_lack(what, end)?;
    let end = run(command(".ci/cuda-gpu --dry-run").arg(tools).env("CUDA", cuda));
    ci.may_lack("files for an NVIDIA GPU: no ptxas in $CUDA/bin", end)
}

fn edited(cuda: &Path) -> Result {
    run(command(".ci/nvidia --fetch").arg(cuda))?;
    need_llvm()?;
    let tests = "cargo test --workspace --features tool-tests/nvidia-peer --test nvidia";
    run(command(tests).env("CUDA", cuda))
}
