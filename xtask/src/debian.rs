//! Debian packages of the tools, in `target/dist`: `offload`, and `offload-drop-ins` with the replacements of other tools.

use std::fs;
use std::process::Command;

use crate::ci::Ci;
use crate::files;
use crate::install::{self, PACKAGES};
use crate::machine::{Place, cargo_tool, host, need};
use crate::notices;
use crate::process::{Result, command, read, run, wrong};
use crate::workspace::Workspace;

pub(crate) fn step(ci: &mut Ci) -> Result {
    let end = build(&ci.workspace, &["--check".to_owned()]);
    ci.may_lack("the Debian packages: no dpkg, or cargo-deb cannot be had", end)
}

/// Builds both: `deb [--check]`. With `--check`, unpacks them and runs their programs.
pub(crate) fn build(workspace: &Workspace, arguments: &[String]) -> Result {
    let checks = crate::flag(arguments, "--check")?;
    need("dpkg-deb dpkg-shlibdeps", "dpkg-dev")?;
    cargo_tool("cargo-deb")?;
    run(command("cargo build --release --quiet --locked -p offload-cli -p offload-drop-ins"))?;
    // The manifests name the files here.
    let package = workspace.root.join("target/package");
    let built = workspace.target.join("release");
    run(command("rm -rf").arg(&package))?;
    let words = [&package, &built].map(|path| path.display().to_string());
    install::run(workspace, &words)?;
    let notices = package.join("share/doc/offload/LICENSE-THIRD-PARTY");
    fs::write(notices, notices::all(&host(None)?)?)?;
    let dist = workspace.target.join("dist");
    fs::create_dir_all(&dist)?;
    run(command("find").arg(&dist).args(["-name", "offload*.deb", "-delete"]))?;
    for (package, _) in PACKAGES {
        let mut deb = command("cargo deb --quiet --no-build --no-strip --package");
        run(deb.arg(format!("offload-{package}")).arg("--output").arg(&dist))?;
    }
    if checks { check(workspace) } else { Ok(()) }
}

/// The packages hold what the programs need to run, and say so.
fn check(workspace: &Workspace) -> Result {
    let root = Place::new()?;
    let mut count = 0;
    for package in files::of(&workspace.target.join("dist"))? {
        let name = files::name(&package);
        if name.starts_with("offload") && name.ends_with(".deb") {
            let needs = read(command("dpkg-deb --field").arg(&package).arg("Depends"))?;
            if !needs.contains("libc6") {
                return wrong(format!("{name} depends on: {needs}"));
            }
            run(command("dpkg-deb --extract").arg(&package).arg(&*root))?;
            println!("{name}: {} KiB", fs::metadata(&package)?.len() / 1024);
            count += 1;
        }
    }
    let programs = [root.join("usr/bin"), root.join("usr/libexec/offload")];
    let mut all = Vec::new();
    for directory in &programs {
        all.extend(files::of(directory)?);
    }
    for program in &all {
        let told = read(Command::new(program).arg("--version"))?;
        if !told.contains("offload") {
            return wrong(format!("{} --version: {told}", files::name(program)));
        }
    }
    let listed =
        read(Command::new(root.join("usr/bin/offload")).args(["ls", "examples/data/hip.o"]))?;
    let wanted = [
        "share/man/man1/offload.1.gz",
        "share/bash-completion/completions/offload",
        "share/doc/offload/LICENSE-THIRD-PARTY",
    ];
    if let Some(missing) = wanted.iter().find(|path| !root.join("usr").join(path).exists()) {
        return wrong(format!("the package lacks {missing}"));
    }
    if count != 2 || all.len() < 10 || !listed.contains("gfx1100") {
        return wrong(format!("{count} packages, {} programs: {listed}", all.len()));
    }
    println!("{} programs of {count} packages run", all.len());
    Ok(())
}
