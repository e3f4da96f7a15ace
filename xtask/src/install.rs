//! The files of the tools where a system has them: programs, completions, manual pages, documents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Result, Stop, command, read};
use crate::workspace::Workspace;

/// The directories of the packages of tools, below `crates`, and where their programs go: the replacements have the names of other
/// tools, which may not be in PATH.
pub(crate) const PACKAGES: [(&str, &str); 2] = [("cli", "bin"), ("drop-ins", "libexec/offload")];

/// Installs built programs below a prefix: `install PREFIX PROGRAMS [OFFLOAD]`. `OFFLOAD` writes the completions and manual pages
/// where the installed program is for another machine.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    let (prefix, built, runs) = match arguments {
        [prefix, built] => (prefix, built, Path::new(prefix).join("bin/offload")),
        [prefix, built, runs] => (prefix, built, PathBuf::from(runs)),
        _ => return Err(Stop::Misused("expected PREFIX PROGRAMS [OFFLOAD]".to_owned())),
    };
    let mut programs = Vec::new();
    for (package, _) in PACKAGES {
        let names = &workspace.package(&format!("offload-{package}"))?.programs;
        programs.push(names.iter().map(|name| Path::new(built).join(name)).collect());
    }
    Files { programs, runs, others: Vec::new() }.install(Path::new(prefix))
}

/// The files to install.
pub(crate) struct Files {
    /// The programs of each package.
    pub programs: Vec<Vec<PathBuf>>,
    /// A program that this machine can run.
    pub runs: PathBuf,
    /// More documents.
    pub others: Vec<PathBuf>,
}

impl Files {
    pub(crate) fn install(&self, prefix: &Path) -> Result {
        for ((_, directory), programs) in PACKAGES.iter().zip(&self.programs) {
            let directory = prefix.join(directory);
            fs::create_dir_all(&directory)?;
            process::run(command("install -m 755").args(programs).arg(directory))?;
        }
        let share = prefix.join("share");
        for (shell, path) in [
            ("bash", "bash-completion/completions/offload"),
            ("zsh", "zsh/site-functions/_offload"),
            ("fish", "fish/vendor_completions.d/offload.fish"),
        ] {
            let path = share.join(path);
            fs::create_dir_all(path.parent().unwrap_or(&share))?;
            fs::write(&path, read(self.offload().args(["completions", shell]))?)?;
        }
        process::run(self.offload().args(["man", "--out"]).arg(share.join("man/man1")))?;
        let documents = share.join("doc/offload");
        fs::create_dir_all(&documents)?;
        let files =
            ["crates/cli/README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "NOTICE"];
        let mut install = command("install -m 644");
        process::run(install.args(files).args(&self.others).arg(documents))
    }

    fn offload(&self) -> Command {
        let mut offload = Command::new(&self.runs);
        offload.env("LC_ALL", "C").env("TZ", "UTC");
        offload
    }
}
