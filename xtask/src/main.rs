//! The steps of CI, and programs that write what they check: `.ci/run` and `.ci/xtask`.
#![forbid(unsafe_code)]

mod api;
mod bindings;
mod ci;
mod debian;
mod dist;
mod files;
mod fuzz;
mod install;
mod json;
mod lit;
mod llvm;
mod locks;
mod machine;
mod miri;
mod notices;
mod package;
mod process;
mod published;
mod rust;
mod scripts;
mod sizes;
mod speed;
mod targets;
mod trees;
mod unpacked;
mod unsafe_code;
mod windows;
mod workspace;

use std::env;
use std::process::ExitCode;

use ci::Part::{Gate, Nightly};
use ci::Step;
use process::{Result, Stop};
use workspace::Workspace;

/// All steps, in order: the gate's first.
const STEPS: &[Step] = &[
    ("tests", Gate, "the README's command", rust::tests),
    ("fmt", Gate, "the form of the sources", rust::fmt),
    ("clippy", Gate, "lints, with all features", rust::clippy),
    ("rustdoc", Gate, "the documentation of the crates", rust::rustdoc),
    ("no_std", Gate, "crates that need no std, without it", rust::no_std),
    ("unsafe_code", Gate, "no crate has unsafe code", unsafe_code::step),
    ("trees", Gate, "dependencies in the READMEs, their versions in the lock files", trees::step),
    ("english", Gate, "the language of comments and pages", scripts::english),
    ("python", Gate, "what the scripts share", scripts::python),
    ("llvm", Gate, "LLVM's tools and ours read and write the same files", llvm::step),
    ("msrv", Nightly, "the oldest Rust that is promised", rust::msrv),
    ("features", Nightly, "each crate that has features, without them", rust::features),
    // `cargo-deny` is built for two minutes where it is not there.
    ("licences", Nightly, "licences, duplicates, sources, known vulnerabilities", rust::licences),
    ("minimal", Nightly, "the oldest dependencies that manifests allow", rust::minimal),
    ("api", Nightly, "crates/*/public-api.txt", api::step),
    ("strange", Nightly, "the tests on a machine unlike a developer's", scripts::strange),
    ("thorough", Nightly, "every place of the samples, every call that can fail", rust::thorough),
    ("llvm_slow", Nightly, "what takes longer than the gate may", llvm::slow),
    ("post_link", Nightly, "edits of files that patchelf and its kin change", llvm::post_link),
    ("llvm23", Nightly, "LLVM 23's tools and ours", llvm::with_23),
    ("llvm24", Nightly, "LLVM 24's tools and ours", llvm::with_24),
    ("lit", Nightly, "LLVM's own tests of the offload tools", llvm::lit),
    ("wine", Nightly, "edited DLLs, run by Wine", llvm::wine),
    ("windows", Nightly, "the tools for Windows, run by Wine", windows::step),
    (
        "formats",
        Nightly,
        "outputs for programs, by their schemas and other readers",
        published::formats,
    ),
    ("packages", Nightly, "published packages, also thinned", published::packages),
    ("packs", Nightly, "published libraries split into kernel packs", published::packs),
    ("shrunk", Nightly, "published CUDA libraries thinned, read independently", published::shrunk),
    ("environment", Nightly, "environments shrunk, read independently", published::environment),
    ("variants", Nightly, "variants of published wheels beside variantlib", published::variants),
    ("images", Nightly, "container images thinned, read independently", published::images),
    ("bytes", Nightly, "accounts of bytes beside cubloaty", published::bytes),
    ("report", Nightly, "the pages of `offload report`, in Chromium", published::report),
    ("bindings_c", Nightly, "the C library, its header, programs that use it", bindings::c),
    ("bindings_web", Nightly, "the page for the browser, in Chromium", bindings::web),
    ("kernels", Nightly, "kernels beside llvm-readobj and spirv-dis", published::kernels),
    ("nvidia", Nightly, "fatbinaries and edited files beside NVIDIA's tools", published::nvidia),
    (
        "bindings_python",
        Nightly,
        "the Python module: its wheel, its tests, its types",
        published::bindings_python,
    ),
    ("fleet", Nightly, "many wheels, by Ray Data and Spark", published::fleet),
    ("versus", Nightly, "times beside LLVM's: shown, not judged", speed::versus),
    ("doubling", Nightly, "the time of each command grows with its input", speed::doubling),
    ("sizes", Nightly, "the sizes of the tools", sizes::step),
    ("dist", Nightly, "the wheel and the tarball of the tools", dist::step),
    ("deb", Nightly, "the Debian packages of the tools", debian::step),
    ("package", Nightly, "the packages as outsiders get them", package::step),
    ("targets", Nightly, "other systems, 32 bits, the largest byte first", targets::step),
    ("miri", Nightly, "undefined behaviour, in the ground floor", miri::step),
    ("fuzz", Nightly, "each fuzz target, for seconds", fuzz::step),
];

