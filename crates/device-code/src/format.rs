//! The format of an image, from its first bytes.

use core::fmt;

use crate::elf::{EM_AMDGPU, EM_CUDA, EM_INTELGT};

/// The format of an image, by its own magic, whatever the container says about it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FileFormat {
    /// No bytes at all: the placeholder entries of HIP fat binaries.
    Empty,
    /// An ELF file; `machine` is its `e_machine`.
    Elf {
        /// `e_machine` of the ELF header (224 is AMDGPU, 62 x86-64, ...).
        machine: u16,
    },
    /// An ELF file for an NVIDIA GPU (`e_machine` 190).
    Cubin,
    /// LLVM bitcode, raw or in its wrapper.
    Bitcode,
    /// A SPIR-V module of either byte order.
    SpirV,
    /// NVIDIA PTX assembly text.
    Ptx,
    /// An NVIDIA fatbinary.
    Fatbinary,
    /// A bundle (`__CLANG_OFFLOAD_BUNDLE__`), binary or text.
    Bundle,
    /// A compressed bundle (`CCOB`).
    CompressedBundle,
    /// An offload binary of LLVM (`10 FF 10 AD`).
    OffloadBinary,
    /// An HCF container of AdaptiveCpp.
    Hcf,
    /// A SYCLBIN file of Intel's compiler (`IBYS`).
    Syclbin,
    /// A kernel pack of AMD's (`KPAK`).
    Kpack,
    /// An `ar` archive, thin or not.
    Archive,
    /// A COFF object.
    Coff,
    /// A PE file: a program or library of Windows.
    Pe,
    /// A Mach-O file, thin or universal.
    MachO,
    /// A WebAssembly module or component.
    Wasm,
    /// A zstd frame without a container: Intel's SYCL compiler embeds images so.
    Zstd,
    /// A zip archive: a Python wheel, a conda package, a Java archive.
    Zip,
    /// A tar archive, not compressed.
    Tar,
    /// A Debian package. It is an `ar` archive, too, and walked as one; what it installs is compressed in its members.
    Deb,
    /// An RPM package.
    Rpm,
    /// Data compressed by gzip.
    Gzip,
    /// Data compressed by bzip2.
    Bzip2,
    /// Data compressed by xz.
    Xz,
    /// Data compressed by LZ4.
    Lz4,
    /// An archive of 7-Zip.
    SevenZip,
    /// A squashfs file system, as it lies after the program of an AppImage.
    Squashfs,
    /// An SQLite database: MIOpen keeps compiled kernels in some (`.kdb`).
    Sqlite,
    /// A serialized engine of TensorRT, which has kernels for one GPU in no documented format.
    TensorRt,
    /// A library of Apple's Metal: an image whose contents are not looked into.
    MetalLibrary,
    /// A container of DirectX shaders (DXBC, DXIL): an image whose contents are not looked into.
    DirectX,
    /// A device binary of Intel's OpenCL driver before zebin: an ELF file of the type 0xff04.
    IntelBinary,
    /// NVIDIA's LTO-IR: code for the link step of a device, in no documented format.
    LtoIr,
    /// MLIR bytecode: an image whose contents are not looked into.
    Mlir,
    /// A linker script, which names libraries.
    LinkerScript,
    /// The one-byte section that marks the host object itself in an object made by the bundler.
    HostPlaceholder,
    /// Nobody looked: the image of a compressed bundle whose table alone was read.
    NotRead,
    /// Anything else.
    Unknown,
}

impl FileFormat {
    /// The number of first bytes that [`sniff`](Self::sniff) looks at. PTX starts with a comment of free length.
    pub const SNIFF_LEN: usize = 2048;

