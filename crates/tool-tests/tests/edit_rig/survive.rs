//! Tools that change files. An edited file must survive them where the unedited one does.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use super::messages::binutils;
use super::observe::{self, Seen};
use super::zoo::{self, Linked, Shape, World};
use super::{Complaints, run, said, tool};
use crate::common::{llvm, post_link};

/// The tools, by the name that lists have for them.
pub const TOOLS: [&str; 11] = [
    "strip",
    "strip -g",
    "objcopy",
    "objcopy --add-section",
    "llvm-strip",
    "llvm-objcopy",
    "eu-strip",
    "patchelf --set-rpath",
    "patchelf --add-needed",
    "patchelf --set-soname",
    "patchelf --set-interpreter",
];

/// Runs one of the tools on a file, in place.
pub fn apply(like: &Linked, name: &str, path: &Path) -> Output {
    let (program, option) =
        name.split_once(' ').map_or((name, None), |(program, option)| (program, Some(option)));
    let program = match program {
        "strip" | "objcopy" => tool(binutils(like, program)),
        "eu-strip" | "patchelf" => tool(program),
        _ if program.starts_with("patchelf-") => post_link(&format!("bin/{program}")),
        _ => llvm(program),
    };
    let interpreter = match like.world {
        World::Glibc => "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
        World::Musl => "/lib/x86_64-linux-musl/libc.so",
        World::AArch64 => "/lib/../lib/ld-linux-aarch64.so.1",
    };
    let loader = like.place.join("loader");
    let section = format!(".rig={}", loader.display());
    let renamed = zoo::renamed(like.runtime);
    let mut arguments: Vec<&str> = option.into_iter().collect();
    match option {
        Some("--add-section") => arguments.push(&section),
        Some("--set-rpath") => arguments.push(RPATH),
        // In the files of AArch64 and musl as well.
        Some("--add-needed") => arguments.push(like.runtime),
        Some("--replace-needed") => arguments.extend([like.runtime, &renamed]),
        Some("--set-soname") => arguments.push(SONAME),
        Some("--set-interpreter") => arguments.push(interpreter),
        _ => {}
    }
    run(&program, arguments.iter().map(AsRef::as_ref).chain([path.as_os_str()]))
}

pub const RPATH: &str = "/a/path/that/is/longer/than/any/that/the/file/has:$ORIGIN/../lib";
pub const SONAME: &str = "librig-with-a-long-name.so.6";

/// Results of all tools for one file.
pub type Survival = BTreeMap<&'static str, Result<Outcome, String>>;

#[derive(Clone, Debug)]
pub struct Outcome {
    pub seen: Seen,
    pub size: u64,
    /// Output of the tool.
    pub said: String,
}

/// Applies each tool to a file, and looks at what it does then.
pub fn survival(like: &Linked, path: &Path) -> Survival {
    let place = tempfile::tempdir().unwrap();
    let mut survival = Survival::new();
    for name in TOOLS {
        // Shared objects have no interpreter, and only they have a name.
        let is_sensible = match name {
            "patchelf --set-interpreter" => matches!(like.shape, Shape::Pie | Shape::NoPie),
            "patchelf --set-soname" => like.shape == Shape::Shared,
            _ => true,
        };
        if !is_sensible {
            continue;
        }
        let copy = place.path().join("file");
        fs::copy(path, &copy).unwrap();
        let output = apply(like, name, &copy);
        let outcome = if output.status.success() {
            observe::observe(like, &copy)
                .map(|seen| {
                    let said = said(&output).replace(copy.to_str().unwrap(), "FILE");
                    Outcome { seen, size: fs::metadata(&copy).unwrap().len(), said }
                })
                .map_err(|error| format!("{error}; the tool said: {}", said(&output)))
        } else {
            Err(format!("fails: {}", said(&output)))
        };
        survival.insert(name, outcome);
    }
    survival
}

/// patchelf 0.14 reads the zeros of `.bss` in programs of mold from the start of the file, which may be shorter.
fn is_ruined_by_patchelf(like: &Linked, tool: &str) -> bool {
    like.name.starts_with("exe-mold")
        && ["patchelf --set-rpath", "patchelf --add-needed", "patchelf --set-interpreter"]
            .contains(&tool)
}

/// Returns the complaints about an edited file after the tools. `seen` is its behaviour before them, `before` the
/// result of the unedited file. `change` is by how many bytes the edit changed the file's size.
pub fn compare(
    like: &Linked,
    before: &Survival,
    seen: &Seen,
    after: &Survival,
    change: i64,
) -> Complaints {
    let mut complaints = Complaints::new();
    for (tool, outcome) in after {
        // A tool that ruins the unedited file may ruin the edited one. Another test lists these tools.
        let Ok(outcome_before) = &before[tool] else { continue };
        match outcome {
            Err(_) if is_ruined_by_patchelf(like, tool) => {}
            Err(error) => complaints.push(format!("after {tool}: {error}")),
            Ok(outcome) => {
                let mut found = observe::compare_host(&outcome_before.seen, &outcome.seen);
                if outcome.seen.containers != seen.containers {
                    found.push("other device code".into());
                }
                if outcome.said != outcome_before.said {
                    found.push(format!(
                        "the tool says {:?}, not {:?}",
                        outcome.said, outcome_before.said
                    ));
                }
                // Pages of the file and headers are all that may be more than before.
                let most = outcome_before.size.saturating_add_signed(change) + like.page() * 3;
                if outcome.size > most {
                    found.push(format!(
                        "{} bytes; the unedited file has {} then",
                        outcome.size, outcome_before.size
                    ));
                }
                complaints.extend(
                    found.into_iter().map(|complaint| format!("after {tool}: {complaint}")),
                );
            }
        }
    }
    complaints
}
