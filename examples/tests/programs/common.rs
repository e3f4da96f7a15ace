//! Helpers of the tests of the example programs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Output;

pub(crate) use crate::machine::new_command;
use fat_object::{Finding, Image, Options, Visitor};

/// An argument of a command: text or a path.
pub(crate) type Arg<'a> = &'a dyn AsRef<OsStr>;

/// A file made by LLVM.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)
}

pub(crate) fn start(directory: &Path, program: &str, args: &[Arg<'_>]) -> Output {
    let output = new_command(program).args(args).current_dir(directory).output();
    output.unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Runs a program that must succeed, and returns what it says on both outputs.
pub(crate) fn run(directory: &Path, program: &str, args: &[Arg<'_>]) -> String {
    let output = start(directory, program, args);
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{program}: {}\n{said}", output.status);
    said
}

/// Runs a program that must fail, and returns what it says is wrong.
pub(crate) fn fails(directory: &Path, program: &str, args: &[Arg<'_>]) -> String {
    let output = start(directory, program, args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

/// The names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

/// The images of a file, each with what it is for, and its bytes.
pub(crate) fn images(file: &Path) -> Vec<(String, Vec<u8>)> {
    let options = Options::default().with_enter_images(false);
    let mut images = Images(Vec::new());
    fat_object::walk(&mut File::open(file).unwrap(), &options, &mut images).unwrap();
    images.0
}

struct Images(Vec<(String, Vec<u8>)>);

impl Visitor for Images {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        self.0.push((image.target().to_string(), bytes));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        panic!("{finding}");
    }
}
