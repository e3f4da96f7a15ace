//! What an image is, told by its own first bytes.

use std::fmt;

use crate::hcf;

/// How many first bytes [`ImageFormat::sniff`] looks at. PTX starts with a comment of free length.
pub(crate) const SNIFF_LEN: usize = 2048;

const EM_CUDA: u16 = 190;
pub(crate) const EM_AMDGPU: u16 = 224;
/// Intel's GPUs.
pub(crate) const EM_INTELGT: u16 = 205;

/// The format of an image, by its own magic, whatever the container says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ImageFormat {
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
    /// An LLVM packager binary (`10 FF 10 AD`).
    OffloadBinary,
    /// An HCF container of AdaptiveCpp.
    Hcf,
    /// An `ar` archive, thin or not.
    Archive,
    /// A COFF object or PE image.
    Coff,
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
    /// A library of Apple's Metal, which this crate does not read.
    MetalLibrary,
    /// A container of DirectX shaders (DXBC, DXIL), which this crate does not read.
    DirectX,
    /// NVIDIA's LTO-IR: code for the link step of a device, in no documented format.
    LtoIr,
    /// MLIR bytecode, which this crate does not read.
    Mlir,
    /// A linker script, which stands for libraries that it names.
    LinkerScript,
    /// The one-byte section that stands for the host object itself in an object made by the bundler.
    HostPlaceholder,
    /// Nobody looked: the image of a compressed bundle in a walk of
    /// [tables only](crate::Options::tables_only).
    NotRead,
    /// Anything else.
    Unknown,
}

impl ImageFormat {
    /// Tells the format from the first bytes of an image (2048 are always enough).
    #[must_use]
    pub fn sniff(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return ImageFormat::Empty;
        }
        if bytes.starts_with(b"\x7fELF") {
            return sniff_elf(bytes);
        }
        if bytes.starts_with(DEB) {
            return ImageFormat::Deb;
        }
        for (magic, format) in MAGICS {
            if bytes.starts_with(magic) {
                return *format;
            }
        }
        if bundle_format::text::is_text_bundle(bytes) {
            ImageFormat::Bundle
        } else if hcf::is_start(bytes) {
            ImageFormat::Hcf
        } else if is_universal(bytes) {
            ImageFormat::MachO
        } else if is_coff(bytes) {
            ImageFormat::Coff
        } else if is_ptx(bytes) {
            ImageFormat::Ptx
        } else if is_linker_script(bytes) {
            ImageFormat::LinkerScript
        } else if is_bzip2(bytes) {
            ImageFormat::Bzip2
        } else if is_tar(bytes) {
            ImageFormat::Tar
        } else {
            ImageFormat::Unknown
        }
    }

    /// The name used in machine-readable output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ImageFormat::Empty => "empty",
            ImageFormat::Elf { .. } => "elf",
            ImageFormat::Cubin => "cubin",
            ImageFormat::Bitcode => "bitcode",
            ImageFormat::SpirV => "spirv",
            ImageFormat::Ptx => "ptx",
            ImageFormat::Fatbinary => "fatbinary",
            ImageFormat::Bundle => "bundle",
            ImageFormat::CompressedBundle => "ccob",
            ImageFormat::OffloadBinary => "offload-binary",
            ImageFormat::Hcf => "hcf",
            ImageFormat::Archive => "archive",
            ImageFormat::Coff => "coff",
            ImageFormat::MachO => "macho",
            ImageFormat::Wasm => "wasm",
            ImageFormat::Zstd => "zstd",
            ImageFormat::Zip => "zip",
            ImageFormat::Tar => "tar",
            ImageFormat::Deb => "deb",
            ImageFormat::Rpm => "rpm",
            ImageFormat::Gzip => "gzip",
            ImageFormat::Bzip2 => "bzip2",
            ImageFormat::Xz => "xz",
            ImageFormat::MetalLibrary => "metallib",
            ImageFormat::DirectX => "dxbc",
            ImageFormat::LtoIr => "lto-ir",
            ImageFormat::Mlir => "mlir",
            ImageFormat::LinkerScript => "linker-script",
            ImageFormat::HostPlaceholder => "host-placeholder",
            ImageFormat::NotRead => "not-read",
            ImageFormat::Unknown => "unknown",
        }
    }

    /// The usual file name extension, without a dot.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            ImageFormat::Elf { machine: EM_AMDGPU } => "hsaco",
            ImageFormat::Elf { .. } | ImageFormat::Coff | ImageFormat::MachO => "o",
            ImageFormat::Wasm => "wasm",
            ImageFormat::Cubin => "cubin",
            ImageFormat::Bitcode => "bc",
            ImageFormat::SpirV => "spv",
            ImageFormat::Ptx => "ptx",
            ImageFormat::Fatbinary => "fatbin",
            ImageFormat::Bundle | ImageFormat::CompressedBundle => "hipfb",
            ImageFormat::Archive => "a",
            ImageFormat::OffloadBinary => "offload",
            ImageFormat::Hcf => "hcf",
            ImageFormat::Zstd => "zst",
            ImageFormat::Zip => "zip",
            ImageFormat::Tar => "tar",
            ImageFormat::Deb => "deb",
            ImageFormat::Rpm => "rpm",
            ImageFormat::Gzip => "gz",
            ImageFormat::Bzip2 => "bz2",
            ImageFormat::Xz => "xz",
            ImageFormat::MetalLibrary => "metallib",
            ImageFormat::DirectX => "dxbc",
            ImageFormat::LtoIr => "ltoir",
            ImageFormat::Mlir => "mlirbc",
            ImageFormat::LinkerScript => "ld",
            ImageFormat::Empty
            | ImageFormat::HostPlaceholder
            | ImageFormat::NotRead
            | ImageFormat::Unknown => "bin",
        }
    }

    /// Whether images of this format can hold further device images: containers, archives and host object
    /// files. Code objects for a GPU hold none; LLVM bitcode does only where it is code for the host, which
    /// its first bytes do not tell.
    #[must_use]
    pub fn may_hold_images(self) -> bool {
        match self {
            ImageFormat::Elf { machine } => ![EM_AMDGPU, EM_INTELGT].contains(&machine),
            ImageFormat::Coff | ImageFormat::MachO | ImageFormat::Wasm => true,
            _ => self.is_container(),
        }
    }

    /// Returns whether a walk reads files of this format, so that finding no image in one means that there is none.
    /// `false` for packages (zip, tar, deb, RPM), compressed data, device code of formats that are known by name only (Metal,
    /// DirectX, LTO-IR, MLIR) and bytes of no known format.
    #[must_use]
    pub fn is_read(self) -> bool {
        !matches!(
            self,
            ImageFormat::Zstd
                | ImageFormat::Zip
                | ImageFormat::Tar
                | ImageFormat::Deb
                | ImageFormat::Rpm
                | ImageFormat::Gzip
                | ImageFormat::Bzip2
                | ImageFormat::Xz
                | ImageFormat::MetalLibrary
                | ImageFormat::DirectX
                | ImageFormat::LtoIr
                | ImageFormat::Mlir
                | ImageFormat::Unknown
        )
    }

    /// Whether an image of this format is nothing but a container of other images.
    #[must_use]
    pub fn is_container(self) -> bool {
        matches!(
            self,
            ImageFormat::Fatbinary
                | ImageFormat::Bundle
                | ImageFormat::CompressedBundle
                | ImageFormat::OffloadBinary
                | ImageFormat::Hcf
                | ImageFormat::Archive
        )
    }
}

