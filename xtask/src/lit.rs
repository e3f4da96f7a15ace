//! LLVM's own tests of the offload tools, run against ours: the tests in the source package of LLVM that call a tool whose
//! name we use. Ours run with `--release`.
//!
//! The sources are fetched once, by apt (200 MB), and only the tests are kept, in `target/llvm-lit`. Nothing is installed.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::files;
use crate::machine::{has, variable};
use crate::process::{self, Result, Stop, command, lacking, read, wrong};
use crate::unpacked;
use crate::workspace::Workspace;

const TOOLS: [&str; 5] = [
    "clang-linker-wrapper",
    "clang-offload-bundler",
    "clang-offload-packager",
    "llvm-offload-binary",
    "llvm-offload-wrapper",
];

/// Tests of things that differ on purpose: docs/differences.md, "LLVM's own tests", has the reasons. All others must pass.
const DIFFER: [&str; 3] = [
    // LLVM's options depend on the LLVM that runs.
    "clang/test/Driver/linker-wrapper-llvm-help.c",
    "clang/test/OffloadTools/clang-linker-wrapper/linker-wrapper-llvm-help.c",
    // Registration code is made in memory: there is no command to show.
    "clang/test/OffloadTools/clang-linker-wrapper/linker-wrapper-verbose.c",
];

/// Runs all tests, or the tests whose paths contain one of the names. `LLVM`: where LLVM 22 is installed. `TOOLS`: the directory
/// of the tools under test, by default `target/debug`, built here.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result {
    let (release, names) = match arguments {
        [flag, release, names @ ..] if flag == "--release" => (&**release, names),
        names => ("22", names),
    };
    let tools = env::var_os("TOOLS").filter(|tools| !tools.is_empty());
    compare(workspace, release, names, tools.map(PathBuf::from))
}

/// The tests of a version of LLVM, and where they are.
struct Tests {
    /// The release and the version of LLVM, such as 22 and 22.1.8.
    release: String,
    version: String,
    /// The LLVM beside whose tools ours run.
    llvm: PathBuf,
    /// The directory of all that is made.
    place: PathBuf,
}

/// Runs the tests of a release.
pub(crate) fn compare(
    workspace: &Workspace,
    release: &str,
    names: &[String],
    tools: Option<PathBuf>,
) -> Result {
    let ours = variable("LLVM", "/usr/lib/llvm-22");
    let lit = ours.join("bin/lit");
    let llvm = match release {
        "22" => ours,
        "23" => unpacked::place(workspace, release),
        _ => return Err(Stop::Misused(format!("not compared with: LLVM {release}"))),
    };
    if release == "23" {
        unpacked::fetch(release, &llvm)?;
    }
    let version = version(&lit, &llvm, release)?;
    let place = workspace.target.join("llvm-lit");
    fs::create_dir_all(&place)?;
    let tests = Tests { release: release.to_owned(), version, llvm, place };
    if !tests.directory().is_dir() && tests.fetch().is_err() {
        let version = &tests.version;
        return Err(lacking(&format!("LLVM's own tests: no sources of LLVM {version} to be had")));
    }
    tests.wrap(&tools.map_or_else(|| built(workspace), Ok)?)?;
    let template = include_str!("lit.cfg").replace("@RELEASE@", release);
    fs::write(tests.directory().join("lit.cfg"), tests.filled(&template))?;
    for path in DIFFER {
        process::run(command("rm -f").arg(tests.directory().join(path)))?;
    }
    let chosen = tests.chosen(names)?;
    if chosen.is_empty() {
        return wrong("no test has such a name");
    }
    process::run(Command::new(lit).arg("-v").args(chosen).current_dir(tests.directory()))
}

/// Returns the version of LLVM, if it has all that tests need.
fn version(lit: &Path, llvm: &Path, release: &str) -> Result<String> {
    let programs = ["FileCheck", "not", "llvm-config"].map(|name| llvm.join("bin").join(name));
    if !has(lit) {
        return Err(lacking(&format!("LLVM's own tests: no {} (llvm-22-tools)", lit.display())));
    }
    if let Some(missing) = programs.iter().find(|program| !has(program)) {
        let missing = missing.display();
        return Err(lacking(&format!("LLVM's own tests: no {missing} (llvm-{release}-tools)")));
    }
    Ok(read(Command::new(llvm.join("bin/llvm-config")).arg("--version"))?.trim_end().to_owned())
}

