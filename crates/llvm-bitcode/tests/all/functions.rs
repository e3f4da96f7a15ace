//! The functions of bitcode that LLVM 22 wrote, with the conventions that `llvm-dis` prints.

use std::path::Path;

use llvm_bitcode::{ErrorKind, functions};

fn data(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read(path).unwrap()
}

/// Returns name, convention and module of each function.
fn found(bytes: &[u8]) -> Vec<(Option<&str>, u64, usize)> {
    let functions = functions(bytes).unwrap().unwrap();
    functions
        .into_iter()
        .map(|function| {
            let name = function.name.map(|name| std::str::from_utf8(name).unwrap());
            (name, function.calling_convention, function.module)
        })
        .collect()
}

#[test]
fn kernels_have_a_convention_of_their_own() {
    let several = data("../../../device-code/tests/data/several.bc");
    let (nvptx, spir) = (71, 76);
    assert_eq!(
        found(&several),
        [
            (Some("twice"), 0, 0),
            (Some("one"), nvptx, 0),
            (Some("__clang_ocl_kern_imp_one"), 0, 0),
            (Some("two"), nvptx, 0),
            (Some("__clang_ocl_kern_imp_two"), 0, 0),
            (Some("twice"), 75, 1),
            (Some("one"), spir, 1),
            (Some("__clang_ocl_kern_imp_one"), 75, 1),
            (Some("two"), spir, 1),
            (Some("__clang_ocl_kern_imp_two"), 75, 1),
        ]
    );
}

#[test]
fn declarations_are_left_out() {
    let bytes = data("symbols.bc");
    let (stdcall, fastcall) = (64, 65);
    assert_eq!(
        found(&bytes),
        [
            (Some("linkonce"), 0, 0),
            (Some("stdcall"), stdcall, 0),
            (Some("fastcall"), fastcall, 0),
            (Some("resolve"), 0, 0),
            (Some("copied_function"), 0, 0),
            (Some("private"), 0, 0),
        ]
    );
}

#[test]
fn functions_of_a_module_without_strings_have_no_name() {
    let bytes = data("version-1.bc");
    let functions = functions(&bytes).unwrap().unwrap();
    assert!(functions.iter().all(|function| function.name.is_none()));
}

#[test]
fn other_data_has_no_functions() {
    assert_eq!(functions(b"\x7fELF").unwrap(), None);
    assert_eq!(functions(b"BC\xc0\xde").unwrap_err().kind(), ErrorKind::NotBitcode);
    let bytes = data("symbols.bc");
    for end in (4..bytes.len()).step_by(7) {
        drop(functions(&bytes[..end]));
    }
}