/// The name used for people.
impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ImageFormat::Empty => "empty",
            ImageFormat::Elf { .. } => "ELF",
            ImageFormat::Cubin => "cubin",
            ImageFormat::Bitcode => "LLVM bitcode",
            ImageFormat::SpirV => "SPIR-V",
            ImageFormat::Ptx => "PTX",
            ImageFormat::Fatbinary => "fatbinary",
            ImageFormat::Bundle => "bundle",
            ImageFormat::CompressedBundle => "compressed bundle",
            ImageFormat::OffloadBinary => "package",
            ImageFormat::Hcf => "HCF",
            ImageFormat::Archive => "archive",
            ImageFormat::Coff => "COFF",
            ImageFormat::MachO => "Mach-O",
            ImageFormat::Wasm => "WebAssembly",
            ImageFormat::Zstd => "zstd data",
            ImageFormat::Zip => "zip archive",
            ImageFormat::Tar => "tar archive",
            ImageFormat::Deb => "Debian package",
            ImageFormat::Rpm => "RPM package",
            ImageFormat::Gzip => "gzip data",
            ImageFormat::Bzip2 => "bzip2 data",
            ImageFormat::Xz => "xz data",
            ImageFormat::MetalLibrary => "Metal library",
            ImageFormat::DirectX => "DirectX shader",
            ImageFormat::LtoIr => "LTO-IR",
            ImageFormat::Mlir => "MLIR bytecode",
            ImageFormat::LinkerScript => "linker script",
            ImageFormat::HostPlaceholder => "host object",
            ImageFormat::NotRead => "not read",
            ImageFormat::Unknown => "unknown",
        })
    }
}