fn built(workspace: &Workspace) -> Result<PathBuf> {
    process::run(command("cargo build --quiet -p offload-cli -p offload-drop-ins --bins"))?;
    Ok(workspace.target.join("debug"))
}

impl Tests {
    fn directory(&self) -> PathBuf {
        self.place.join(&self.version)
    }

    fn filled(&self, template: &str) -> String {
        template
            .replace("@VERSION@", &self.version)
            .replace("@TESTS@", &self.directory().display().to_string())
            .replace("@PLACE@", &self.place.display().to_string())
            .replace("@LLVM@", &self.llvm.display().to_string())
    }

    /// Makes a directory in which nothing but our tools comes before LLVM's.
    fn wrap(&self, tools: &Path) -> Result {
        let directory = self.place.join("tools");
        process::run(command("rm -rf").arg(&directory))?;
        fs::create_dir(&directory)?;
        for tool in TOOLS {
            let (path, program) = (directory.join(tool), fs::canonicalize(tools.join(tool))?);
            let (program, release) = (program.display(), &self.release);
            fs::write(
                &path,
                format!(
                    "#!/usr/bin/env bash\nexec -a \"$0\" \"{program}\" --release={release} \"$@\"\n"
                ),
            )?;
            process::run(command("chmod +x").arg(path))?;
        }
        Ok(())
    }

    /// Returns the tests that call our tools and whose paths contain one of the names.
    fn chosen(&self, names: &[String]) -> Result<Vec<PathBuf>> {
        let directory = self.directory();
        let mut chosen = Vec::new();
        for path in ["clang", "llvm"].map(|part| files::below(&directory.join(part))) {
            for path in path? {
                let short = path.strip_prefix(&directory).unwrap_or(&path).to_owned();
                let is_named = || names.iter().any(|name| short.to_string_lossy().contains(name));
                let text =
                    || String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
                if (names.is_empty() || is_named()) && text().lines().any(calls) {
                    chosen.push(short);
                }
            }
        }
        Ok(chosen)
    }

    /// Fetches the sources of this version: of the package as it was installed, or else the same of Debian's newest suite.
    /// Where these cannot be fetched, takes another version of the release.
    fn fetch(&self) -> Result {
        let name = format!("llvm-toolchain-{}", self.version.split('.').next().unwrap_or_default());
        let apt = self.place.join("apt");
        process::run(command("rm -rf").arg(&apt))?;
        for directory in ["lists/partial", "cache/archives/partial", "sources"] {
            fs::create_dir_all(apt.join(directory))?;
        }
        let format = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)";
        let targets =
            read(command("apt-get indextargets --format").args([format, "Created-By: Packages"]))?;
        fs::write(apt.join("sources.list"), sources(&targets))?;
        fs::write(apt.join("apt.conf"), configuration(&apt.display().to_string()))?;
        let with_lists = |words: &str| {
            let mut with = command(words);
            with.env("APT_CONFIG", apt.join("apt.conf")).current_dir(apt.join("sources"));
            with
        };
        process::run(with_lists("apt-get update -qq"))?;
        let shown = read(with_lists("apt-cache showsrc").arg(&name).stderr(Stdio::null()))?;
        for found in self.in_order(&versions(&shown)?) {
            let get = "apt-get source -qq --download-only --tar-only";
            let get = with_lists(get).arg(format!("{name}={found}")).stderr(Stdio::null()).status();
            if !get.is_ok_and(|status| status.success()) {
                continue;
            }
            self.unpack(&apt.join("sources"))?;
            process::run(command("rm -r").arg(&apt))?;
            println!("tests of {found}, tools of {}", self.version);
            return Ok(());
        }
        wrong("no sources")
    }

    /// Returns versions of the package, our version first.
    fn in_order(&self, versions: &[String]) -> Vec<String> {
        let part = format!(":{}-", self.version);
        let (same, others): (Vec<_>, Vec<_>) =
            versions.iter().cloned().partition(|found| found.contains(&part));
        [same, others].concat()
    }

    /// Keeps the directories of tests that call our tools.
    fn unpack(&self, sources: &Path) -> Result {
        let unpacked = self.place.join("unpacked");
        process::run(command("rm -rf").arg(&unpacked))?;
        fs::create_dir(&unpacked)?;
        let tar =
            files::of(sources)?.into_iter().find(|path| files::name(path).contains(".orig.tar."));
        let mut kept = vec![
            "*/clang/test/Driver/*",
            "*/clang/test/Tooling/*",
            "*/llvm/test/tools/llvm-offload*",
        ];
        if self.release != "22" {
            kept.push("*/clang/test/OffloadTools/*");
        }
        process::run(
            command("tar --strip-components=1 --wildcards -xf")
                .arg(tar.map(OsString::from).unwrap_or_default())
                .arg("-C")
                .arg(&unpacked)
                .args(kept),
        )?;
        // They set up a whole build of LLVM.
        process::run(command("find").arg(&unpacked).args(["-name", "lit.*cfg*", "-delete"]))?;
        Ok(fs::rename(unpacked, self.directory())?)
    }
}