    /// Tells the format from the first bytes of an image; [`SNIFF_LEN`](Self::SNIFF_LEN) are always enough.
    ///
    /// ```
    /// use device_code::FileFormat;
    ///
    /// assert_eq!(FileFormat::sniff(b"CCOB\x03\0"), FileFormat::CompressedBundle);
    /// assert_eq!(FileFormat::sniff(b"hello"), FileFormat::Unknown);
    /// ```
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return FileFormat::Empty;
        }
        if bytes.starts_with(b"\x7fELF") {
            return sniff_elf(bytes);
        }
        if bytes.starts_with(DEB) {
            return FileFormat::Deb;
        }
        for (magic, format) in MAGICS {
            if let Some(rest) = bytes.strip_prefix(*magic) {
                let is_text = TEXT_MAGICS.contains(magic) && is_text(rest);
                return if is_text { FileFormat::Unknown } else { *format };
            }
        }
        if is_text_bundle(bytes) {
            FileFormat::Bundle
        } else if is_hcf(bytes) {
            FileFormat::Hcf
        } else if is_universal(bytes) {
            FileFormat::MachO
        } else if is_coff(bytes) {
            FileFormat::Coff
        } else if is_ptx(bytes) {
            FileFormat::Ptx
        } else if is_linker_script(bytes) {
            FileFormat::LinkerScript
        } else if is_bzip2(bytes) {
            FileFormat::Bzip2
        } else if is_tar(bytes) {
            FileFormat::Tar
        } else {
            FileFormat::Unknown
        }
    }

    /// Returns the name used in machine-readable output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.names().0
    }

    /// Returns the usual file name extension, without a dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        self.names().2
    }

    /// Returns the name used in machine-readable output, the name used for people, and the file name extension.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            FileFormat::Empty => ("empty", "empty", "bin"),
            FileFormat::Elf { machine: EM_AMDGPU } => ("elf", "ELF", "hsaco"),
            FileFormat::Elf { .. } => ("elf", "ELF", "o"),
            FileFormat::Cubin => ("cubin", "cubin", "cubin"),
            FileFormat::Bitcode => ("bitcode", "LLVM bitcode", "bc"),
            FileFormat::SpirV => ("spirv", "SPIR-V", "spv"),
            FileFormat::Ptx => ("ptx", "PTX", "ptx"),
            FileFormat::Fatbinary => ("fatbinary", "fatbinary", "fatbin"),
            FileFormat::Bundle => ("bundle", "bundle", "hipfb"),
            FileFormat::CompressedBundle => ("ccob", "compressed bundle", "hipfb"),
            FileFormat::OffloadBinary => ("offload-binary", "package", "offload"),
            FileFormat::Hcf => ("hcf", "HCF", "hcf"),
            FileFormat::Syclbin => ("syclbin", "SYCLBIN", "syclbin"),
            FileFormat::Kpack => ("kpack", "kernel pack", "kpack"),
            FileFormat::Archive => ("archive", "archive", "a"),
            FileFormat::Coff => ("coff", "COFF", "o"),
            FileFormat::Pe => ("pe", "PE", "dll"),
            FileFormat::MachO => ("macho", "Mach-O", "o"),
            FileFormat::Wasm => ("wasm", "WebAssembly", "wasm"),
            FileFormat::Zstd => ("zstd", "zstd data", "zst"),
            FileFormat::Zip => ("zip", "zip archive", "zip"),
            FileFormat::Tar => ("tar", "tar archive", "tar"),
            FileFormat::Deb => ("deb", "Debian package", "deb"),
            FileFormat::Rpm => ("rpm", "RPM package", "rpm"),
            FileFormat::Gzip => ("gzip", "gzip data", "gz"),
            FileFormat::Bzip2 => ("bzip2", "bzip2 data", "bz2"),
            FileFormat::Xz => ("xz", "xz data", "xz"),
            FileFormat::Lz4 => ("lz4", "LZ4 data", "lz4"),
            FileFormat::SevenZip => ("7z", "7-Zip archive", "7z"),
            FileFormat::Squashfs => ("squashfs", "squashfs file system", "squashfs"),
            FileFormat::Sqlite => ("sqlite", "SQLite database", "db"),
            FileFormat::TensorRt => ("tensorrt", "TensorRT engine", "engine"),
            FileFormat::MetalLibrary => ("metallib", "Metal library", "metallib"),
            FileFormat::DirectX => ("dxbc", "DirectX shader", "dxbc"),
            FileFormat::IntelBinary => ("intel-binary", "Intel device binary", "bin"),
            FileFormat::LtoIr => ("lto-ir", "LTO-IR", "ltoir"),
            FileFormat::Mlir => ("mlir", "MLIR bytecode", "mlirbc"),
            FileFormat::LinkerScript => ("linker-script", "linker script", "ld"),
            FileFormat::HostPlaceholder => ("host-placeholder", "host object", "bin"),
            FileFormat::NotRead => ("not-read", "not read", "bin"),
            FileFormat::Unknown => ("unknown", "unknown", "bin"),
        }
    }

    /// Returns whether images of this format can hold further device images: containers, archives and host object
    /// files. Code objects for a GPU hold none; LLVM bitcode does only where it is code for the host, which its
    /// first bytes do not tell.
    #[must_use]
    pub fn may_hold_images(self) -> bool {
        match self {
            FileFormat::Elf { machine } => ![EM_AMDGPU, EM_INTELGT].contains(&machine),
            FileFormat::Coff | FileFormat::Pe | FileFormat::MachO | FileFormat::Wasm => true,
            _ => self.is_container(),
        }
    }

    /// Returns whether a walk reads files of this format, so that finding no image in one means that there is none.
    /// `false` for packages (zip, tar, deb, RPM, 7-Zip), file systems, compressed data, databases, engines of TensorRT
    /// and bytes of no known format; there a walk sees only the finds of a scan.
    #[must_use]
    pub fn is_read(self) -> bool {
        !matches!(
            self,
            FileFormat::Zstd
                | FileFormat::Zip
                | FileFormat::Tar
                | FileFormat::Deb
                | FileFormat::Rpm
                | FileFormat::Gzip
                | FileFormat::Bzip2
                | FileFormat::Xz
                | FileFormat::Lz4
                | FileFormat::SevenZip
                | FileFormat::Squashfs
                | FileFormat::Sqlite
                | FileFormat::TensorRt
                | FileFormat::Unknown
        )
    }

    /// Returns whether a file of this format may hold device code that a walk sees.
    #[must_use]
    pub fn may_hold_code(self) -> bool {
        self.is_read() && !matches!(self, FileFormat::Empty | FileFormat::LinkerScript)
    }

    /// Returns whether a file of this format may hold device code, and is not read.
    #[must_use]
    pub fn may_hold_unread_code(self) -> bool {
        matches!(
            self,
            FileFormat::Lz4
                | FileFormat::SevenZip
                | FileFormat::Squashfs
                | FileFormat::Sqlite
                | FileFormat::TensorRt
                | FileFormat::LtoIr
        )
    }

    /// Returns whether it is a format of host files, in which device code lies in sections: ELF, COFF, PE, Mach-O, WebAssembly.
    #[must_use]
    pub fn is_host(self) -> bool {
        use FileFormat::{Coff, Elf, MachO, Pe, Wasm};
        matches!(self, Elf { .. } | Coff | Pe | MachO | Wasm) && self.may_hold_images()
    }

    /// Returns whether an image of this format is nothing but a container of other images.
    #[must_use]
    pub fn is_container(self) -> bool {
        matches!(
            self,
            FileFormat::Fatbinary
                | FileFormat::Bundle
                | FileFormat::CompressedBundle
                | FileFormat::OffloadBinary
                | FileFormat::Hcf
                | FileFormat::Syclbin
                | FileFormat::Kpack
                | FileFormat::Archive
        )
    }
}

