//! The wrapper that clang registers with the HIP runtime, one for each bundle or, with `-fgpu-rdc`, for each translation
//! unit: magic `HIPF`, version 1, the address of the bundle, a reserved word (LLVM's `OffloadWrapper.cpp`, clang's
//! `CGCUDANV.cpp`).

use crate::error::Problem;

/// The words of a wrapper.
pub(crate) type Record = [[u8; 8]; 3];
/// The offset of the pointer to the bundle in a wrapper.
pub(crate) const POINTER: u64 = 8;

/// `HIPF`, a little-endian number.
const MAGIC: [u8; 4] = *b"FPIH";
/// `HIPK`: the device code was moved to a file of its own.
const MAGIC_MOVED: [u8; 4] = *b"KPIH";

/// Returns the address of the bundle. `wrapper` and `address`: the number of the wrapper and its place, for errors.
pub(crate) fn bundle(record: &Record, wrapper: usize, address: u64) -> Result<u64, Problem> {
    let [[m0, m1, m2, m3, version @ ..], bundle, _] = *record;
    let (magic, version) = ([m0, m1, m2, m3], u32::from_le_bytes(version));
    match (magic, version) {
        (MAGIC, 1) => Ok(u64::from_le_bytes(bundle)),
        (MAGIC_MOVED, _) => Err(Problem::MovedOut { how: "wrapper magic HIPK" }),
        _ => {
            let magic = u32::from_le_bytes(magic);
            Err(Problem::WrapperForm { wrapper, address, magic, version })
        }
    }
}
