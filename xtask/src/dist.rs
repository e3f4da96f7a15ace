//! The wheels and the tarball of the tools for x86-64 Linux, linked statically, as `target/dist` holds them afterwards.
//! Nothing is uploaded. RELEASING.md says what is in them.

mod tried;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ci::Ci;
use crate::files;
use crate::install::{Files, PACKAGES};
use crate::machine::{Place, has, is_x86_64_linux, need, variable};
use crate::notices;
use crate::process::{self, Result, Stop, command, lacking, read, succeeds, wrong};
use crate::workspace::Workspace;

pub(crate) fn step(ci: &mut Ci) -> Result {
    let end = run(&ci.workspace, &["--check".to_owned()]);
    ci.may_lack("the wheel and the tarball of the tools", end)
}

/// Builds both. With `--check`, tries them: the wheel in a new virtual environment, the tarball in a root directory that holds
/// nothing else; packs both again, and wants the same bytes. With `--again`, builds everything a second time, in another
/// directory, and wants the same bytes.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    let what = match arguments {
        [] => "",
        [only] if only == "--check" || only == "--again" => only,
        _ => return Err(Stop::Misused("expected nothing, --check or --again".to_owned())),
    };
    let makers = Makers::new(workspace)?;
    let (made, built) = (workspace.target.join("dist"), workspace.target.join("dist-build"));
    makers.make(&made, &built)?;
    for file in files::of(&made)? {
        println!("{}: {} KiB", files::name(&file), fs::metadata(&file)?.len() / 1024);
    }
    let again = makers.place.join("again");
    if what == "--check" {
        tried::Tried::new(&makers, &made)?.check()?;
        makers.make(&again, &built)?;
        are_the_same(&made, &again, "packed again")?;
    } else if what == "--again" {
        makers.make(&again, &makers.place.join("build"))?;
        are_the_same(&made, &again, "built again")?;
    }
    Ok(())
}

/// Returns the date in archives, in seconds: `SOURCE_DATE_EPOCH`, or the date of the commit.
pub(crate) fn date() -> Result<String> {
    match env::var("SOURCE_DATE_EPOCH") {
        Ok(date) if !date.is_empty() => Ok(date),
        _ => Ok(read(command("git log -1 --format=%ct"))?.trim_end().to_owned()),
    }
}

fn lacks(what: &str) -> Stop {
    lacking(&format!("the wheel and the tarball: {what}"))
}

fn are_the_same(one: &Path, other: &Path, how: &str) -> Result {
    for file in files::of(one)? {
        let name = files::name(&file);
        if !files::are_equal(&file, &other.join(&name)) {
            return wrong(format!("{name}: other bytes when {how}"));
        }
    }
    println!("the same bytes {how}");
    Ok(())
}

/// Returns the path of the licences of others, written while a wheel is made, which takes them in.
fn notices(package: &str) -> String {
    format!("crates/{package}/LICENSE-THIRD-PARTY")
}

/// Everything that makes both files.
struct Makers {
    place: Place,
    root: PathBuf,
    version: String,
    maturin: PathBuf,
    triple: &'static str,
    /// Flags of the compiler for this target.
    flags: &'static str,
    /// The date in both, in seconds.
    date: String,
}

impl Drop for Makers {
    fn drop(&mut self) {
        for (package, _) in PACKAGES {
            let _ = fs::remove_file(self.root.join(notices(package)));
        }
    }
}

impl Makers {
    fn new(workspace: &Workspace) -> Result<Self> {
        if !is_x86_64_linux() {
            return Err(lacks("they are for x86-64 Linux"));
        }
        let place = Place::new()?;
        let maturin = maturin(&workspace.target)?;
        let (triple, flags) = triple(&place)?;
        let date = date()?;
        let version = workspace.package("offload-cli")?.version.clone();
        Ok(Self { place, root: workspace.root.clone(), version, maturin, triple, flags, date })
    }

    /// Gives a command an environment that does not show in what it makes.
    fn dated(&self, mut command: Command) -> Command {
        command.env("SOURCE_DATE_EPOCH", &self.date).env("LC_ALL", "C").env("TZ", "UTC");
        command
    }

    fn name(&self) -> String {
        format!("offload-{}-x86_64-linux", self.version)
    }

