//! The zip file of the tools for Windows, with the layout of the tarball for Linux, and a try of it in Wine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::TRIPLE;
use crate::dist;
use crate::files;
use crate::install::{Files, PACKAGES};
use crate::machine::{Place, need};
use crate::notices;
use crate::process::{self, Result, command, feed, read, wrong};
use crate::workspace::Workspace;

/// Returns the name of the zip file without its extension, and of the directory in it.
fn name(workspace: &Workspace) -> Result<String> {
    let version = &workspace.package("offload-cli")?.version;
    Ok(format!("offload-{version}-x86_64-windows"))
}

/// Packs the programs of a directory into a zip file in `target/dist`, with its checksum.
pub(super) fn make(workspace: &Workspace, programs: &Path) -> Result<PathBuf> {
    need("zip", "zip")?;
    process::run(command("cargo build --quiet --locked -p offload-cli --bin offload"))?;
    let place = Place::new()?;
    let name = name(workspace)?;
    let tree = place.join(&name);
    let licences = place.join("LICENSE-THIRD-PARTY");
    fs::write(&licences, notices::all(TRIPLE)?)?;
    let built = |package: &str| -> Result<Vec<PathBuf>> {
        let names = &workspace.package(&format!("offload-{package}"))?.programs;
        Ok(names.iter().map(|name| programs.join(name).with_extension("exe")).collect())
    };
    let [ours, drop_ins] = PACKAGES.map(|(package, _)| built(package));
    // The pages and completions are those of a program that runs here.
    let runs = workspace.target.join("debug/offload");
    let powershell = read(Command::new(&runs).args(["completions", "powershell"]))?;
    Files { programs: vec![ours?, drop_ins?], runs, others: vec![licences] }.install(&tree)?;
    fs::create_dir_all(tree.join("share/powershell"))?;
    fs::write(tree.join("share/powershell/offload.ps1"), powershell)?;
    process::run(command("chmod -R u=rwX,go=rX").arg(&tree))?;
    let mut found = files::below(&tree)?;
    found.sort();
    process::run(command(&format!("touch -d @{}", dist::date()?)).args(&found))?;
    let relative = found.iter().filter_map(|path| path.strip_prefix(&*place).ok());
    let list: Vec<_> = relative.map(|path| path.display().to_string()).collect();
    let directory = workspace.target.join("dist");
    fs::create_dir_all(&directory)?;
    let packed = directory.join(name + ".zip");
    let _ = fs::remove_file(&packed);
    let mut zip = command("zip -X -q -9 -@");
    zip.arg(&packed).current_dir(&*place).env("TZ", "UTC");
    feed(zip, &list.join("\n"))?;
    files::write_checksum(&packed)?;
    println!("{}: {} KiB", files::name(&packed), fs::metadata(&packed)?.len() / 1024);
    Ok(packed)
}

/// Unpacks the zip file where nothing else is, and runs every program.
pub(super) fn check(workspace: &Workspace, packed: &Path, wine: impl Fn() -> Command) -> Result {
    need("unzip", "unzip")?;
    let place = Place::new()?;
    let mut sum = command("sha256sum --quiet -c");
    sum.arg(format!("{}.sha256", files::name(packed)));
    process::run(sum.current_dir(packed.parent().unwrap_or(packed)))?;
    process::run(command("unzip -q").arg(packed).arg("-d").arg(&*place))?;
    let root = place.join(name(workspace)?);
    let version = format!("offload {}", workspace.package("offload-cli")?.version);
    for (_, directory) in PACKAGES {
        for program in files::of(&root.join(directory))? {
            let told = read(wine().arg(&program).arg("--version"))?;
            if !told.contains(&version) {
                return wrong(format!("{} --version: {told}", files::name(&program)));
            }
        }
    }
    let listed =
        read(wine().arg(root.join("bin/offload.exe")).args(["ls", "examples/data/hip.o"]))?;
    if !listed.contains("gfx1100") {
        return wrong(format!("offload.exe ls: {listed}"));
    }
    for document in ["LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY", "NOTICE"] {
        if !root.join("share/doc/offload").join(document).is_file() {
            return wrong(format!("the zip file lacks {document}"));
        }
    }
    println!("the zip file works in Wine");
    Ok(())
}
