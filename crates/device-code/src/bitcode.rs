//! LLVM bitcode: the first module states the target of a file.

use alloc::string::String;
use core::ops::Range;

use llvm_bitcode::{Error, ErrorKind, ReadAt, Reader, Unreadable};
use target_id::{Target, Triple};

/// Returns whether modules for this triple are code for a GPU.
///
/// ```
/// use device_code::is_device;
/// use target_id::Triple;
///
/// assert!(is_device(&Triple::parse("amdgcn-amd-amdhsa")));
/// assert!(!is_device(&Triple::parse("x86_64-unknown-linux-gnu")));
/// ```
#[must_use]
pub fn is_device(triple: &Triple) -> bool {
    let is_r600 = triple.arch() == "r600";
    is_r600 || triple.is_amdgpu() || triple.is_nvptx() || triple.is_spirv() || triple.is_spir()
}

/// Returns the target of the first module: its triple, and of code for a device the processor that all functions name.
/// `None` if it has no triple, or is malformed before it.
pub(crate) fn target(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
) -> Result<Option<Target>, Unreadable> {
    match of_module(source, window) {
        Err(error) if matches!(error.kind(), ErrorKind::Unreadable | ErrorKind::Memory) => {
            Err(Unreadable)
        }
        Err(_) => Ok(None),
        Ok(target) => Ok(target),
    }
}

fn of_module(source: &mut dyn ReadAt, window: &Range<u64>) -> Result<Option<Target>, Error> {
    let mut reader = Reader::new(source, window.clone())?;
    let Some(module) = reader.next_module()? else { return Ok(None) };
    let triple = reader.triple(&module)?.and_then(|triple| String::from_utf8(triple).ok());
    let Some(triple) = triple.map(|triple| Triple::parse(&triple)) else { return Ok(None) };
    let processor = if is_device(&triple) && !triple.is_spirv() && !triple.is_spir() {
        reader.processor(&module).ok().flatten()
    } else {
        None
    };
    Ok(Some(Target::new(None, Some(triple), &processor.unwrap_or_default())))
}