    /// Builds both in a target directory, and packs them into a directory.
    fn make(&self, directory: &Path, target: &Path) -> Result {
        let wheel = self.place.join("wheel");
        let tree = self.place.join(self.name());
        process::run(command("rm -rf").args([directory, &wheel, &tree]))?;
        fs::create_dir_all(directory)?;
        let texts = notices::all(self.triple)?;
        let mut programs = Vec::new();
        for (package, _) in PACKAGES {
            fs::write(notices(package), &texts)?;
            let (made, unpacked) = (self.place.join("made"), wheel.join(package));
            process::run(command("rm -rf").arg(&made))?;
            self.make_wheel(package, &made, target)?;
            // The tarball has the programs of the wheels.
            let mut unpack = command("python3 -m zipfile -e");
            process::run(unpack.args(files::of(&made)?).arg(&unpacked))?;
            process::run(command("mv").args(files::of(&made)?).arg(directory))?;
            programs.push(programs_of(&unpacked)?);
        }
        let runs = tree.join("bin/offload");
        let others = vec![notices("cli").into()];
        Files { programs, runs, others }.install(&tree)?;
        process::run(command("chmod -R u=rwX,go=rX").arg(&tree))?;
        self.make_tarball(&tree, &directory.join(format!("{}.tar.gz", self.name())))?;
        files::of(directory)?.iter().try_for_each(|file| files::write_checksum(file))
    }

    /// No path of this machine is in the programs. They need no libc of the system, so that any tag for Linux is true.
    fn make_wheel(&self, package: &str, directory: &Path, target: &Path) -> Result {
        let paths = [
            (cargo_home(), "/cargo"),
            (self.root.clone(), "/offload"),
            (target.to_owned(), "/target"),
        ];
        let remap =
            |(from, to): &(PathBuf, &str)| format!("--remap-path-prefix={}={to}", from.display());
        let flags: Vec<_> = paths.iter().map(remap).chain([self.flags.to_owned()]).collect();
        let mut build = self.dated(Command::new(&self.maturin));
        build.args("build --quiet --release --locked --manifest-path".split(' '));
        build.arg(format!("crates/{package}/Cargo.toml"));
        build.args("--auditwheel skip --compatibility manylinux2014 musllinux_1_1".split(' '));
        build
            .args(["--target", self.triple, "--target-dir"])
            .arg(target)
            .arg("--out")
            .arg(directory);
        process::run(build.env("RUSTFLAGS", flags.join(" ").trim_end()))
    }

    fn make_tarball(&self, tree: &Path, packed: &Path) -> Result {
        let plain = self.place.join("plain.tar");
        let pack = "tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner";
        process::run(
            self.dated(command(pack))
                .arg(format!("--mtime=@{}", self.date))
                .arg("-C")
                .arg(&*self.place)
                .arg("-cf")
                .arg(&plain)
                .arg(files::name(tree)),
        )?;
        let mut compress = self.dated(command("gzip -9nc"));
        process::run(compress.arg(&plain).stdout(fs::File::create(packed)?))
    }
}

/// Returns maturin, which pip installs into a virtual environment.
fn maturin(target: &Path) -> Result<PathBuf> {
    let place = target.join("maturin");
    let maturin = place.join("bin/maturin");
    let made = || process::run(command("python3 -m venv").arg(&place));
    let installed = || {
        process::run(Command::new(place.join("bin/pip")).args([
            "install",
            "--quiet",
            "maturin>=1.8,<2",
        ]))
    };
    if has(&maturin) || made().and_then(|()| installed()).is_ok() {
        return Ok(maturin);
    }
    Err(lacks("no maturin to be had by pip"))
}

/// Returns the target to build for, and its flags.
///
/// musl is made for static programs. glibc can be linked statically as well; what it loads at run time is not used here.
fn triple(place: &Path) -> Result<(&'static str, &'static str)> {
    let musl = "x86_64-unknown-linux-musl";
    let _ = need("musl-gcc", "musl-tools");
    if has("musl-gcc") && succeeds(command("rustup target add").arg(musl)) {
        return Ok((musl, ""));
    }
    fs::write(place.join("main.c"), "int main(void) { return 0; }\n")?;
    if !succeeds(command("cc -static -o main main.c").current_dir(place)) {
        return Err(lacks("neither the target for musl nor a static glibc to be had"));
    }
    println!("linked with glibc: no musl to be had");
    Ok(("x86_64-unknown-linux-gnu", "-C target-feature=+crt-static"))
}

/// Returns the programs of a wheel that is unpacked.
fn programs_of(wheel: &Path) -> Result<Vec<PathBuf>> {
    let data = files::of(wheel)?.into_iter().find(|path| files::name(path).ends_with(".data"));
    files::of(&data.unwrap_or_default().join("scripts"))
}

/// Returns cargo's directory, with the sources of others.
fn cargo_home() -> PathBuf {
    let home = variable("HOME", "/");
    variable("CARGO_HOME", home.join(".cargo"))
}