const MAGICS: &[(&[u8], ImageFormat)] = &[
    (&llvm_bitcode::MAGIC, ImageFormat::Bitcode),
    (&llvm_bitcode::WRAPPER_MAGIC, ImageFormat::Bitcode),
    (b"\x03\x02\x23\x07", ImageFormat::SpirV),
    (b"\x07\x23\x02\x03", ImageFormat::SpirV),
    (&crate::nv_fatbin::MAGIC, ImageFormat::Fatbinary),
    (&bundle_format::binary::MAGIC, ImageFormat::Bundle),
    (&ccob::MAGIC, ImageFormat::CompressedBundle),
    (&offload_binary::MAGIC, ImageFormat::OffloadBinary),
    (b"!<arch>\n", ImageFormat::Archive),
    (b"!<thin>\n", ImageFormat::Archive),
    (b"\x28\xb5\x2f\xfd", ImageFormat::Zstd),
    (b"MTLB", ImageFormat::MetalLibrary),
    (b"DXBC", ImageFormat::DirectX),
    (b"\xed\x43\x4e\x7f", ImageFormat::LtoIr),
    (b"ML\xefR", ImageFormat::Mlir),
    (b"PK\x03\x04", ImageFormat::Zip),
    // An empty one.
    (b"PK\x05\x06", ImageFormat::Zip),
    (b"\xed\xab\xee\xdb", ImageFormat::Rpm),
    (b"\x1f\x8b\x08", ImageFormat::Gzip),
    (b"\xfd7zXZ\0", ImageFormat::Xz),
    (&crate::wasm::MAGIC, ImageFormat::Wasm),
    (b"MZ", ImageFormat::Coff),
    (b"\xfe\xed\xfa\xce", ImageFormat::MachO),
    (b"\xce\xfa\xed\xfe", ImageFormat::MachO),
    (b"\xfe\xed\xfa\xcf", ImageFormat::MachO),
    (b"\xcf\xfa\xed\xfe", ImageFormat::MachO),
];

/// Debian packages are `ar` archives whose first member is their version ("deb(5)").
const DEB: &[u8] = b"!<arch>\ndebian-binary";

/// `e_machine` is a 16-bit number at byte 18, in the byte order that byte 5 names.
fn sniff_elf(bytes: &[u8]) -> ImageFormat {
    let machine = match (bytes.get(5), bytes.get(18..20)) {
        (Some(2), Some(&[high, low])) => u16::from_be_bytes([high, low]),
        (_, Some(&[low, high])) => u16::from_le_bytes([low, high]),
        _ => 0,
    };
    match machine {
        EM_CUDA => ImageFormat::Cubin,
        machine => ImageFormat::Elf { machine },
    }
}

/// COFF has no magic, only a machine number; a plausible section count and the absence of an optional
/// header keep text and noise out.
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

