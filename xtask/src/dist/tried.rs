//! Both files, tried: the wheel in a new virtual environment, the tarball in a root directory of its own.

use std::borrow::BorrowMut;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Makers, cargo_home};
use crate::files;
use crate::machine::is_root;
use crate::process::{self, Result, command, read, wrong};

/// Both files, unpacked: the wheel in an environment, the tarball in a root directory of its own.
pub(super) struct Tried<'m> {
    makers: &'m Makers,
    environment: PathBuf,
    root: PathBuf,
}

impl<'m> Tried<'m> {
    pub(super) fn new(makers: &'m Makers, made: &Path) -> Result<Self> {
        let (environment, root) = (makers.place.join("venv"), makers.place.join("root"));
        // A new environment, without an index to ask.
        process::run(command("python3 -m venv").arg(&environment))?;
        let wheel = files::of(made)?.into_iter().filter(|path| files::name(path).ends_with(".whl"));
        let pip = environment.join("bin/pip");
        process::run(Command::new(pip).args(["install", "--quiet", "--no-index"]).args(wheel))?;
        fs::create_dir(&root)?;
        process::run(
            command("tar --strip-components=1 -C")
                .arg(&root)
                .arg("-xzf")
                .arg(made.join(format!("{}.tar.gz", makers.name()))),
        )?;
        fs::copy("examples/data/hip.o", root.join("hip.o"))?;
        Ok(Self { makers, environment, root })
    }

    pub(super) fn check(&self) -> Result {
        let offload = self.environment.join("bin/offload");
        process::run(Command::new(&offload).arg("--version"))?;
        has_code(Command::new(&offload).args(["ls", "examples/data/hip.o"]))?;
        self.check_programs()?;
        self.check_commands()?;
        self.check_documents()?;
        println!("the wheel works in a new environment, the tarball in an empty root");
        Ok(())
    }

    /// Every program of one is in the other, runs where there is nothing else, and says its version.
    fn check_programs(&self) -> Result {
        const DIRECTORIES: [&str; 2] = ["bin", "libexec/offload"];
        let mut programs = Vec::new();
        for directory in DIRECTORIES {
            programs.extend(files::of(&self.root.join(directory))?);
        }
        let place =
            |name: &str| DIRECTORIES.iter().find(|at| self.root.join(at).join(name).exists());
        for program in &programs {
            let name = files::name(program);
            if !files::are_equal(program, &self.environment.join("bin").join(&name)) {
                return wrong(format!("{name} is another program in the wheel"));
            }
            let headers = read(command("readelf -lS").arg(program))?;
            if headers.contains(".symtab") || headers.contains("INTERP") {
                return wrong(format!("{name} is not static, or not stripped"));
            }
            let directory = place(&name).copied().unwrap_or_default();
            let told = read(self.inside(&format!("/{directory}/{name} --version")))?;
            if !told.contains(&format!("offload {}", self.makers.version)) {
                return wrong(format!("{name} --version: {told}"));
            }
        }
        for program in files::of(&self.environment.join("bin"))? {
            let name = files::name(&program);
            if (name.contains("offload") || name.starts_with("roc-")) && place(&name).is_none() {
                return wrong(format!("{name} is not in the tarball"));
            }
        }
        self.check_paths(&programs)
    }

    fn check_paths(&self, programs: &[PathBuf]) -> Result {
        for directory in [self.makers.root.clone(), cargo_home()] {
            let found = command("grep -qF -e").arg(directory).args(programs).status()?;
            if found.success() {
                return wrong("the programs name directories of this machine");
            }
        }
        Ok(())
    }

    fn check_commands(&self) -> Result {
        has_code(self.inside("/bin/offload ls /hip.o"))?;
        read(self.inside("/bin/offload extract /hip.o -o /images"))?;
        read(self.inside("/bin/offload compress /hip.o -o /small.o"))?;
        read(self.inside("/bin/offload decompress /small.o -o /large.o"))?;
        process::run(self.inside("/bin/offload verify /large.o"))?;
        let images = files::below(&self.root.join("images"))?.len();
        if images == 4 { Ok(()) } else { wrong(format!("{images} images, not 4")) }
    }

    fn check_documents(&self) -> Result {
        if !fs::metadata(self.root.join("share/man/man1/offload.1"))
            .is_ok_and(|page| page.len() > 0)
        {
            return wrong("no manual page of offload");
        }
        let installed = files::below(&self.environment.join("lib"))?;
        let is_licence =
            |path: &&PathBuf| path.to_string_lossy().contains("/site-packages/offload_cli-");
        let documents = self.root.join("share/doc/offload");
        for file in files::of(&documents)?
            .into_iter()
            .filter(|file| files::name(file).starts_with("LICENSE-"))
        {
            let end = Path::new("licenses").join(files::name(&file));
            let same = installed.iter().filter(is_licence).find(|path| path.ends_with(&end));
            if !same.is_some_and(|same| files::are_equal(same, &file)) {
                return wrong(format!("{} is another file in the wheel", files::name(&file)));
            }
        }
        let others = files::text(documents.join("LICENSE-THIRD-PARTY"))?;
        if others.contains("\n=== zstd-sys") {
            Ok(())
        } else {
            wrong("LICENSE-THIRD-PARTY lacks zstd-sys")
        }
    }

    /// Returns a command in the other root directory.
    fn inside(&self, words: &str) -> Command {
        let mut inside =
            command(if is_root() { "chroot" } else { "unshare --map-root-user chroot" });
        inside.arg(&self.root).args(words.split(' '));
        inside
    }
}

fn has_code(list: impl BorrowMut<Command>) -> Result {
    if read(list)?.contains("gfx1100") { Ok(()) } else { wrong("no code for gfx1100 in hip.o") }
}
