//! The functions of LLVM bitcode, with their calling conventions.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use crate::error::Error;
use crate::module::{self, MODULE_FUNCTION, Part};
use crate::names::slice;
use crate::symbols::File;

/// A function that a module defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function<'d> {
    /// The name; `None` for a module without a string table, as LLVM wrote them before release 5.
    pub name: Option<&'d [u8]>,
    /// The number of the calling convention, as `llvm/IR/CallingConv.h` has it: 91 for `amdgpu_kernel`.
    pub calling_convention: u64,
    /// The number of its module in the file, from 0.
    pub module: usize,
}

/// Returns the functions that the modules of a file define, in the order of the file; `None` if the data is not
/// bitcode. Declarations are left out.
///
/// # Errors
///
/// Every [`ErrorKind`](crate::ErrorKind) except `Unreadable`. The contents of functions are skipped, not
/// checked.
///
/// ```
/// let file = std::fs::read("../../examples/data/hip-embedded.bc").unwrap();
/// let functions = llvm_bitcode::functions(&file)?.unwrap();
/// assert!(functions.iter().all(|function| function.calling_convention == 0));
/// # Ok::<(), llvm_bitcode::Error>(())
/// ```
pub fn functions(data: &[u8]) -> Result<Option<Vec<Function<'_>>>, Error> {
    let mut source = data;
    let Some((mut cursor, file)) = File::open(data, &mut source)? else { return Ok(None) };
    let mut found = Vec::new();
    // Each function takes some bytes of a real file.
    let limit = data.len() / 4;
    for (number, (module, strings)) in file.modules.iter().enumerate() {
        cursor.leave_to(0);
        let strings = strings.unwrap_or_default();
        module::walk(&mut cursor, module, Part::Values, &mut |cursor, entry, record| {
            if record.code != MODULE_FUNCTION || !entry.is_global {
                return Ok(ControlFlow::Continue(()));
            }
            let offset = cursor.offset();
            let mut next = || match cursor.operand(record)? {
                Some(value) => Ok(value),
                None => Err(Error::record(offset, MODULE_FUNCTION, "function")),
            };
            let place = match entry.skip {
                0 => None,
                _ => Some((next()?, next()?)),
            };
            let (_type, calling_convention, is_declared) = (next()?, next()?, next()?);
            if is_declared != 0 {
                return Ok(ControlFlow::Continue(()));
            }
            if found.len() >= limit {
                return Err(Error::too_many("functions for its length", limit));
            }
            let name = match place {
                None => None,
                Some((start, len)) => {
                    let outside = || Error::symbol_name(start, len, strings);
                    Some(slice(strings, start, len).ok_or_else(outside)?)
                }
            };
            found.push(Function { name, calling_convention, module: number });
            Ok(ControlFlow::Continue(()))
        })?;
    }
    Ok(Some(found))
}
