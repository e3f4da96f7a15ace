//! The crates of the workspace, as `cargo metadata` lists them: nothing here is a list by hand.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::json::{is_null, items, keys, parse, text, texts};
use crate::process::{Result, Stop, command, read, wrong};

/// A workspace, as cargo describes it.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The directory of the workspace, where all commands run.
    pub root: PathBuf,
    /// The directory of everything that is built.
    pub target: PathBuf,
    /// All members, by name.
    pub packages: Vec<Package>,
}

/// A member of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub name: String,
    pub version: String,
    /// The directory of its manifest, relative to the workspace.
    pub directory: PathBuf,
    pub rust_version: String,
    pub is_published: bool,
    pub is_no_std: bool,
    /// `true` for a part of tools, whose API is not stable.
    pub is_of_tools: bool,
    pub features: Vec<String>,
    /// Features that need no `std`.
    pub no_std_features: Vec<String>,
    /// Machines where its tests run every night: `i686`, `s390x`, `miri`.
    pub nightly: Vec<String>,
    /// The root of each library, program, test and bench.
    pub roots: Vec<PathBuf>,
    pub programs: Vec<String>,
    /// Packages that must be published before this one.
    needs: Vec<String>,
}

impl Workspace {
    /// Asks cargo about the workspace of the current directory, or of a manifest.
    pub(crate) fn load(manifest: Option<&Path>) -> Result<Self> {
        let mut ask = command("cargo metadata --quiet --no-deps --format-version 1");
        if let Some(manifest) = manifest {
            ask.arg("--locked").arg("--manifest-path").arg(manifest);
        }
        Self::parse(&read(ask)?)
    }

    fn parse(printed: &str) -> Result<Self> {
        let all = parse("cargo metadata", printed)?;
        let root = text(&all, "/workspace_root");
        let of = |package| Package::of(package, Path::new(root));
        let mut packages: Vec<_> = items(&all, "/packages").map(of).collect();
        packages.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { root: root.into(), target: text(&all, "/target_directory").into(), packages })
    }

    /// Returns a member.
    pub(crate) fn package(&self, name: &str) -> Result<&Package> {
        let found = self.packages.iter().find(|package| package.name == name);
        found.ok_or_else(|| Stop::Misused(format!("no crate '{name}'")))
    }

    /// Returns the packages to publish, in this order: each needs only packages before it.
    pub(crate) fn published(&self) -> Result<Vec<&Package>> {
        let mut left: Vec<_> =
            self.packages.iter().filter(|package| package.is_published).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let is_left = |name: &String| left.iter().any(|package| package.name == *name);
            let Some(at) = left.iter().position(|package| !package.needs.iter().any(is_left))
            else {
                let names: Vec<_> = left.iter().map(|package| &*package.name).collect();
                return wrong(format!("these need each other: {}", names.join(" ")));
            };
            order.push(left.remove(at));
        }
        Ok(order)
    }

    /// Returns the packages to publish that have no programs, and are for others than the tools here.
    pub(crate) fn libraries(&self) -> Result<Vec<&Package>> {
        let mut libraries = self.published()?;
        libraries.retain(|package| package.programs.is_empty() && !package.is_of_tools);
        Ok(libraries)
    }

    /// Returns the crates that need no `std`, by their category.
    pub(crate) fn no_std(&self) -> Vec<&Package> {
        self.packages.iter().filter(|package| package.is_no_std).collect()
    }

    /// Returns the names of the crates whose tests run every night on a kind of machine.
    pub(crate) fn nightly(&self, on: &str) -> Vec<String> {
        let chosen =
            self.packages.iter().filter(|package| package.nightly.iter().any(|at| at == on));
        chosen.map(|package| package.name.clone()).collect()
    }
}

impl Package {
    fn of(package: &Value, root: &Path) -> Self {
        let manifest = Path::new(text(package, "/manifest_path"));
        let manifest = manifest.strip_prefix(root).unwrap_or(manifest);
        let is_program = |target: &&Value| texts(target, "/kind").iter().any(|kind| kind == "bin");
        let programs = items(package, "/targets").filter(is_program);
        // A dependency on a path without a version is not a dependency of the published package.
        let needs = items(package, "/dependencies").filter(|other| text(other, "/req") != "*");
        Self {
            name: text(package, "/name").to_owned(),
            version: text(package, "/version").to_owned(),
            directory: manifest.parent().unwrap_or(manifest).to_owned(),
            rust_version: text(package, "/rust_version").to_owned(),
            is_published: is_null(package, "/publish"),
            is_no_std: items(package, "/categories").any(|category| category == "no-std"),
            is_of_tools: package.pointer("/metadata/house/tools").is_some(),
            features: keys(package, "/features"),
            no_std_features: texts(package, "/metadata/house/no-std-features"),
            nightly: texts(package, "/metadata/house/nightly"),
            roots: items(package, "/targets").map(|one| text(one, "/src_path").into()).collect(),
            programs: programs.map(|program| text(program, "/name").to_owned()).collect(),
            needs: needs.map(|other| text(other, "/name").to_owned()).collect(),
        }
    }
}

