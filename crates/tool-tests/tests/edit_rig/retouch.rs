//! Layouts of today's post-processors: files that one of them has changed are edited like any other, and what comes out
//! survives each of them. `.ci/post-link` unpacks the ones that the system has not.

use std::fs;
use std::path::Path;

use super::check::{
    Before, Container, check_itself, comes_back, does_nothing, edit, is_smaller, of,
};
use super::observe::{self, Seen};
use super::survive::{self, RPATH, SONAME};
use super::zoo::{Linked, Shape, World};
use super::{Complaints, each, run, said};
use crate::common::post_link;

/// Changes of files before edits: steps of a program and its option.
const TOOLS: [&str; 25] = [
    "patchelf-0.15 --set-rpath",
    "patchelf-0.15 --set-soname",
    "patchelf-0.15 --add-needed",
    "patchelf-0.15 --replace-needed",
    "patchelf-0.15 --replace-needed, patchelf-0.15 --set-rpath",
    "patchelf-0.17 --set-rpath",
    "patchelf-0.17 --replace-needed, patchelf-0.17 --set-rpath",
    "patchelf-0.18 --set-rpath",
    "patchelf-0.18 --set-soname",
    "patchelf-0.18 --replace-needed, patchelf-0.18 --set-rpath",
    "patchelf-0.19 --set-rpath",
    "patchelf-0.19 --set-soname",
    "patchelf-0.19 --add-needed",
    "patchelf-0.19 --replace-needed",
    "patchelf-0.19 --set-interpreter",
    "patchelf-0.19 --replace-needed, patchelf-0.19 --set-rpath",
    "patchelf-0.15 --set-rpath, patchelf-0.19 --set-soname",
    "patchelf-0.19 --set-rpath, strip",
    "patchelf-0.19 --set-rpath, llvm-strip",
    "lief rpath",
    "lief soname",
    "lief needed, patchelf-0.19 --set-rpath",
    "objcopy, llvm-objcopy",
    "strip, patchelf-0.19 --set-rpath",
    "eu-strip",
];

/// Changes of files after edits.
const LATER: [&str; 12] = [
    "patchelf-0.15 --replace-needed, patchelf-0.15 --set-rpath",
    "patchelf-0.17 --set-rpath",
    "patchelf-0.18 --set-soname",
    "patchelf-0.19 --set-rpath",
    "patchelf-0.19 --replace-needed, patchelf-0.19 --set-soname",
    "lief rpath",
    "strip",
    "strip -g",
    "objcopy",
    "llvm-strip",
    "llvm-objcopy",
    "eu-strip",
];

/// Does all steps to a file.
fn apply(like: &Linked, steps: &str, path: &Path) -> Result<(), String> {
    for step in steps.split(", ") {
        let output = if let Some(operation) = step.strip_prefix("lief ") {
            let source =
                Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edit_rig/sources/lief_tool.py");
            let value = match operation {
                "needed" => like.runtime,
                "soname" => SONAME,
                _ => RPATH,
            };
            let lief = post_link("lief");
            let words = ["-B".as_ref(), source.as_os_str(), lief.as_os_str()];
            let more = [operation.as_ref(), value.as_ref(), path.as_os_str()];
            run(Path::new("python3"), words.into_iter().chain(more))
        } else {
            survive::apply(like, step, path)
        };
        if !output.status.success() {
            return Err(format!("{step}: {}: {}", output.status, said(&output)));
        }
    }
    Ok(())
}

/// Returns whether these steps make sense for a file.
fn is_sensible(file: &Linked, steps: &str) -> bool {
    match file.shape {
        // Shared objects have no interpreter, and only they have a name.
        Shape::Shared => !steps.contains("--set-interpreter"),
        _ => !steps.contains("soname"),
    }
}

/// Returns the behaviour of a copy after some steps.
fn after(like: &Linked, path: &Path, steps: &str) -> Result<Seen, String> {
    let place = tempfile::tempdir().unwrap();
    let copy = place.path().join(like.name);
    fs::copy(path, &copy).unwrap();
    apply(like, steps, &copy)?;
    observe::observe(like, &copy)
}

/// Returns the complaints about an edited file after further steps; none where these ruin the unedited one, too.
fn survives(file: &Linked, edited: &Path, seen: &Seen, steps: &str) -> Complaints {
    let complaints = match after(file, edited, steps) {
        Err(error) => vec![error],
        Ok(found) if found == *seen => return Complaints::new(),
        Ok(found) => {
            let mut complaints = observe::compare_host(seen, &found);
            if found.containers != seen.containers {
                complaints.push("other device code".to_owned());
            }
            complaints
        }
    };
    let is_ruined = after(file, &file.path, steps).is_err();
    if is_ruined { Complaints::new() } else { of(&format!("after {steps}"), complaints) }
}

