//! A directory in which tests of registration code run compilers and linkers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tempfile::TempDir;
use wrapper_ir::OffloadKind;

use super::{llvm, new_command};

/// A temporary directory for one test.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), bytes).unwrap();
        name.into()
    }

    pub fn try_run(&self, tool: impl AsRef<Path>, arguments: &[&str]) -> Output {
        let tool = tool.as_ref();
        let mut command = new_command(tool);
        command.args(arguments).current_dir(self.0.path());
        // Otherwise the host runs what devices do not.
        let output = command.env("OMP_TARGET_OFFLOAD", "MANDATORY").output();
        output.unwrap_or_else(|error| panic!("{}: {error}", tool.display()))
    }

    /// Runs a tool that must succeed and have nothing to say against it.
    pub fn run(&self, tool: impl AsRef<Path>, arguments: &[&str]) -> String {
        let tool = tool.as_ref();
        let output = self.try_run(tool, arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && error.is_empty(),
            "{} {arguments:?}: {}\n{}{error}",
            tool.display(),
            output.status,
            String::from_utf8_lossy(&output.stdout)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Compiles a file of `wrapper/`.
    pub fn compile(&self, compiler: impl AsRef<Path>, source: &str, out: &str, options: &[&str]) {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wrapper");
        let source = directory.join(source);
        // Without optimization, variables stay in their order.
        let mut arguments = vec!["-c", "-O0", "-fPIC", source.to_str().unwrap(), "-o", out];
        arguments.extend(options);
        self.run(compiler, &arguments);
    }

    /// LLVM's module for images.
    pub fn llvm_object(&self, kind: OffloadKind, triple: &str, images: &[String], out: &str) {
        let (kind, triple) = (format!("--kind={kind}"), format!("--triple={triple}"));
        let mut arguments = vec![&kind[..], &triple, "-o", "llvm.bc"];
        arguments.extend(images.iter().map(String::as_str));
        self.run(llvm("llvm-offload-wrapper"), &arguments);
        self.run(llvm("llc"), &["-filetype=obj", "-relocation-model=pic", "llvm.bc", "-o", out]);
    }
}