/// Returns true if a line of a test calls one of the tools.
fn calls(line: &str) -> bool {
    let Some((_, run)) = line.split_once("RUN:") else { return false };
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_alone = |(at, tool): (usize, &str)| {
        let (before, after) = (run.get(..at), run.get(at + tool.len()..));
        !before.is_some_and(|text| text.ends_with(is_word))
            && !after.is_some_and(|text| text.starts_with(is_word))
    };
    TOOLS.iter().any(|tool| run.match_indices(tool).any(is_alone))
}

/// Returns the lines of sources of Debian's, and of its newest suite.
fn sources(targets: &str) -> String {
    let mut lines = Vec::new();
    for line in targets.lines().filter(|line| line.contains("debian")) {
        lines.push(line.to_owned());
        if let [kind, address, _, "main"] = line.split(' ').collect::<Vec<_>>()[..] {
            lines.extend(
                address.ends_with("/debian/").then(|| format!("{kind} {address} sid main")),
            );
        }
    }
    lines.sort();
    lines.dedup();
    lines.join("\n") + "\n"
}

fn configuration(apt: &str) -> String {
    format!(
        "Dir::Etc::sourcelist \"{apt}/sources.list\";\nDir::Etc::sourceparts \"-\";\nDir::State::lists \"{apt}/lists\";\n\
         Dir::Cache \"{apt}/cache\";\nAPT::Sandbox::User \"root\";\n"
    )
}

/// Returns the versions that apt shows, the newest first.
fn versions(shown: &str) -> Result<Vec<String>> {
    let found: Vec<_> = shown.lines().filter_map(|line| line.strip_prefix("Version: ")).collect();
    let sorted = process::feed(command("sort -uVr"), &found.join("\n"))?;
    Ok(sorted.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn tests_that_call_our_tools_are_found() {
        assert!(calls("// RUN: clang-offload-bundler -type=o"));
        assert!(calls("; RUN: | not llvm-offload-binary %t"));
        assert!(calls("# RUN: %t/clang-offload-packager.exe"));
        assert!(!calls("// RUN: clang-offload-bundlers"));
        assert!(!calls("// clang-offload-bundler"));
        assert!(!calls("// RUN: my_llvm-offload-binary"));
    }

    #[test]
    fn sources_are_those_of_debian() {
        let targets = "deb-src a://b/debian/ trixie main\ndeb-src a://b/debian/ trixie contrib\n\
                       deb-src a://b/debian-security/ trixie main\ndeb-src a://c/ubuntu/ noble main\n\
                       deb-src a://b/debian/ trixie main\n";
        let expected = "deb-src a://b/debian-security/ trixie main\ndeb-src a://b/debian/ sid main\n\
                        deb-src a://b/debian/ trixie contrib\ndeb-src a://b/debian/ trixie main\n";
        assert_eq!(sources(targets), expected);
    }

    #[test]
    fn the_version_that_is_installed_comes_first() {
        let shown = "Package: x\nVersion: 1:22.1.8-1\nVersion: 1:22.1.10-1\nVersion: 1:22.1.8-1\nVersion: 1:22.1.2-3\n";
        let versions = versions(shown).unwrap();
        assert_eq!(versions, ["1:22.1.10-1", "1:22.1.8-1", "1:22.1.2-3"]);
        let (release, version) = ("22".to_owned(), "22.1.8".to_owned());
        let tests = Tests { release, version, llvm: "/l".into(), place: "/p".into() };
        assert_eq!(tests.in_order(&versions), ["1:22.1.8-1", "1:22.1.10-1", "1:22.1.2-3"]);
        assert_eq!(tests.filled("@TESTS@ @LLVM@ @PLACE@"), "/p/22.1.8 /l /p");
        assert!(!tests.filled(&include_str!("lit.cfg").replace("@RELEASE@", "22")).contains('@'));
    }
}