/// An edit of files, and what they hold then.
pub struct Edit<'a, C> {
    pub words: &'a [&'a str],
    pub expected: &'a (dyn Fn(&Linked) -> Vec<C> + Sync),
    /// Returns more complaints about a file that was changed.
    pub more: &'a (dyn Fn(&Linked, &Before<C>) -> Complaints + Sync),
}

/// Returns the complaints about files that were changed by each tool, then edited, and then changed again.
pub fn check<C: Container>(files: &[&Linked], edit: &Edit<'_, C>) -> Complaints {
    let words = std::env::var("RIG_TOOLS").unwrap_or_default();
    let tools = TOOLS.iter().filter(|steps| words.split(',').any(|word| steps.contains(word)));
    let pairs: Vec<(&Linked, &str)> =
        tools.flat_map(|&steps| files.iter().map(move |&file| (file, steps))).collect();
    each(&pairs, |&(file, steps)| {
        if !is_sensible(file, steps) {
            return Complaints::new();
        }
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(file.name);
        fs::copy(&file.path, &path).unwrap();
        let changed = Linked { path, ..file.clone() };
        let before = apply(file, steps, &changed.path).and_then(|()| Before::of(&changed));
        let is_ruined = RUINED.contains(&(file.name, steps));
        let complaints = match before {
            Err(_) if is_ruined => Complaints::new(),
            Err(error) => vec![error],
            Ok(_) if is_ruined => vec!["is not ruined any more".to_owned()],
            Ok(before) => edit.check(&changed, &before).unwrap_or_else(|error| {
                let is_right = may_be_refused(file, steps, &error);
                if is_right { Complaints::new() } else { vec![error] }
            }),
        };
        of(&format!("{}: {steps}", file.name), complaints)
    })
}

/// Files that these tools ruin.
const RUINED: [(&str, &str); 3] = [
    ("so-bfd-2m", "patchelf-0.18 --replace-needed, patchelf-0.18 --set-rpath"),
    ("exe-lld", "lief rpath"),
    ("exe-lld", "lief needed, patchelf-0.19 --set-rpath"),
];

/// Returns whether an edit is refused for what a tool did, although the file still runs.
fn may_be_refused(file: &Linked, steps: &str, error: &str) -> bool {
    let is_twice = |version: &str| steps.matches(&format!("patchelf-{version} ")).count() == 2;
    // The second time they fill .bss, which mold gives no place in the file, from the start of the file, device code included.
    let copies = ["0.15", "0.17", "0.18"].into_iter().any(is_twice) && file.name.contains("mold");
    // It shifts sections out of the segments of a program.
    let shifts = is_twice("0.17") && file.shape == Shape::NoPie;
    // It does not know segments that are aligned to more than a page.
    let misaligns = steps.starts_with("patchelf-0.18 ") && file.alignment() > 0;
    copies && error.contains("only a scan finds")
        || shifts && error.contains("a section is not loaded from where it lies")
        || misaligns && error.contains("offset and address differ by more than whole pages")
}

impl<C: Container> Edit<'_, C> {
    fn check(&self, file: &Linked, before: &Before<C>) -> Result<Complaints, String> {
        let edited = edit(file, &file.path, self.words)?;
        let expected = (self.expected)(file);
        let (seen, mut complaints) = check_itself(file, before, &edited.path(), &expected)?;
        if edited.said.contains("could not be removed from the file") {
            // A place of the program headers without room after them, which edits do not leave.
            complaints.retain(|complaint| !complaint.contains("; the device code has "));
        }
        complaints.extend(does_nothing(file, &edited, self.words)?);
        complaints.extend(is_smaller(file, &edited));
        for steps in LATER.into_iter().filter(|steps| is_sensible(file, steps)) {
            // The other worlds are slow, and no tool knows of them.
            if file.world == World::Glibc {
                complaints.extend(survives(file, &edited.path(), &seen, steps));
            }
        }
        if !file.compressed {
            let compressed = edit(file, &file.path, &["compress"])?;
            // Bytes that are never loaded are not put back; images that the compiler compressed need more room than they had.
            let told = ["not every other byte", "was linked compressed"];
            if !told.iter().any(|note| compressed.said.contains(note)) {
                complaints.extend(comes_back(file, &compressed)?);
            }
        }
        complaints.extend((self.more)(file, before));
        Ok(complaints)
    }
}
