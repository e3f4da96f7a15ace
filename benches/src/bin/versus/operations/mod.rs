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

/// A row of the table: the name, the sizes, the space with LLVM's memory, and what measures it.
const fn operation(
    name: &'static str,
    sizes: &'static [u64],
    (space, llvm_memory): (u64, u64),
    run: fn(&mut Bench, &Operation, u64) -> Done,
) -> Operation {
    Operation { name, about: "", sizes, space, llvm_memory, run }
}

impl Operation {
    const fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

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

const ARCHIVED: &[u64] = &[20 * ARCHIVE, 200 * ARCHIVE, 2000 * ARCHIVE];
const ARCHIVED_COMPRESSED: &[u64] = &[5 * ARCHIVE, 50 * ARCHIVE, 500 * ARCHIVE];
const COPIED: &[u64] = &[4 * KIB, 64 * KIB, MIB, 16 * MIB, 128 * MIB, GIB, 2 * GIB];
const COMPRESSED: &[u64] = &[4 * KIB, 64 * KIB, MIB, 16 * MIB, TEN_GPUS, 2 * GIB];
const WRAPPED: &[u64] = &[4 * KIB, 64 * KIB, MIB, 16 * MIB, LIBRARY, GIB, 2 * GIB];
/// 11 KiB and 64 KiB of code for each of four GPUs in 200 objects.
const LINKED: &[u64] = &[800 * 11 * KIB, 800 * 64 * KIB];
const EDITED: &[u64] = &[64 * KIB, MIB, 16 * MIB, LIBRARY, GIB];
const CUDA: &[u64] = &[MIB, 16 * MIB, LIBRARY, CUDA_LIBRARY];

/// All operations, in the order in which they are measured.
pub(crate) const OPERATIONS: &[Operation] = &[
    operation("start", &[0], (0, 0), start::version)
        .about("a tool that says its version"),
    operation("parse", &[0], (0, 0), start::parse)
        .about("the headers of a package of 1,000 images, in memory, by the library"),
    operation("ls", COPIED, (2, 2), containers::list)
        .about("the images of a plain bundle for ten GPUs listed"),
    operation("kernels", &[0], (0, 0), kernels::list)
        .about("10,000 kernels for ten GPUs listed with their resources"),
    operation("pack", COPIED, (3, 3), containers::pack)
        .about("ten images into a package (llvm-offload-binary)"),
    operation("extract", COPIED, (2, 3), containers::extract)
        .about("all ten images out of a package (llvm-offload-binary)"),
    operation("bundle", COPIED, (3, 4), containers::bundle_all)
        .about("ten code objects into a bundle"),
    operation("unbundle", COPIED, (2, 3), containers::unbundle)
        .about("all ten code objects out of a bundle"),
    operation("compress", COMPRESSED, (4, 4), compression::compress)
        .about("ten code objects into a compressed bundle; a bundle compressed"),
    operation("decompress", COMPRESSED, (4, 4), compression::decompress)
        .about("all code objects out of a compressed bundle; a bundle decompressed"),
    operation("hda", ARCHIVED, (3, 4), archives::plain)
        .about("a device archive of bundles for four GPUs into four archives"),
    operation("hda-compressed", ARCHIVED_COMPRESSED, (8, 16), archives::compressed)
        .about("a device archive of compressed bundles of ELF files into four archives"),
    operation("wrap-bitcode", WRAPPED, (3, 12), wrapping::bitcode)
        .about("an image into bitcode that registers it (llvm-offload-wrapper)"),
    operation("wrap-object", WRAPPED, (4, 12), wrapping::object)
        .about("an image into an object that registers it (LLVM's wrapper, then llc)"),
    operation("link", LINKED, (3, 3), link::link)
        .about("200 objects with code for four GPUs linked, all but the work of compiler and linker (clang-linker-wrapper)"),
    operation("thin", EDITED, (4, 0), libraries::thin)
        .about("a library of code for ten GPUs reduced to one of them"),
    operation("compress-library", EDITED, (4, 0), libraries::compress)
        .about("the code in a library compressed"),
    operation("split", EDITED, (5, 0), packs::split)
        .about("the code in a library for ten GPUs moved to kernel packs"),
    operation("join", EDITED, (5, 0), packs::join)
        .about("the code in kernel packs for ten GPUs moved into their library"),
    operation("ls-cuda", CUDA, (4, 0), cuda::list)
        .about("the entries of all fatbinaries in a CUDA library listed"),
    operation("thin-cuda", CUDA, (4, 0), cuda::thin)
        .about("a CUDA library for six GPUs reduced to one of them"),
    operation("extract-cuda", &[MIB, 16 * MIB, CUDA_CODE], (4, 0), cuda::extract)
        .about("all code out of a CUDA library, decompressed on one core"),
    operation("ls-wheel", packages::SIZES, (1, 0), packages::list)
        .about("the list of the images in all members of a published wheel"),
    operation("read-packages", &[MIB, LIBRARY], (6, 0), bytes::read)
        .about("a tar file, one compressed by zstd, and a Debian package listed or verified"),
    operation("read-many", &[MIB, LIBRARY], (4, 0), bytes::many)
        .about("10,000 objects in a directory, and 15,970 bundles in a wheel, listed or matched"),
    operation("thin-wheel", packages::SIZES, (22, 0), packages::thin)
        .about("a published wheel reduced to one GPU"),
];
