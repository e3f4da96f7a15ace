//! The bindings: a workspace of their own, whose glue needs unsafe code.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::Ci;
use crate::machine::{cargo_tool, need};
use crate::process::{Result, Stop, command, run};
use crate::unpacked;
use crate::workspace::Workspace;

/// The compiler that knows WebAssembly, with its standard library, from Debian's suite `sid`: a compiler by rustup is not everywhere.
const WASM_RUST: &str =
    "rustc libstd-rust-dev libstd-rust-dev-wasm32 libstd-rust-1.97 libllvm22 lld-22";

/// Returns a command of cargo in the workspace of the bindings. Its outputs are apart from those of the main workspace.
fn cargo(workspace: &Workspace, words: &str) -> Command {
    let mut cargo = command("cargo");
    cargo.args(words.split_whitespace()).current_dir(workspace.root.join("bindings"));
    cargo.env("CARGO_TARGET_DIR", target(workspace));
    cargo
}

fn target(workspace: &Workspace) -> PathBuf {
    workspace.target.join("bindings")
}

/// Checks the form and the lints of a package of the bindings.
fn lints(workspace: &Workspace, package: &str) -> Result {
    run(cargo(workspace, "fmt --check -p").arg(package))?;
    run(cargo(workspace, "clippy --quiet --locked --all-targets -p")
        .arg(package)
        .args(["--", "-D", "warnings"]))
}

/// The C library, its header, and programs that use it.
pub(crate) fn c(ci: &mut Ci) -> Result {
    need("gcc g++ nm pkg-config valgrind", "gcc g++ binutils pkg-config valgrind")?;
    cargo_tool("cbindgen")?;
    lints(&ci.workspace, "offload-c")?;
    run(command("cargo build --quiet --locked -p offload-cli --bin offload"))?;
    run(cargo(&ci.workspace, "build --release --quiet --locked -p offload-c"))?;
    let mut check = command(".ci/bindings-c");
    run(check.arg(ci.workspace.target.join("debug")).arg(target(&ci.workspace).join("release")))
}

/// Installs the built C library below a prefix: `install-c PREFIX BUILT`.
pub(crate) fn install_c(workspace: &Workspace, arguments: &[String]) -> Result {
    let [prefix, built] = arguments else {
        return Err(Stop::Misused("expected PREFIX BUILT".to_owned()));
    };
    let (prefix, built) = (Path::new(prefix), Path::new(built));
    let source = workspace.root.join("bindings/c");
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let configs = lib.join("pkgconfig");
    fs::create_dir_all(&configs)?;
    fs::create_dir_all(&include)?;
    run(command("install -m 755")
        .arg(built.join("liboffload.so"))
        .arg(lib.join("liboffload.so.1")))?;
    run(command("ln -sf liboffload.so.1").arg(lib.join("liboffload.so")))?;
    run(command("install -m 644").arg(built.join("liboffload.a")).arg(&lib))?;
    run(command("install -m 644").arg(source.join("include/offload.h")).arg(include))?;
    let config = fs::read_to_string(source.join("offload.pc.in"))?;
    let config = config.replace("@PREFIX@", &prefix.display().to_string());
    fs::write(configs.join("offload.pc"), config.replace("@VERSION@", env!("CARGO_PKG_VERSION")))?;
    Ok(())
}

/// The page, in Chromium.
pub(crate) fn web(ci: &mut Ci) -> Result {
    need("patchelf chromium", "patchelf chromium")?;
    lints(&ci.workspace, "offload-web")?;
    run(command("cargo build --quiet --locked -p offload-cli --bin offload"))?;
    let page = ci.workspace.target.join("web/offload.html");
    let what = "the page for the browser: the compiler for WebAssembly, Chromium or a package cannot be downloaded";
    let end = write_page(&ci.workspace, &page).and_then(|()| {
        run(command(".ci/bindings-web").arg(ci.workspace.target.join("debug")).arg(&page))
    });
    ci.may_lack(what, end)
}

/// Writes the page for the browser: `web PAGE`.
pub(crate) fn page(workspace: &Workspace, arguments: &[String]) -> Result {
    let [page] = arguments else { return Err(Stop::Misused("expected PAGE".to_owned())) };
    write_page(workspace, Path::new(page))
}

fn write_page(workspace: &Workspace, page: &Path) -> Result {
    let place = workspace.target.join("wasm-rust");
    unpacked::fetch_rust(&place, WASM_RUST)?;
    let root = place.join("root/usr");
    let module =
        "build --profile web --quiet --locked --target wasm32-unknown-unknown -p offload-web --lib";
    run(cargo(workspace, module)
        .env("CARGO_TARGET_DIR", target(workspace).join("wasm"))
        .env("RUSTC", root.join("bin/rustc"))
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", root.join("lib/llvm-22/bin/wasm-ld")))?;
    if let Some(directory) = page.parent() {
        fs::create_dir_all(directory)?;
    }
    let module = "wasm/wasm32-unknown-unknown/web/offload_web.wasm";
    run(cargo(workspace, "run --quiet --locked -p offload-web --bin offload-web-page --")
        .arg(target(workspace).join(module))
        .arg(std::path::absolute(page)?))
}
