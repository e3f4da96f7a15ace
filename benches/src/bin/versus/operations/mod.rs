//! The operations that are measured.

mod archives;
mod bytes;
mod compression;
mod containers;
mod cuda;
mod inputs;
mod kernels;
mod libraries;
mod link;
mod packages;
mod packs;
mod start;
mod wrapping;

use std::error::Error;

use crate::bench::Bench;

/// Result of measuring an operation: an error says why it could not be measured.
type Done = Result<(), Box<dyn Error>>;

/// Something that tools do.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// Description in one line.
    pub(crate) about: &'static str,
    /// Bytes of inputs.
    pub(crate) sizes: &'static [u64],
    /// Bytes of files for each byte of input.
    pub(crate) space: u64,
    /// Bytes of memory that LLVM's tool takes for each byte of input.
    pub(crate) llvm_memory: u64,
    pub(crate) run: fn(&mut Bench, &Self, u64) -> Done,
}

impl Operation {
    /// Sizes up to `max`, and the smallest in any case.
    pub(crate) fn chosen_sizes(&self, max: u64) -> impl Iterator<Item = u64> {
        self.sizes
            .iter()
            .enumerate()
            .filter(move |(n, size)| *n == 0 || **size <= max)
            .map(|(_, size)| *size)
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Size of libraries and of wrapped images.
const LIBRARY: u64 = 150_000_000;
/// Size of a CUDA library.
const CUDA_LIBRARY: u64 = 500_000_000;
/// Size of the code that one core takes out of a CUDA library.
const CUDA_CODE: u64 = 340 * MIB;
/// Size of a published wheel for nine GPUs.
const ROCM_WHEEL: u64 = 73_485_746;
/// Size of a bundle that is compressed.
const TEN_GPUS: u64 = 340 * MIB;
/// Size of a member of an archive: four pieces of code.
const ARCHIVE: u64 = archives::MEMBER;

const COPIED: &[u64] = &[4 * KIB, 64 * KIB, MIB, 16 * MIB, 128 * MIB, GIB, 2 * GIB];
const COMPRESSED: &[u64] = &[4 * KIB, 64 * KIB, MIB, 16 * MIB, TEN_GPUS, 2 * GIB];
const WRAPPED: &[u64] = &[4 * KIB, 64 * KIB, MIB, 16 * MIB, LIBRARY, GIB, 2 * GIB];
/// 11 KiB and 64 KiB of code for each of four GPUs in 200 objects.
const LINKED: &[u64] = &[800 * 11 * KIB, 800 * 64 * KIB];
const EDITED: &[u64] = &[64 * KIB, MIB, 16 * MIB, LIBRARY, GIB];
const CUDA: &[u64] = &[MIB, 16 * MIB, LIBRARY, CUDA_LIBRARY];

/// All operations, in the order in which they are measured.
pub(crate) const OPERATIONS: &[Operation] = &[
    Operation {
        name: "start",
        about: "a tool that says its version",
        sizes: &[0],
        space: 0,
        llvm_memory: 0,
        run: start::version,
    },
    Operation {
        name: "parse",
        about: "the headers of a package of 1,000 images, in memory, by the library",
        sizes: &[0],
        space: 0,
        llvm_memory: 0,
        run: start::parse,
    },
    Operation {
        name: "ls",
        about: "the images of a plain bundle for ten GPUs listed",
        sizes: COPIED,
        space: 2,
        llvm_memory: 2,
        run: containers::list,
    },
    Operation {
        name: "kernels",
        about: "10,000 kernels for ten GPUs listed with their resources",
        sizes: &[0],
        space: 0,
        llvm_memory: 0,
        run: kernels::list,
    },
    Operation {
        name: "pack",
        about: "ten images into a package (llvm-offload-binary)",
        sizes: COPIED,
        space: 3,
        llvm_memory: 3,
        run: containers::pack,
    },
    Operation {
        name: "extract",
        about: "all ten images out of a package (llvm-offload-binary)",
        sizes: COPIED,
        space: 2,
        llvm_memory: 3,
        run: containers::extract,
    },
    Operation {
        name: "bundle",
        about: "ten code objects into a bundle",
        sizes: COPIED,
        space: 3,
        llvm_memory: 4,
        run: containers::bundle_all,
    },
    Operation {
        name: "unbundle",
        about: "all ten code objects out of a bundle",
        sizes: COPIED,
        space: 2,
        llvm_memory: 3,
        run: containers::unbundle,
    },
    Operation {
        name: "compress",
        about: "ten code objects into a compressed bundle; a bundle compressed",
        sizes: COMPRESSED,
        space: 4,
        llvm_memory: 4,
        run: compression::compress,
    },
    Operation {
        name: "decompress",
        about: "all code objects out of a compressed bundle; a bundle decompressed",
        sizes: COMPRESSED,
        space: 4,
        llvm_memory: 4,
        run: compression::decompress,
    },
    Operation {
        name: "hda",
        about: "a device archive of bundles for four GPUs into four archives",
        sizes: &[20 * ARCHIVE, 200 * ARCHIVE, 2000 * ARCHIVE],
        space: 3,
        llvm_memory: 4,
        run: archives::plain,
    },
    Operation {
        name: "hda-compressed",
        about: "a device archive of compressed bundles of ELF files into four archives",
        sizes: &[5 * ARCHIVE, 50 * ARCHIVE, 500 * ARCHIVE],
        space: 8,
        llvm_memory: 16,
        run: archives::compressed,
    },
    Operation {
        name: "wrap-bitcode",
        about: "an image into bitcode that registers it (llvm-offload-wrapper)",
        sizes: WRAPPED,
        space: 3,
        llvm_memory: 12,
        run: wrapping::bitcode,
    },
    Operation {
        name: "wrap-object",
        about: "an image into an object that registers it (LLVM's wrapper, then llc)",
        sizes: WRAPPED,
        space: 4,
        llvm_memory: 12,
        run: wrapping::object,
    },
    Operation {
        name: "link",
        about: "200 objects with code for four GPUs linked, all but the work of compiler and linker (clang-linker-wrapper)",
        sizes: LINKED,
        space: 3,
        llvm_memory: 3,
        run: link::link,
    },
    Operation {
        name: "thin",
        about: "a library of code for ten GPUs reduced to one of them",
        sizes: EDITED,
        space: 4,
        llvm_memory: 0,
        run: libraries::thin,
    },
    Operation {
        name: "compress-library",
        about: "the code in a library compressed",
        sizes: EDITED,
        space: 4,
        llvm_memory: 0,
        run: libraries::compress,
    },
    Operation {
        name: "split",
        about: "the code in a library for ten GPUs moved to kernel packs",
        sizes: EDITED,
        space: 5,
        llvm_memory: 0,
        run: packs::split,
    },
    Operation {
        name: "join",
        about: "the code in kernel packs for ten GPUs moved into their library",
        sizes: EDITED,
        space: 5,
        llvm_memory: 0,
        run: packs::join,
    },
    Operation {
        name: "ls-cuda",
        about: "the entries of all fatbinaries in a CUDA library listed",
        sizes: CUDA,
        space: 4,
        llvm_memory: 0,
        run: cuda::list,
    },
    Operation {
        name: "thin-cuda",
        about: "a CUDA library for six GPUs reduced to one of them",
        sizes: CUDA,
        space: 4,
        llvm_memory: 0,
        run: cuda::thin,
    },
    Operation {
        name: "extract-cuda",
        about: "all code out of a CUDA library, decompressed on one core",
        sizes: &[MIB, 16 * MIB, CUDA_CODE],
        space: 4,
        llvm_memory: 0,
        run: cuda::extract,
    },
    Operation {
        name: "ls-wheel",
        about: "the list of the images in all members of a published wheel",
        sizes: packages::SIZES,
        space: 1,
        llvm_memory: 0,
        run: packages::list,
    },
    Operation {
        name: "read-packages",
        about: "a tar file, one compressed by zstd, and a Debian package listed or verified",
        sizes: &[MIB, LIBRARY],
        space: 6,
        llvm_memory: 0,
        run: bytes::read,
    },
    Operation {
        name: "read-many",
        about: "10,000 objects in a directory, and 15,970 bundles in a wheel, listed or matched",
        sizes: &[MIB, LIBRARY],
        space: 4,
        llvm_memory: 0,
        run: bytes::many,
    },
    Operation {
        name: "thin-wheel",
        about: "a published wheel reduced to one GPU",
        sizes: packages::SIZES,
        space: 22,
        llvm_memory: 0,
        run: packages::thin,
    },
];
