//! The bytes of one image, by their kinds and functions.

use device_code::{Fault, FileFormat};
use object::read::FileKind;
use object::read::elf::FileHeader;
use object::{Endianness, elf};
use twox_hash::XxHash3_128;

use crate::claims::resolve;
use crate::functions::{Function, Functions};
use crate::kind::{ByKind, Kind};
use crate::sections::Sections;

/// The bytes of an image by their kinds.
#[derive(Debug, Default)]
pub(crate) struct Divided {
    pub(crate) kinds: ByKind,
    /// The functions, if they are asked for, each with its part of `kinds`.
    pub(crate) functions: Vec<Function>,
    /// Bytes that several sections share.
    pub(crate) shared: u64,
    /// A hash of its bytes, if it is asked for; `None` if they could not be read.
    pub(crate) hash: Option<u128>,
    /// The first thing that is wrong with its tables.
    pub(crate) fault: Option<Fault>,
}

impl Divided {
    /// Returns bytes of one kind.
    pub(crate) fn of(kind: Kind, bytes: u64) -> Self {
        Divided { kinds: ByKind::of(kind, bytes), ..Divided::default() }
    }
}

/// The answers that take time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) functions: bool,
    /// Hashes of the image and of its functions.
    pub(crate) hashes: bool,
}

/// Divides an image of this format. `size` counts bytes that tools leave off its end, too.
pub(crate) fn divide(image: &[u8], size: u64, format: FileFormat, wanted: Wanted) -> Divided {
    let divided = match format {
        FileFormat::Elf { .. } | FileFormat::Cubin => match FileKind::parse(image) {
            Ok(FileKind::Elf32) => of_elf::<elf::FileHeader32<Endianness>>(image, size, wanted),
            _ => of_elf::<elf::FileHeader64<Endianness>>(image, size, wanted),
        },
        format => Ok(Divided::of(kind_of(format), size)),
    };
    let damaged = |fault| Divided { fault: Some(fault), ..Divided::of(Kind::NotUnderstood, size) };
    let hash = wanted.hashes.then(|| XxHash3_128::oneshot(image));
    Divided { hash, ..divided.unwrap_or_else(damaged) }
}

/// Returns the kind of all bytes of an image that is not an ELF file.
fn kind_of(format: FileFormat) -> Kind {
    match format {
        FileFormat::Ptx => Kind::Ptx,
        FileFormat::LtoIr => Kind::LtoIr,
        FileFormat::SpirV => Kind::SpirV,
        FileFormat::Bitcode => Kind::Bitcode,
        FileFormat::IntelBinary
        | FileFormat::DirectX
        | FileFormat::MetalLibrary
        | FileFormat::Mlir
        | FileFormat::Archive => Kind::Opaque,
        _ => Kind::NotUnderstood,
    }
}

fn of_elf<Elf: FileHeader<Endian = Endianness>>(
    image: &[u8],
    size: u64,
    wanted: Wanted,
) -> Result<Divided, Fault> {
    let mut sections = Sections::<Elf>::read(image, size)?;
    let claims = sections.claims(size);
    let mut divided = Divided { fault: sections.fault, ..Divided::default() };
    divided.shared = resolve(size, &claims, |claim, range| {
        let kind = claims.get(claim).map(|claim| claim.label.kind);
        kind.into_iter().for_each(|kind| divided.kinds.add(kind, range.end - range.start));
    });
    if wanted.functions {
        divided.functions = Functions::find(&mut sections).divide(&sections, size, wanted.hashes);
    }
    Ok(divided)
}