/// The name used for people.
impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().1)
    }
}

/// The start of a binary bundle, and of each marker in a text bundle, after a comment leader.
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

const MAGICS: &[(&[u8], FileFormat)] = &[
    (&llvm_bitcode::MAGIC, FileFormat::Bitcode),
    (&llvm_bitcode::WRAPPER_MAGIC, FileFormat::Bitcode),
    (b"\x03\x02\x23\x07", FileFormat::SpirV),
    (b"\x07\x23\x02\x03", FileFormat::SpirV),
    (b"\x50\xed\x55\xba", FileFormat::Fatbinary),
    (BUNDLE, FileFormat::Bundle),
    (b"CCOB", FileFormat::CompressedBundle),
    (b"\x10\xff\x10\xad", FileFormat::OffloadBinary),
    (b"IBYS", FileFormat::Syclbin),
    (b"KPAK", FileFormat::Kpack),
    (b"!<arch>\n", FileFormat::Archive),
    (b"!<thin>\n", FileFormat::Archive),
    (b"\x28\xb5\x2f\xfd", FileFormat::Zstd),
    (b"MTLB", FileFormat::MetalLibrary),
    (b"DXBC", FileFormat::DirectX),
    (b"\xed\x43\x4e\x7f", FileFormat::LtoIr),
    (b"ML\xefR", FileFormat::Mlir),
    (b"PK\x03\x04", FileFormat::Zip),
    // An empty one.
    (b"PK\x05\x06", FileFormat::Zip),
    (b"\xed\xab\xee\xdb", FileFormat::Rpm),
    (b"\x1f\x8b\x08", FileFormat::Gzip),
    (b"\xfd7zXZ\0", FileFormat::Xz),
    (b"\x04\x22\x4d\x18", FileFormat::Lz4),
    (b"7z\xbc\xaf\x27\x1c", FileFormat::SevenZip),
    (b"hsqs", FileFormat::Squashfs),
    (b"SQLite format 3\0", FileFormat::Sqlite),
    (b"ftrt", FileFormat::TensorRt),
    (b"ptrt", FileFormat::TensorRt),
    (b"\0asm", FileFormat::Wasm),
    (b"MZ", FileFormat::Pe),
    (b"\xfe\xed\xfa\xce", FileFormat::MachO),
    (b"\xce\xfa\xed\xfe", FileFormat::MachO),
    (b"\xfe\xed\xfa\xcf", FileFormat::MachO),
    (b"\xcf\xfa\xed\xfe", FileFormat::MachO),
];