/// Name, arguments, what it does, and how.
type Program = (&'static str, &'static str, &'static str, fn(&Workspace, &[String]) -> Result);

const PROGRAMS: &[Program] = &[
    ("api", "[--check]", "writes crates/*/public-api.txt", api::run),
    ("deb", "[--check]", "builds Debian packages of the tools in target/dist", debian::build),
    ("dist", "[--check | --again]", "builds the wheel and the tarball in target/dist", dist::run),
    ("forbid-unsafe", "[--fix]", "finds crates without #![forbid(unsafe_code)]", unsafe_code::run),
    (
        "install",
        "PREFIX PROGRAMS [OFFLOAD]",
        "installs programs, manual pages, completions",
        install::run,
    ),
    ("install-c", "PREFIX BUILT", "installs the built C library", bindings::install_c),
    ("llvm-lit", "[--release 23] [NAME...]", "runs LLVM's own tests of our tools", lit::run),
    ("llvm-unpacked", "VERSION [DIRECTORY]", "fetches LLVM 23 or 24", unpacked::run),
    ("miri", "[--target TRIPLE] [CRATE...]", "runs tests under Miri", miri::run),
    (
        "notices",
        "[--tools] FILE",
        "writes the licences for the wheel of the Python module, or for the tools",
        notices::run,
    ),
    ("package", "[--list]", "packs the crates, and builds the packages", package::run),
    ("sizes", "", "prints the sizes of the tools", sizes::run),
    ("targets", "[NAME...]", "builds and tests for other systems", targets::run),
    (
        "windows-zip",
        "[--check]",
        "builds the zip file of the tools for Windows in target/dist",
        windows::run,
    ),
    ("trees", "[--check]", "writes the dependencies into the READMEs", trees::run),
    ("web-page", "PAGE", "writes the page for the browser", bindings::page),
];

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    match perform(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => stop.report(),
    }
}

fn perform(arguments: &[String]) -> Result {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", usage());
        return Ok(());
    };
    if name == "ci" && rest == ["--list"] {
        print!("{}", ci::list());
        return Ok(());
    }
    let program = PROGRAMS.iter().find(|program| program.0 == name);
    if name != "ci" && program.is_none() {
        return Err(Stop::Misused(format!("no program '{name}'\n{}", usage())));
    }
    let workspace = Workspace::load(None)?;
    env::set_current_dir(&workspace.root)?;
    match program {
        Some((_, _, _, run)) => run(&workspace, rest),
        None => ci::run(workspace, rest),
    }
}

fn usage() -> String {
    let line = |(name, arguments, about, _): &Program| {
        let call = format!("{name} {arguments}");
        format!("  .ci/xtask {call:<38} {about}\n")
    };
    let programs: String = PROGRAMS.iter().map(line).collect();
    format!(
        "  .ci/run [nightly | all | STEP...]              runs steps; without arguments, the gate's\n\
         {programs}\nSteps:\n{}",
        ci::about()
    )
}

/// Takes a flag that may be the only argument.
fn flag(arguments: &[String], name: &str) -> Result<bool> {
    match arguments {
        [] => Ok(false),
        [only] if only == name => Ok(true),
        _ => Err(Stop::Misused(format!("expected nothing, or {name}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn other_programs_are_refused() {
        let error = perform(&words(&["tree"])).unwrap_err();
        assert!(matches!(error, Stop::Misused(text) if text.starts_with("no program 'tree'\n")));
    }

    #[test]
    fn the_usage_has_all_programs_and_steps() {
        let usage = usage();
        assert!(PROGRAMS.iter().all(|program| usage.contains(program.0)));
        assert!(STEPS.iter().all(|step| usage.contains(step.2)));
    }

    #[test]
    fn a_flag_is_there_or_not() {
        assert!(!flag(&[], "--check").unwrap());
        assert!(flag(&words(&["--check"]), "--check").unwrap());
        assert!(flag(&words(&["--chek"]), "--check").is_err());
        assert!(flag(&words(&["--check", "--check"]), "--check").is_err());
    }
}
