//! The tools as they are installed. A package's tests know its own binaries only, and two packages cannot have binaries of one name:
//! so those of this package are called otherwise, and get their names here.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// The names of the tools, and binaries of this package.
pub const TOOLS: &[(&str, &str)] = &[
    ("offload", env!("CARGO_BIN_EXE_tested-offload")),
    ("clang-linker-wrapper", env!("CARGO_BIN_EXE_tested-clang-linker-wrapper")),
    ("clang-offload-bundler", env!("CARGO_BIN_EXE_tested-clang-offload-bundler")),
    ("clang-offload-packager", env!("CARGO_BIN_EXE_tested-clang-offload-packager")),
    ("clang-offload-wrapper", env!("CARGO_BIN_EXE_tested-clang-offload-wrapper")),
    ("fatbinary", env!("CARGO_BIN_EXE_tested-fatbinary")),
    ("llvm-offload-binary", env!("CARGO_BIN_EXE_tested-llvm-offload-binary")),
    ("llvm-offload-wrapper", env!("CARGO_BIN_EXE_tested-llvm-offload-wrapper")),
    ("roc-obj-extract", env!("CARGO_BIN_EXE_tested-roc-obj-extract")),
    ("roc-obj-ls", env!("CARGO_BIN_EXE_tested-roc-obj-ls")),
    ("split_python_wheels", env!("CARGO_BIN_EXE_tested-split_python_wheels")),
];

/// Returns the path of a tool.
pub fn tool(name: &str) -> &'static str {
    find(name).unwrap_or_else(|| panic!("no tool {name}"))
}

/// Returns the path of a tool, if this is the name of one.
pub fn find(name: &str) -> Option<&'static str> {
    static PATHS: OnceLock<Vec<(&str, String)>> = OnceLock::new();
    let installed = || TOOLS.iter().map(|(name, binary)| (*name, install(name, binary))).collect();
    let mut paths = PATHS.get_or_init(installed).iter();
    paths.find(|(known, _)| *known == name).map(|(_, path)| &**path)
}

/// Links a binary to its name. Other runs of tests may do the same.
fn install(name: &str, binary: &str) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools");
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    // A rename to a name that the file has already leaves both.
    let place = tempfile::tempdir_in(&directory).unwrap();
    let new = place.path().join(name);
    if fs::hard_link(binary, &new).is_err() {
        fs::copy(binary, &new).unwrap();
    }
    fs::rename(&new, &path).unwrap();
    path.to_str().unwrap().to_owned()
}