/// Magics that text may start with, too. Numbers follow, and some of them are small.
const TEXT_MAGICS: &[&[u8]] =
    &[b"CCOB", b"IBYS", b"KPAK", b"MTLB", b"DXBC", b"hsqs", b"ftrt", b"ptrt", b"MZ"];

/// Debian packages are `ar` archives whose first member is their version ("deb(5)").
const DEB: &[u8] = b"!<arch>\ndebian-binary";

/// `e_type` of device binaries in the cache format of Intel's compute runtime before zebin.
const INTEL_BINARY: [u8; 2] = 0xff04_u16.to_le_bytes();

/// Returns the type of the ELF file (`e_type`) that starts with these bytes: 1 for an object, 2 for a program, 3 for a
/// library; `None` if it is not an ELF file.
#[must_use]
pub fn elf_type(head: &[u8]) -> Option<u16> {
    elf_number(head, 16).filter(|_| head.starts_with(b"\x7fELF"))
}

/// Returns the 16-bit number at this offset of an ELF header, in the byte order that byte 5 names.
fn elf_number(head: &[u8], at: usize) -> Option<u16> {
    let bytes = *head.get(at..)?.first_chunk()?;
    let is_big = head.get(5) == Some(&2);
    Some(if is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
}

/// Returns the format of an ELF file by `e_machine`.
fn sniff_elf(bytes: &[u8]) -> FileFormat {
    match elf_number(bytes, 18).unwrap_or(0) {
        EM_CUDA => FileFormat::Cubin,
        0 if bytes.get(16..18) == Some(&INTEL_BINARY) => FileFormat::IntelBinary,
        machine => FileFormat::Elf { machine },
    }
}

/// Returns whether text follows a magic: small numbers and offsets in a header have zeros.
fn is_text(rest: &[u8]) -> bool {
    const HEADER: usize = 64;
    let head = rest.get(..HEADER).unwrap_or(rest);
    !head.is_empty()
        && head.iter().all(|byte| !byte.is_ascii_control() || b"\t\n\r\x0c".contains(byte))
}

/// Returns whether it is a text bundle: its first line that is not empty is a marker that starts an entry, after
/// the comment leader of any language that the bundler knows. A carriage return alone ends no line.
fn is_text_bundle(bytes: &[u8]) -> bool {
    const COMMENTS: [&[u8]; 3] = [b"#", b"//", b";"];
    let line = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    let Some((blank, line)) = bytes.split_at_checked(line) else { return false };
    !blank.ends_with(b"\r")
        && COMMENTS.iter().any(|comment| {
            line.strip_prefix(*comment)
                .and_then(|rest| rest.strip_prefix(b" "))
                .and_then(|rest| rest.strip_prefix(BUNDLE))
                .is_some_and(|rest| rest.starts_with(b"__START__ "))
        })
}

/// Returns whether the bytes start an HCF container: with the number of its object, of at most 64 bits, on a line.
fn is_hcf(bytes: &[u8]) -> bool {
    let Some(value) = bytes.strip_prefix(b"object-id=") else { return false };
    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=20).contains(&digits) && value.get(digits).is_some_and(|byte| b"\r\n".contains(byte))
}

/// Returns whether the bytes start a COFF object. It has no magic, only a machine number; the absence of an optional
/// header excludes text and noise.
fn is_coff(bytes: &[u8]) -> bool {
    const MACHINES: [[u8; 2]; 4] = [[0x64, 0x86], [0x4c, 0x01], [0x64, 0xaa], [0xc4, 0x01]];
    const BIG: [u8; 6] = [0, 0, 0xff, 0xff, 2, 0];
    let Some(header) = bytes.get(..20) else {
        return false;
    };
    if header.starts_with(&BIG) {
        return true;
    }
    MACHINES.iter().any(|m| header.starts_with(m)) && header.get(16..18) == Some(&[0, 0])
}

