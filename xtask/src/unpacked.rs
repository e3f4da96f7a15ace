//! A newer release of LLVM, to compare with.
//!
//! Debian's packages of the suite that has them, with the newer loader and libraries of `sid` that they need, from the
//! mirror that apt is configured for. They are unpacked, not installed: patchelf gives the programs that loader. 500 MB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::files;
use crate::machine::{has, variable};
use crate::process::{self, Result, Stop, command, read, succeeds};
use crate::workspace::Workspace;

/// Fetches a version into a directory, or into `$LLVM23`, `$LLVM24`, or `target/llvmVERSION`. Its programs are in `bin`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    match arguments {
        [version] => fetch(version, &place(workspace, version)),
        [version, directory] => fetch(version, Path::new(directory)),
        _ => Err(Stop::Misused("expected VERSION [DIRECTORY], VERSION 23 or 24".to_owned())),
    }
}

/// Returns the directory of a version.
pub(crate) fn place(workspace: &Workspace, version: &str) -> PathBuf {
    let usual = workspace.target.join(format!("llvm{version}"));
    workspace.root.join(variable(&format!("LLVM{version}"), usual))
}

/// Fetches a version into a directory unless it is there.
pub(crate) fn fetch(version: &str, place: &Path) -> Result {
    let suite = match version {
        "23" => "sid",
        "24" => "experimental",
        _ => return Err(Stop::Misused(format!("not unpacked from Debian: LLVM {version}"))),
    };
    let program = place.join("bin/llvm-offload-binary");
    if has(&program) {
        return Ok(());
    }
    unpacked(place, &packages(version, suite), &format!("LLVM {version}"))?;
    patch(
        place,
        &[&format!("usr/lib/llvm-{version}/bin")],
        &format!("usr/lib/llvm-{version}/lib"),
    )?;
    let programs = format!("root/usr/lib/llvm-{version}/bin");
    process::run(command("ln -s").arg(programs).arg(place.join("bin")))?;
    if process::run(Command::new(&program).arg("--version")).is_err() {
        clear(place)?;
        return lacks(&format!("the packages of LLVM {version} do not run here"));
    }
    Ok(())
}

/// Fetches a compiler of Rust with LLVM 22 into a directory unless it is there: `root/usr/bin/rustc`.
pub(crate) fn fetch_rust(place: &Path, names: &str) -> Result {
    let program = place.join("root/usr/bin/rustc");
    if has(&program) {
        return Ok(());
    }
    let of_sid = |name| format!("{name}/sid");
    let names: Vec<_> = names.split(' ').chain(LIBRARIES.split(' ')).map(of_sid).collect();
    unpacked(place, &names, "Rust")?;
    patch(place, &["usr/bin", "usr/lib/llvm-22/bin"], "usr/lib/llvm-22/lib")?;
    if process::run(Command::new(&program).arg("--version")).is_err() {
        clear(place)?;
        return lacks("the packages of Rust do not run here");
    }
    Ok(())
}

/// Fetches packages into a directory, and unpacks them.
fn unpacked(place: &Path, packages: &[String], what: &str) -> Result {
    let mirror = mirror()?;
    if !has("patchelf") {
        return lacks("no patchelf");
    }
    clear(place)?;
    if download(place, &mirror, packages).is_err() {
        clear(place)?;
        return lacks(&format!("the packages of {what} cannot be had from the mirror"));
    }
    unpack(place)
}

fn lacks<T>(what: &str) -> Result<T> {
    println!("{what}");
    Err(Stop::Lacking)
}

/// Returns the mirror of Debian itself, not of its security updates or of others.
fn mirror() -> Result<String> {
    let ask = ["--format", "$(SITE)", "Created-By: Packages", "Origin: Debian", "Label: Debian"];
    let sites =
        read(command("apt-get indextargets").args(ask).stderr(Stdio::null())).unwrap_or_default();
    let is_amd64 =
        read(command("dpkg --print-architecture")).is_ok_and(|name| name.trim_end() == "amd64");
    match sites.lines().next() {
        Some(site) if is_amd64 => Ok(site.to_owned()),
        _ => lacks("no Debian mirror for amd64 is configured"),
    }
}

fn clear(place: &Path) -> Result {
    process::run(command("rm -rf").args(["apt", "deb", "root", "bin"].map(|name| place.join(name))))
}

