//! Modules that were changed after they were made: emitters refuse what makes no sense. Only this crate can change one.

use crate::description::{Constant, Function, Module, Operation, Type, Value};
use crate::error::Error;
use crate::{Abi, ErrorKind, Image, OffloadKind, Target, Wrapper};

const LINUX: &str = "x86_64-unknown-linux-gnu";

fn module(kind: OffloadKind, triple: &str, image: Image<'_>) -> Module {
    let target = Target::new(triple).unwrap();
    Wrapper::new(kind, Abi::Current, target).with_image(image).module().unwrap()
}

#[track_caller]
fn not_native(module: &Module, symbol: &str, what: &str) {
    let error = module.object().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotNative);
    assert_eq!(error.to_string(), format!("no native form of \"{symbol}\": {what}"));
}

fn changed(kind: OffloadKind, change: impl FnOnce(&mut Module)) -> Error {
    let image = Image::from_bytes(b"an image");
    let mut module = module(kind, LINUX, image);
    change(&mut module);
    module.bitcode().unwrap_err()
}

fn unknown(name: &str) -> String {
    format!("module refers to \"{name}\", which it neither declares nor defines")
}

#[test]
fn a_missing_variable_is_an_error() {
    let name = ".omp_offloading.device_images";
    let error = changed(OffloadKind::OPENMP, |module| {
        module.globals.retain(|global| global.name != name);
    });
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.to_string(), unknown(name));
}

#[test]
fn a_missing_function_is_an_error() {
    let error = changed(OffloadKind::HIP, |module| {
        module.functions.retain(|function| function.name != "atexit");
    });
    assert_eq!(error.to_string(), unknown("atexit"));
}

#[test]
fn a_missing_structure_is_an_error() {
    let error = changed(OffloadKind::CUDA, |module| {
        module.structs.retain(|structure| structure.name != "fatbin_wrapper");
    });
    assert_eq!(error.to_string(), unknown("fatbin_wrapper"));
}

#[test]
fn a_missing_blob_is_an_error() {
    let error = changed(OffloadKind::OPENMP, |module| {
        for global in &mut module.globals {
            if let Some(Constant::Image { blob, .. }) = &mut global.init {
                *blob = 1;
            }
        }
    });
    assert_eq!(error.to_string(), "module refers to blob 1, which it does not have");
}

fn register_of(module: &mut Module) -> &mut Function {
    module.functions.iter_mut().find(|found| found.name == ".hip.fatbin_reg").unwrap()
}

#[test]
fn a_local_before_its_definition_is_an_error() {
    let error = changed(OffloadKind::HIP, |module| {
        let instructions = &mut register_of(module).blocks[0].instructions;
        let Operation::Call { arguments, .. } = &mut instructions[0].operation else {
            panic!("a call comes first")
        };
        arguments[0] = Value::Local(0);
    });
    assert_eq!(
        error.to_string(),
        "function \".hip.fatbin_reg\" refers to local 0 where it is not defined"
    );
}

#[test]
fn a_result_out_of_order_is_an_error() {
    let error = changed(OffloadKind::HIP, |module| {
        register_of(module).blocks[0].instructions[0].result = Some(7);
    });
    let expected = "function \".hip.fatbin_reg\" refers to local 7 where it is not defined";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn many_returns_on_arm64_windows() {
    let image = Image::from_bytes(b"i");
    let mut module = module(OffloadKind::SYCL, "aarch64-pc-windows-msvc", image);
    for (more, fits) in [(30, true), (1, false)] {
        let function = module.functions.first_mut().unwrap();
        let block = function.blocks[0].clone();
        function.blocks.extend(vec![block; more]);
        let name = function.name.clone();
        match module.object() {
            Ok(_) => assert!(fits),
            Err(error) => {
                let expected = format!("no native form of \"{name}\": more than 31 returns");
                assert_eq!((error.to_string(), fits), (expected, false));
            }
        }
    }
}

#[test]
fn changed_modules_are_refused() {
    let module = || module(OffloadKind::CUDA, LINUX, Image::from_bytes(b"i"));
    let mut changed = module();
    changed.functions.retain(|function| function.name != "atexit");
    not_native(&changed, "atexit", "neither defined nor declared");
    let mut changed = module();
    changed.blobs.clear();
    not_native(&changed, ".fatbin_image", "no such image");
    let mut changed = module();
    for function in &mut changed.functions {
        for local in &mut function.locals {
            local.ty = Type::Int(128);
        }
    }
    not_native(&changed, ".cuda.fatbin_reg", "a value of another type");
    let mut changed = module();
    for function in &mut changed.functions {
        function.blocks.truncate(1);
    }
    not_native(&changed, ".cuda.globals_reg", "a jump to no block");
}