/// Returns whether the bytes start a universal Mach-O file. It shares its magic with Java class files, whose next word
/// is a version of 45 or more instead of a small number of slices.
fn is_universal(bytes: &[u8]) -> bool {
    let count = match bytes.get(..8) {
        Some(&[0xca, 0xfe, 0xba, 0xbe | 0xbf, a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    };
    (1..45).contains(&count)
}

/// Returns whether the bytes start PTX, which is text: comments and white space, then the directive `.version` with a number, and
/// `.target`, if they do not end before that ("PTX ISA", "Module Directives"). cuDNN 9.28 has tables that start with
/// `.version 12.3 .build`.
fn is_ptx(mut bytes: &[u8]) -> bool {
    const TARGET: &[u8] = b".target";
    loop {
        bytes = bytes.trim_ascii_start();
        if let Some(rest) = bytes.strip_prefix(b"//") {
            let Some(newline) = rest.iter().position(|&b| b == b'\n') else {
                return false;
            };
            (_, bytes) = rest.split_at(newline);
        } else {
            break;
        }
    }
    let Some([b' ' | b'\t', rest @ ..]) = bytes.strip_prefix(b".version") else { return false };
    let major = after_digits(rest.trim_ascii_start());
    let minor =
        major.strip_prefix(b".").filter(|minor| minor.first().is_some_and(u8::is_ascii_digit));
    let next = minor.map_or(major, after_digits).trim_ascii_start();
    let is_end = next.first().is_none_or(|byte| matches!(byte, 0 | b'/'));
    is_end || next.starts_with(TARGET) || TARGET.starts_with(next)
}

fn after_digits(bytes: &[u8]) -> &[u8] {
    bytes.split_at(bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()).1
}

/// Returns whether the bytes start a linker script, which is text. Scripts that are installed in place of a library
/// consist of these commands ("ld", "Linker Scripts").
fn is_linker_script(mut bytes: &[u8]) -> bool {
    const COMMANDS: [&[u8]; 6] =
        [b"OUTPUT_FORMAT", b"OUTPUT_ARCH", b"SEARCH_DIR", b"AS_NEEDED", b"GROUP", b"INPUT"];
    loop {
        bytes = bytes.trim_ascii_start();
        let Some(comment) = bytes.strip_prefix(b"/*") else { break };
        let Some(end) = comment.windows(2).position(|two| two == b"*/") else { return false };
        (_, bytes) = comment.split_at(end + 2);
    }
    COMMANDS.iter().any(|command| {
        let rest = bytes.strip_prefix(*command);
        rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"("))
    })
}

/// Returns whether the bytes start a bzip2 stream: the number of 100 kB steps in a block, then the first block or the
/// end.
fn is_bzip2(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(b"BZh") {
        Some([b'1'..=b'9', block @ ..]) => {
            block.starts_with(b"\x31\x41\x59\x26\x53\x59")
                || block.starts_with(b"\x17\x72\x45\x38\x50\x90")
        }
        _ => false,
    }
}