/// Returns `--package=NAME` for each crate.
pub(crate) fn packages(crates: &[&Package]) -> Vec<String> {
    crates.iter().map(|package| format!("--package={}", package.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{"packages": [
        {"name": "tool", "version": "0.1.0", "manifest_path": "/w/crates/tool/Cargo.toml", "rust_version": "1.88",
         "publish": null, "categories": [], "features": {"default": []}, "metadata": null,
         "targets": [{"kind": ["lib"], "name": "tool", "src_path": "/w/crates/tool/src/lib.rs"},
                     {"kind": ["bin"], "name": "t", "src_path": "/w/crates/tool/src/main.rs"}],
         "dependencies": [{"name": "middle", "req": "^0.1.0"}, {"name": "rig", "req": "*"}]},
        {"name": "a-top", "version": "0.1.0", "manifest_path": "/w/crates/a-top/Cargo.toml", "rust_version": "1.88",
         "publish": null, "categories": [], "features": {}, "metadata": {"docs": {}},
         "targets": [{"kind": ["lib"], "name": "a_top", "src_path": "/w/crates/a-top/src/lib.rs"}],
         "dependencies": [{"name": "middle", "req": "^0.1.0"}, {"name": "serde", "req": "^1.0"}]},
        {"name": "middle", "version": "0.1.0", "manifest_path": "/w/crates/middle/Cargo.toml", "rust_version": "1.88",
         "publish": null, "categories": ["encoding", "no-std"], "features": {"std": []},
         "metadata": {"house": {"no-std-features": ["small"], "nightly": ["i686", "miri"]}},
         "targets": [{"kind": ["lib"], "name": "middle", "src_path": "/w/crates/middle/src/lib.rs"}],
         "dependencies": [{"name": "rig", "req": "*"}]},
        {"name": "rig", "version": "0.1.0", "manifest_path": "/w/crates/rig/Cargo.toml", "rust_version": "1.88",
         "publish": [], "categories": [], "features": {}, "metadata": null,
         "targets": [{"kind": ["lib"], "name": "rig", "src_path": "/w/crates/rig/src/lib.rs"}],
         "dependencies": [{"name": "middle", "req": "^0.1.0"}]}
        ], "workspace_root": "/w", "target_directory": "/w/target"}"#;

    fn names(packages: &[&Package]) -> Vec<String> {
        packages.iter().map(|package| package.name.clone()).collect()
    }

    #[test]
    fn crates_are_chosen_by_what_they_say_of_themselves() {
        let workspace = Workspace::parse(METADATA).unwrap();
        assert_eq!(names(&workspace.published().unwrap()), ["middle", "a-top", "tool"]);
        assert_eq!(names(&workspace.libraries().unwrap()), ["middle", "a-top"]);
        assert_eq!(names(&workspace.no_std()), ["middle"]);
        assert_eq!(workspace.nightly("miri"), ["middle"]);
        assert!(workspace.nightly("s390x").is_empty());
        assert_eq!(workspace.package("tool").unwrap().programs, ["t"]);
        assert_eq!(workspace.package("middle").unwrap().no_std_features, ["small"]);
        assert_eq!(workspace.package("rig").unwrap().directory, Path::new("crates/rig"));
        assert!(workspace.package("rig").is_ok() && workspace.package("serde").is_err());
        assert_eq!(packages(&workspace.no_std()), ["--package=middle"]);
    }

    #[test]
    fn circles_are_named() {
        let circle = METADATA
            .replace(r#"[{"name": "rig", "req": "*"}]"#, r#"[{"name": "a-top", "req": "1"}]"#);
        let error = Workspace::parse(&circle).unwrap().published().unwrap_err();
        assert!(
            matches!(error, Stop::Wrong(text) if text == "these need each other: a-top middle tool")
        );
    }

    #[test]
    fn other_texts_are_refused() {
        assert!(matches!(Workspace::parse("no JSON"), Err(Stop::Wrong(_))));
    }
}
