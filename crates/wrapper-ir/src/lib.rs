//! Registration code for GPU device images: the module that puts images into a host program, and
//! registers them with the runtime of OpenMP, CUDA, HIP or SYCL when the program is loaded. LLVM's
//! tools for it are `clang-offload-wrapper` and `llvm-offload-wrapper`; nothing of LLVM is needed
//! here.
//!
//! A [`Wrapper`] makes a [`Module`] of the sizes and first bytes of images: variables and functions, LLVM IR as data. It is written
//! with the images as LLVM IR text ([`Module::write_ir`]), as LLVM bitcode ([`Module::bitcode`]), or as a relocatable
//! object ([`Module::object`]).
//!
//! ```text
//!  Image (size, first bytes) ──► Wrapper ──► Module ──► write_ir   LLVM IR text
//!  OffloadEntry ───────────────► Entries ──►        ├─► bitcode    Layout ──► LLVM bitcode
//!                                                   └─► object     Layout ──► ELF, COFF
//!  for both: OffloadKind, Abi, Target
//! ```
//!
//! ```
//! use wrapper_ir::{Abi, Image, OffloadKind, Target, Wrapper};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let images: [&[u8]; 2] = [b"code for one device", b"code for another"];
//! let module = Wrapper::new(OffloadKind::OPENMP, Abi::Current, Target::new("x86_64-unknown-linux-gnu")?)
//!     .with_images(images.map(Image::from_bytes))
//!     .module()?;
//!
//! let mut text = Vec::new();
//! module.write_ir(&mut text, images)?; // files will do as well
//! let text = String::from_utf8(text)?;
//! assert!(text.contains("c\"code for another\", section \".llvm.offloading\", align 8"));
//! assert!(text.contains("call void @__tgt_register_lib(ptr @.omp_offloading.descriptor)"));
//!
//! let object = module.object()?.to_vec(&images)?;
//! assert!(object.starts_with(b"\x7fELF"));
//!
//! let layout = module.bitcode()?;
//! let mut bitcode = Vec::new();
//! layout.write_to(&mut bitcode, images)?;
//! assert_eq!(bitcode.len() as u64, layout.size());
//! # Ok(())
//! # }
//! ```
//!
//! # Entries
//!
//! Compilers put one record for each kernel and variable of a host object into a section, whose
//! bounds the linker defines. The runtime connects them with the images. [`Entries`] makes a module of these records; a compiler
//! does so for each object, where a [`Wrapper`] is made once for each link. Offsets in bytes, with
//! pointers of 64 bits, with pointers of 32 bits; the structure of LLVM 21 has 56 bytes with the
//! former, with the latter 48, or 44 where 64-bit integers are aligned to 4:
//!
//! ```text
//! LLVM 21 and later: llvm_offload_entries     up to LLVM 19: omp_offloading_entries,
//!  64  32                                     cuda_offloading_entries, hip_offloading_entries
//!   0   0  reserved   u64  0                   64  32
//!   8   8  version    u16  1                    0   0  address   ptr
//!  10  10  kind       u16  1 OpenMP, 2 CUDA,    8   4  name      ptr
//!                          4 HIP, 8 SYCL       16   8  size      size_t  0 for functions
//!  12  12  flags      u32                      24  12  flags     u32
//!  16  16  address    ptr                      28  16  data      u32
//!  24  20  name       ptr
//!  32  24  size       u64  0 for functions
//!  40  32  data       u64
//!  48  40  auxiliary  ptr
//! ```
//!
//! The record is in the weak variable `.offloading.entry.NAME`, the name in `.llvm.rodata.offloading`. In COFF the section of the
//! records is `llvm_offload_entries$OE`, in Mach-O `__LLVM,offload_entries`. By default linkers must keep them
//! (`SHF_GNU_RETAIN`), see [`Entries::with_retain`].
//!
//! # OpenMP
//!
//! ```text
//! __tgt_bin_desc                              __tgt_device_image, one for each image
//!  64  32                                      64  32
//!   0   0  number of images  u32                0   0  start of the image    ptr
//!   8   4  images            ptr                8   4  end of the image      ptr
//!  16   8  start of entries  ptr               16   8  start of entries      ptr
//!  24  12  end of entries    ptr               24  12  end of entries        ptr
//! ```
//!
//! The constructor calls `__tgt_register_lib` with the address of the former, at the end of the
//! program `__tgt_unregister_lib` is called with it. For AOMP's runtime the constructor calls
//! `__tgt_register_image_info` before, for each image:
//!
//! ```text
//! __tgt_image_info
//!  64  32
//!   0   0  version           u32  1
//!   4   4  number            u32  counted from 0
//!   8   8  number of images  u32
//!  16  12  target ID         ptr  ended by NUL, in the section .offload_arch_list
//!  24  16  compiler options  ptr  null
//! ```
//!
//! # CUDA and HIP
//!
//! ```text
//! fatbin_wrapper, in the section .nvFatBinSegment or .hipFatBinSegment
//!  64  32
//!   0   0  magic      u32  CUDA 0x466243b1, HIP 0x48495046 ("HIPF")
//!   4   4  version    u32  1
//!   8   8  fatbinary  ptr  in the section .nv_fatbin or .hip_fatbin
//!  16  12  reserved   ptr  null
//! ```
//!
//! The constructor hands it to `__cudaRegisterFatBinary` or `__hipRegisterFatBinary`, and then
//! goes through the entries with the handle it gets. Entries of its kind with size 0 are kernels,
//! the low three bits of the flags distinguish the others:
//!
//! | flags | entry | function after `__cuda` or `__hip` | arguments after the handle |
//! |---|---|---|---|
//! | | kernel | `RegisterFunction` | address, name, name, -1, five times null |
//! | 0 | variable | `RegisterVar` | address, name, name, external, size, constant, 0 |
//! | 1 | managed variable | `RegisterManagedVar` (LLVM 21) | auxiliary, address, name, size, data; see [`Wrapper::with_llvm_code`] |
//! | 2 | surface | `RegisterSurface` (HIP) | address, name, name, data, external |
//! | 3 | texture | `RegisterTexture` (HIP) | address, name, name, data, normalized, external |
//!
//! External is bit 3 of the flags, constant bit 4, normalized bit 5.
//!
//! # SYCL
//!
//! The constructor calls `__sycl_register_lib` with address and size of the image, which is a
//! offload binary; at the end of the program `__sycl_unregister_lib` is called with them.
//!
//! # Generations
//!
//! | | [`Aomp`](Abi::Aomp) | [`Llvm18`](Abi::Llvm18) | [`Llvm19`](Abi::Llvm19) | [`Current`](Abi::Current) | [`Llvm24`](Abi::Llvm24) |
//! |---|---|---|---|---|---|
//! | host objects of | AOMP; OpenMP of LLVM 13 to 17 | LLVM 18 | 19 | 21 to 23 | 24 |
//! | entries in | `omp_offloading_entries` | `omp_`, `cuda_`, `hip_` | the same | `llvm_offload_entries` | the same |
//! | constructor priority | 1 | 1 | 101 | 101 (SYCL 1) | 101 |
//! | OpenMP unregisters by | destructor | destructor | `atexit` | `atexit` | `atexit` |
//! | SYCL unregisters by | | | | destructor | `atexit` |
//! | OpenMP images in | `.rodata` | `.llvm.offloading` | the same | the same | the same |
//! | can [`retain`](Wrapper::with_retain) the entries section | | | yes | yes | yes |
//! | host formats | ELF | ELF, COFF | ELF, COFF | ELF, COFF, Mach-O | ELF, COFF, Mach-O |
//!
//! CUDA and HIP unregister by `atexit` in all of them. Mach-O is for CUDA and HIP only, as text and bitcode.
//!
//! # Offload binaries
//!
//! An OpenMP image that is an offload binary of [`offload_binary`] is stored unchanged; the images in it are
//! registered, after the whole offload binary was checked. An offload binary with one CUDA or HIP image is replaced by
//! that image. SYCL offload binaries are checked only. Images of another kind are refused, and so are compressed
//! offload binaries: this crate has no codec, and no runtime has one for them. `fat_object::decompress_offload_binary`
//! makes plain ones of them.
//!
//! # Bounds
//!
//! Time grows with the images that are written, and with their number. Memory: the head of each offload binary, up to
//! the end of its tables, names, and the code; images are copied in pieces.
//!
//! # Where the rules come from
//!
//! The structures, names and sections come from LLVM's `OffloadWrapper.cpp` and AOMP's `clang-offload-wrapper`
//! (the "Clang Offload Wrapper" documentation), as in the modules that these tools write.
//! The requirements of runtimes are in the headers of `libomptarget`, CUDA (`crt/host_runtime.h`) and HIP. Bitcode
//! follows the "LLVM Bitcode File Format"; objects follow the supplements of the System V ABI and Microsoft's "PE
//! Format".
//!
//! # Errors
//!
//! All functions return one [`Error`], with an [`ErrorKind`]; its text says what is wrong, where, and what was
//! expected. Functions that read images and write output return an [`io::Error`](std::io::Error), with an [`Error`]
//! inside if the images differ from the ones that were laid out.
//!
//! # Features and stability
//!
//! No features; needs `std`, for reading and writing. Minimum supported Rust version: 1.88; it rises in a minor
//! version only. Semantic versioning; enums that can grow are `#[non_exhaustive]`. Layouts, kinds and [`Error`]
//! are or use types of [`byte_parts`] and [`offload_binary`]: add these crates to your dependencies to name them; no other crate
//! is in the API.

#![forbid(unsafe_code)]
#![deny(missing_docs, missing_debug_implementations)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod abi;
mod bitcode;
mod build;
#[cfg(test)]
mod changed;
mod data_layouts;
mod description;
mod entries;
mod error;
mod escape;
mod image;
mod ir;
mod join;
mod layout;
mod link;
mod object;
mod object_format;
mod target;
mod wrapper;

pub use abi::Abi;
pub use description::Module;
pub use entries::{Entries, EntryFlags, OffloadEntry};
pub use error::{Error, ErrorKind};
pub use image::Image;
pub use offload_binary::OffloadKind;
pub use target::Target;
pub use wrapper::Wrapper;

/// Returns a length in memory as formats count; no platform has more than 64 bits.
fn to_u64(len: usize) -> u64 {
    len as u64
}