/// Downloads the packages into `deb`, with lists of apt's own in `apt`.
fn download(place: &Path, mirror: &str, packages: &[String]) -> Result {
    let apt = place.join("apt");
    for directory in ["apt/lists/partial", "apt/cache/archives/partial", "deb", "root"] {
        fs::create_dir_all(place.join(directory))?;
    }
    let source = |suite| {
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        format!("deb [signed-by={keys}] {mirror} {suite} main\n")
    };
    fs::write(apt.join("sources.list"), source("sid") + &source("experimental"))?;
    fs::write(apt.join("status"), "")?;
    process::run(with_lists(&apt).arg("update"))?;
    process::run(with_lists(&apt).arg("download").args(packages).current_dir(place.join("deb")))
}

fn with_lists(apt: &Path) -> Command {
    let shown = |name: &str| apt.join(name).display().to_string();
    let options = [
        ("Dir::State", apt.display().to_string()),
        ("Dir::State::status", shown("status")),
        ("Dir::Cache", shown("cache")),
        ("Dir::Etc::sourcelist", shown("sources.list")),
        ("Dir::Etc::sourceparts", "/dev/null".to_owned()),
        ("Dir::Etc::preferencesparts", "/dev/null".to_owned()),
        ("APT::Sandbox::User", "root".to_owned()),
        ("Acquire::Languages", "none".to_owned()),
    ];
    let mut with = command("apt-get -qq");
    with.args(options.map(|(name, value)| format!("-o{name}={value}")));
    with
}

const LIBRARIES: &str = "libc6 libstdc++6 libgcc-s1 zlib1g libzstd1 libxml2-16 libffi8 libtinfo6 libedit2 libz3-4 libbsd0 \
                         libmd0 libicu78 liblzma5";

/// Returns the packages of LLVM in a suite, and the libraries of `sid` that these need.
fn packages(version: &str, suite: &str) -> Vec<String> {
    let llvm = [
        "llvm-@",
        "clang-@",
        "clang-tools-@",
        "lld-@",
        "libclang1-@",
        "libllvm@",
        "libclang-cpp@",
        "llvm-@-tools",
    ];
    let llvm = llvm.iter().map(|name| format!("{}/{suite}", name.replace('@', version)));
    llvm.chain(LIBRARIES.split_whitespace().map(|name| format!("{name}/sid"))).collect()
}

fn unpack(place: &Path) -> Result {
    for package in files::of(&place.join("deb"))? {
        process::run(command("dpkg-deb -x").arg(package).arg(place.join("root")))?;
    }
    process::run(command("rm -r").arg(place.join("deb")).arg(place.join("apt")))
}

/// Gives programs and libraries the loader and the libraries beside them, and a directory of more libraries.
fn patch(place: &Path, programs: &[&str], more: &str) -> Result {
    let root = place.join("root");
    let triple = read(command("gcc -print-multiarch").stderr(Stdio::null()));
    let library =
        root.join("usr/lib").join(triple.as_deref().unwrap_or("x86_64-linux-gnu").trim_end());
    for file in files::of(&library)? {
        // A library with a path of its own is not searched in the program's path.
        let own = || {
            read(command("patchelf --print-rpath").arg(&file).stderr(Stdio::null()))
                .unwrap_or_default()
        };
        if files::name(&file).contains(".so")
            && !file.is_symlink()
            && file.is_file()
            && !own().trim().is_empty()
        {
            process::run(command("patchelf --force-rpath --set-rpath").arg(&library).arg(&file))?;
        }
    }
    let path = format!("{}:{}", library.display(), root.join(more).display());
    let mut all = Vec::new();
    for directory in programs {
        all.extend(files::of(&root.join(directory))?);
    }
    for file in all {
        // Not scripts, nor other names of programs.
        let has_loader =
            || succeeds(command("patchelf --print-interpreter").arg(&file).stdout(Stdio::null()));
        if !file.is_symlink() && has_loader() {
            process::run(
                command("patchelf --set-interpreter")
                    .arg(library.join("ld-linux-x86-64.so.2"))
                    .args(["--force-rpath", "--set-rpath", &path])
                    .arg(&file),
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_of_their_suites() {
        let names = packages("24", "experimental");
        assert!(names.contains(&"llvm-24-tools/experimental".to_owned()));
        assert!(names.contains(&"libclang-cpp24/experimental".to_owned()));
        assert!(names.contains(&"libc6/sid".to_owned()));
    }

    #[test]
    fn other_versions_are_refused() {
        assert!(matches!(fetch("22", Path::new("x")), Err(Stop::Misused(_))));
    }
}
