//! Kernels of LLVM bitcode, by their calling conventions (`llvm/IR/CallingConv.h`).

use alloc::vec::Vec;

use llvm_bitcode::{Error, Reader, functions};

use super::{Kernel, Kernels, MOST_KERNELS, note};
use crate::fault::Fault;

/// The conventions of OpenCL, PTX and AMD kernels.
const KERNELS: [u64; 3] = [76, 71, 91];
/// The metadata that names kernels of NVIDIA's GPUs in bitcode that LLVM wrote before release 21. They have the
/// convention of other functions.
const ANNOTATIONS: &[u8] = b"nvvm.annotations";

pub(super) fn read<'a>(image: &'a [u8], found: &mut Kernels<'a>) {
    match kernels(image) {
        Ok(kernels) => found.kernels = kernels,
        Err(error) => {
            let expected = "LLVM bitcode that can be read";
            let offset = error.offset().unwrap_or(0);
            let fault = Fault { offset, expected, found: image.len() as u64 };
            note(&mut found.faults, fault);
        }
    }
}

/// Returns the kernels; `None` if names are not stored with the functions, or if metadata may name kernels.
fn kernels(image: &[u8]) -> Result<Option<Vec<Kernel<'_>>>, Error> {
    let Some(functions) = functions(image)? else { return Ok(None) };
    let is_kernel = |convention| KERNELS.contains(&convention);
    let functions = functions
        .iter()
        .filter(|function| is_kernel(function.calling_convention))
        .take(MOST_KERNELS);
    let kernels: Option<Vec<_>> = functions
        .map(|function| Some(Kernel { name: function.name?, ..Kernel::default() }))
        .collect();
    let is_empty = kernels.as_ref().is_some_and(|kernels| kernels.is_empty());
    if is_empty && has_annotations(image)? {
        return Ok(None);
    }
    Ok(kernels)
}

fn has_annotations(image: &[u8]) -> Result<bool, Error> {
    let mut source = image;
    let mut reader = Reader::new(&mut source, 0..image.len() as u64)?;
    while let Some(module) = reader.next_module()? {
        if reader.has_named_metadata(&module, ANNOTATIONS)? {
            return Ok(true);
        }
    }
    Ok(false)
}