/// Returns whether the bytes start with a header of POSIX's or GNU's `tar`.
fn is_tar(bytes: &[u8]) -> bool {
    const MAGIC_AT: usize = 257;
    bytes.get(MAGIC_AT..).is_some_and(|rest| rest.starts_with(b"ustar"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elf_formats_follow_the_machine() {
        let mut elf = *b"\x7fELF\x02\x01\x01\x40\x03\0\0\0\0\0\0\0\x03\0\xe0\0";
        assert_eq!(FileFormat::sniff(&elf), FileFormat::Elf { machine: EM_AMDGPU });
        assert!(!FileFormat::sniff(&elf).may_hold_images());
        elf[18] = 190;
        assert_eq!(FileFormat::sniff(&elf), FileFormat::Cubin);
        elf[18] = 62;
        assert!(FileFormat::sniff(&elf).may_hold_images());
        elf[5] = 2;
        elf[18..].copy_from_slice(&[0, 21]);
        assert_eq!(FileFormat::sniff(&elf), FileFormat::Elf { machine: 21 });
        assert_eq!(FileFormat::sniff(b"\x7fELF"), FileFormat::Elf { machine: 0 });
    }

    #[test]
    fn ptx_is_found_after_comments() {
        let text = b"//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 6.0\n.target sm_70\n";
        assert_eq!(FileFormat::sniff(text), FileFormat::Ptx);
        assert_eq!(FileFormat::sniff(b"// only a comment"), FileFormat::Unknown);
        assert_eq!(FileFormat::sniff(b".versions"), FileFormat::Unknown);
        for text in [".version 6.0", ".version\t6.0\n.tar", ".version 6.0 // x\n.target sm_70"] {
            assert_eq!(FileFormat::sniff(text.as_bytes()), FileFormat::Ptx, "{text}");
        }
        let options = b".version 12.3 .build cuda_12.3.r12.3/compiler.33230281_0 .count 269 >2507";
        assert_eq!(FileFormat::sniff(options), FileFormat::Unknown);
    }

    #[test]
    fn containers_and_other_files_are_recognised() {
        assert_eq!(FileFormat::sniff(b""), FileFormat::Empty);
        assert_eq!(FileFormat::sniff(b"CCOB"), FileFormat::CompressedBundle);
        assert_eq!(FileFormat::sniff(b"__CLANG_OFFLOAD_BUNDLE__"), FileFormat::Bundle);
        assert_eq!(
            FileFormat::sniff(b"\n# __CLANG_OFFLOAD_BUNDLE____START__ host-"),
            FileFormat::Bundle
        );
        assert_eq!(FileFormat::sniff(b"BC\xc0\xde\x35"), FileFormat::Bitcode);
        assert_eq!(FileFormat::sniff(b"\x03\x02\x23\x07\0\x03\x01\0"), FileFormat::SpirV);
        assert_eq!(FileFormat::sniff(b"\x50\xed\x55\xba\x01\0"), FileFormat::Fatbinary);
        assert_eq!(FileFormat::sniff(b"\xca\xfe\xba\xbe\0\0\0\x02"), FileFormat::MachO);
        // a Java class file
        assert_eq!(FileFormat::sniff(b"\xca\xfe\xba\xbe\0\0\0\x34"), FileFormat::Unknown);
        assert_eq!(FileFormat::sniff(b"KPAK\x01\0"), FileFormat::Kpack);
        for &magic in TEXT_MAGICS {
            let text = [magic, b" is the magic of a format, na\xc3\xafvely\n"].concat();
            assert_eq!(FileFormat::sniff(&text), FileFormat::Unknown);
            assert_ne!(FileFormat::sniff(magic), FileFormat::Unknown);
            assert_ne!(FileFormat::sniff(&[&text, &b"\0"[..]].concat()), FileFormat::Unknown);
        }
        assert_eq!(FileFormat::sniff(b"dx"), FileFormat::Unknown);
        assert_eq!(FileFormat::sniff(b"hello"), FileFormat::Unknown);
    }
    #[test]
    fn packages_and_linker_scripts_are_recognised() {
        let mut tar = [0; 512];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, format) in [
            (&b"PK\x03\x04\x14\0"[..], FileFormat::Zip),
            (b"PK\x05\x06\0\0", FileFormat::Zip),
            (b"!<arch>\ndebian-binary   1700000000  0", FileFormat::Deb),
            (b"!<arch>\ndebian.o/       ", FileFormat::Archive),
            (b"\xed\xab\xee\xdb\x03\0", FileFormat::Rpm),
            (b"\x1f\x8b\x08\0", FileFormat::Gzip),
            (b"BZh91AY&SY", FileFormat::Bzip2),
            (b"\xfd7zXZ\0\0\x04", FileFormat::Xz),
            (&tar, FileFormat::Tar),
        ] {
            assert_eq!(FileFormat::sniff(bytes), format);
            let is_walked = format == FileFormat::Archive;
            assert_eq!((format.is_read(), format.may_hold_images()), (is_walked, is_walked));
        }
        for script in [
            "/* GNU ld script\n   */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( /lib/libc.so.6 )",
            "INPUT(-lfoo)",
            "/**//* two */ GROUP\n( libgcc_s.so.1 -lgcc )",
        ] {
            assert_eq!(FileFormat::sniff(script.as_bytes()), FileFormat::LinkerScript);
        }
        assert!(FileFormat::LinkerScript.is_read() && FileFormat::Bitcode.is_read());
        for text in ["/* INPUT(a)", "INPUTS (a)", "GROUP", "# INPUT(a)", "BZhello"] {
            assert_eq!(FileFormat::sniff(text.as_bytes()), FileFormat::Unknown);
        }
    }
}