/// A universal Mach-O shares its magic with Java class files, whose next word is a version of 45 or more
/// instead of a small number of slices.
fn is_universal(bytes: &[u8]) -> bool {
    let count = match bytes.get(..8) {
        Some(&[0xca, 0xfe, 0xba, 0xbe | 0xbf, a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    };
    (1..45).contains(&count)
}

/// PTX is text: comments and white space, then the `.version` directive.
fn is_ptx(mut bytes: &[u8]) -> bool {
    loop {
        bytes = bytes.trim_ascii_start();
        if let Some(rest) = bytes.strip_prefix(b"//") {
            let Some(newline) = rest.iter().position(|&b| b == b'\n') else {
                return false;
            };
            bytes = rest.get(newline..).unwrap_or_default();
        } else {
            return bytes.starts_with(b".version ") || bytes.starts_with(b".version\t");
        }
    }
}

/// A linker script is text; those that are installed in place of a library consist of these commands ("ld", "Linker
/// Scripts").
fn is_linker_script(mut bytes: &[u8]) -> bool {
    const COMMANDS: [&[u8]; 6] =
        [b"OUTPUT_FORMAT", b"OUTPUT_ARCH", b"SEARCH_DIR", b"AS_NEEDED", b"GROUP", b"INPUT"];
    loop {
        bytes = bytes.trim_ascii_start();
        let Some(comment) = bytes.strip_prefix(b"/*") else { break };
        let Some(end) = comment.windows(2).position(|two| two == b"*/") else { return false };
        bytes = comment.get(end + 2..).unwrap_or_default();
    }
    COMMANDS.iter().any(|command| {
        let rest = bytes.strip_prefix(*command);
        rest.is_some_and(|rest| rest.trim_ascii_start().starts_with(b"("))
    })
}

/// The number of 100 kB steps in a block, then the first block or the end.
fn is_bzip2(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(b"BZh") {
        Some([b'1'..=b'9', block @ ..]) => {
            block.starts_with(b"\x31\x41\x59\x26\x53\x59")
                || block.starts_with(b"\x17\x72\x45\x38\x50\x90")
        }
        _ => false,
    }
}

/// A header of POSIX's or GNU's `tar`.
fn is_tar(bytes: &[u8]) -> bool {
    const MAGIC_AT: usize = 257;
    bytes.get(MAGIC_AT..).is_some_and(|rest| rest.starts_with(b"ustar"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elf_machines() {
        let mut elf = *b"\x7fELF\x02\x01\x01\x40\x03\0\0\0\0\0\0\0\x03\0\xe0\0";
        assert_eq!(ImageFormat::sniff(&elf), ImageFormat::Elf { machine: EM_AMDGPU });
        assert!(!ImageFormat::sniff(&elf).may_hold_images());
        elf[18] = 190;
        assert_eq!(ImageFormat::sniff(&elf), ImageFormat::Cubin);
        elf[18] = 62;
        assert!(ImageFormat::sniff(&elf).may_hold_images());
        elf[5] = 2;
        elf[18..].copy_from_slice(&[0, 21]);
        assert_eq!(ImageFormat::sniff(&elf), ImageFormat::Elf { machine: 21 });
        assert_eq!(ImageFormat::sniff(b"\x7fELF"), ImageFormat::Elf { machine: 0 });
    }

    #[test]
    fn ptx_after_comments() {
        let text = b"//\n// Generated by LLVM NVPTX Back-End\n//\n\n.version 6.0\n.target sm_70\n";
        assert_eq!(ImageFormat::sniff(text), ImageFormat::Ptx);
        assert_eq!(ImageFormat::sniff(b"// only a comment"), ImageFormat::Unknown);
        assert_eq!(ImageFormat::sniff(b".versions"), ImageFormat::Unknown);
    }

    #[test]
    fn containers_and_others() {
        assert_eq!(ImageFormat::sniff(b""), ImageFormat::Empty);
        assert_eq!(ImageFormat::sniff(b"CCOB"), ImageFormat::CompressedBundle);
        assert_eq!(ImageFormat::sniff(b"__CLANG_OFFLOAD_BUNDLE__"), ImageFormat::Bundle);
        assert_eq!(
            ImageFormat::sniff(b"\n# __CLANG_OFFLOAD_BUNDLE____START__ host-"),
            ImageFormat::Bundle
        );
        assert_eq!(ImageFormat::sniff(b"BC\xc0\xde\x35"), ImageFormat::Bitcode);
        assert_eq!(ImageFormat::sniff(b"\x03\x02\x23\x07\0\x03\x01\0"), ImageFormat::SpirV);
        assert_eq!(ImageFormat::sniff(b"\x50\xed\x55\xba\x01\0"), ImageFormat::Fatbinary);
        assert_eq!(ImageFormat::sniff(b"\xca\xfe\xba\xbe\0\0\0\x02"), ImageFormat::MachO);
        // a Java class file
        assert_eq!(ImageFormat::sniff(b"\xca\xfe\xba\xbe\0\0\0\x34"), ImageFormat::Unknown);
        assert_eq!(ImageFormat::sniff(b"dx"), ImageFormat::Unknown);
        assert_eq!(ImageFormat::sniff(b"hello"), ImageFormat::Unknown);
    }
    #[test]
    fn packages_and_linker_scripts() {
        let mut tar = [0; 512];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..262].copy_from_slice(b"ustar");
        for (bytes, format) in [
            (&b"PK\x03\x04\x14\0"[..], ImageFormat::Zip),
            (b"PK\x05\x06\0\0", ImageFormat::Zip),
            (b"!<arch>\ndebian-binary   1700000000  0", ImageFormat::Deb),
            (b"!<arch>\ndebian.o/       ", ImageFormat::Archive),
            (b"\xed\xab\xee\xdb\x03\0", ImageFormat::Rpm),
            (b"\x1f\x8b\x08\0", ImageFormat::Gzip),
            (b"BZh91AY&SY", ImageFormat::Bzip2),
            (b"\xfd7zXZ\0\0\x04", ImageFormat::Xz),
            (&tar, ImageFormat::Tar),
        ] {
            assert_eq!(ImageFormat::sniff(bytes), format);
            let is_walked = format == ImageFormat::Archive;
            assert_eq!((format.is_read(), format.may_hold_images()), (is_walked, is_walked));
        }
        for script in [
            "/* GNU ld script\n   */\nOUTPUT_FORMAT(elf64-x86-64)\nGROUP ( /lib/libc.so.6 )",
            "INPUT(-lfoo)",
            "/**//* two */ GROUP\n( libgcc_s.so.1 -lgcc )",
        ] {
            assert_eq!(ImageFormat::sniff(script.as_bytes()), ImageFormat::LinkerScript);
        }
        assert!(ImageFormat::LinkerScript.is_read() && ImageFormat::Bitcode.is_read());
        for text in ["/* INPUT(a)", "INPUTS (a)", "GROUP", "# INPUT(a)", "BZhello"] {
            assert_eq!(ImageFormat::sniff(text.as_bytes()), ImageFormat::Unknown);
        }
    }
}
