//! Every crate, packed as for publishing: the files in the packages, and the packages built out of reach of this repository.
//! Needs no network.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::ci::Ci;
use crate::files::{are_equal, below, text};
use crate::flag;
use crate::machine::Place;
use crate::process::{self, Result, command, wrong};
use crate::workspace::{Package, Workspace, packages};

pub(crate) fn step(ci: &mut Ci) -> Result {
    run(&ci.workspace, &[])
}

/// Packs, checks and builds; with `--list` only says what each package holds, in the order of publishing.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    let crates = workspace.published()?;
    if flag(arguments, "--list")? {
        return list(&crates);
    }
    let place = Place::new()?;
    pack(&crates)?;
    let mut complaints = Vec::new();
    for package in &crates {
        complaints.extend(unpacked(workspace, package, &place)?);
    }
    if !complaints.is_empty() {
        return wrong(complaints.join("\n"));
    }
    build(workspace, &crates, &place)
}

fn list(crates: &[&Package]) -> Result {
    for package in crates {
        println!("--- {}", package.name);
        let list = "cargo package --quiet --locked --offline --allow-dirty --list --package";
        process::run(command(list).arg(&package.name))?;
    }
    Ok(())
}

/// Packs all crates together, so that each finds the others, although none is published. The step `features` builds each
/// crate alone.
fn pack(crates: &[&Package]) -> Result {
    let pack = "cargo package --locked --offline --allow-dirty --no-verify";
    let output = command(pack).args(packages(crates)).stdout(Stdio::inherit()).output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return wrong(told);
    }
    let complaints: Vec<_> = told.lines().filter(|line| is_complaint(line)).collect();
    if complaints.is_empty() { Ok(()) } else { wrong(complaints.join("\n")) }
}

/// Tests are not packaged, and it has no public address yet (RELEASING.md). Any other complaint is an error.
fn is_complaint(line: &str) -> bool {
    (line.starts_with("warning") || line.starts_with("error"))
        && !line.starts_with("warning: ignoring test")
        && line != "warning: manifest has no documentation, homepage or repository"
}

/// Text of LLVM and of the PCI ID Repository is in these.
const WITH_NOTICE: [&str; 3] = ["device-select", "offload-drop-ins", "offload-cli"];

/// Unpacks a package into a directory of its name, says what it holds, and returns what is wrong with it.
fn unpacked(workspace: &Workspace, package: &Package, place: &Path) -> Result<Vec<String>> {
    let (name, version) = (&*package.name, &package.version);
    let packed = workspace.target.join(format!("package/{name}-{version}.crate"));
    process::run(command("tar -C").arg(place).arg("-xf").arg(&packed))?;
    let directory = place.join(name);
    fs::rename(place.join(format!("{name}-{version}")), &directory)?;
    let mut complaints = Vec::new();
    // Links to the files of the repository, which arrive as files; not so where a checkout has no links.
    let notice = WITH_NOTICE.contains(&name).then_some("NOTICE");
    for file in ["LICENSE-APACHE", "LICENSE-MIT"].into_iter().chain(notice) {
        if !are_equal(Path::new(file), &directory.join(file)) {
            complaints.push(format!("{name}: {file} is not the one of the repository"));
        }
    }
    if !text(directory.join("README.md"))?.lines().any(|line| line.starts_with("# ")) {
        complaints.push(format!("{name}: README.md has no heading"));
    }
    let sources = below(&directory.join("src"))?;
    for source in &sources {
        if text(source)?.lines().any(reaches_out) {
            complaints.push(format!("{name}: {} reaches out of its package", source.display()));
        }
    }
    let size = fs::metadata(&packed)?.len();
    let others = others(&directory)?;
    println!("{others} {name}: {} sources, {} KiB packed", sources.len(), size / 1024);
    Ok(complaints)
}

/// Returns the files of a package that are not in `src`.
fn others(directory: &Path) -> Result<String> {
    let files = below(directory)?;
    let names = files.iter().filter_map(|file| file.strip_prefix(directory).ok());
    let names = names.filter(|name| !name.starts_with("src"));
    Ok(names.map(|name| format!("./{}", name.display())).collect::<Vec<_>>().join(" "))
}

/// Files of the repository that are not in the package.
fn reaches_out(line: &str) -> bool {
    let starts = ["include_bytes!(", "include_str!(", "CARGO_MANIFEST_DIR"];
    let after = |start| line.split_once(start).map(|(_, rest)| rest);
    starts.into_iter().filter_map(after).any(|rest| rest.contains("../../.."))
}

/// Outsiders get the libraries and tools from the packages, and may run the unit tests in them.
fn build(workspace: &Workspace, crates: &[&Package], place: &Path) -> Result {
    let patch = |package: &&Package| format!("{0} = {{ path = \"{0}\" }}\n", package.name);
    let patches: String = crates.iter().map(patch).collect();
    let head = "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n[patch.crates-io]\n";
    fs::write(place.join("Cargo.toml"), format!("{head}{patches}"))?;
    fs::copy("Cargo.lock", place.join("Cargo.lock"))?;
    // Cargo gives all files of packages one old time, by which it would take what an earlier run built for up to date.
    process::run(command("find").arg(place).args(["-type", "f", "-exec", "touch", "{}", "+"]))?;
    // The features of the step before, whose dependencies are used again.
    let check = "cargo check --quiet --offline --workspace --all-features --lib --bins --tests --target-dir";
    process::run(command(check).arg(&workspace.target).current_dir(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_warnings_are_known() {
        assert!(!is_complaint("   Packaging ccob v0.1.0"));
        assert!(!is_complaint(
            "warning: ignoring test `all` as `tests/all/main.rs` is not included"
        ));
        assert!(!is_complaint("warning: manifest has no documentation, homepage or repository"));
        assert!(is_complaint("warning: manifest has no license"));
        assert!(is_complaint("error: no such crate"));
    }

    #[test]
    fn sources_stay_in_their_package() {
        assert!(reaches_out("let x = include_str!(\"../../../README.md\");"));
        assert!(reaches_out("join(env!(\"CARGO_MANIFEST_DIR\")).join(\"../../../x\")"));
        assert!(!reaches_out("include_bytes!(\"../../x\")"));
        assert!(!reaches_out("// ../../.. before CARGO_MANIFEST_DIR"));
    }
}
