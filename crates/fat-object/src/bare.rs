//! Device images that lie in no container: a file, or the member of an archive, is the image.

use std::io;
use std::ops::Range;

use device_code::{
    Candidate, Fault, FileFormat, MetalPlatform, check_intel, check_spirv, code_version, extent,
    is_device,
};
use target_id::Target;

use crate::elf::{EM_AMDGPU, EM_INTELGT};
use crate::elf::{FileHeader, Header64, LE, Segment64, first, header64};
use crate::error::{Error, ErrorKind};
use crate::image::Description;
use crate::image_target;
use crate::model::ContainerKind;
use crate::opened::Finds;
use crate::source::{Source, lend};

/// Returns whether such a file can be a device image by itself. For LLVM bitcode the triple decides.
pub(crate) fn may_be(format: FileFormat) -> bool {
    is_device_elf(format)
        || matches!(
            format,
            FileFormat::Ptx
                | FileFormat::SpirV
                | FileFormat::Bitcode
                | FileFormat::MetalLibrary
                | FileFormat::DirectX
                | FileFormat::LtoIr
                | FileFormat::Mlir
        )
}

/// Returns whether it is an ELF file for a GPU.
pub(crate) fn is_device_elf(format: FileFormat) -> bool {
    matches!(
        format,
        FileFormat::Cubin
            | FileFormat::IntelBinary
            | FileFormat::Elf { machine: EM_AMDGPU | EM_INTELGT }
    )
}

/// Adds the file or member in `window` as an image, if it is one.
pub(crate) fn image(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: FileFormat,
    found: &mut Finds,
) -> io::Result<()> {
    let target = image_target::of_window(source, window, format)?;
    let fault = match format {
        FileFormat::Bitcode => {
            if !target.as_ref().and_then(Target::triple).is_some_and(is_device) {
                return Ok(());
            }
            None
        }
        FileFormat::Ptx if target.is_none() => {
            let looked_at = (window.end - window.start).min(device_code::HEAD as u64);
            Some(of_image(format!(
                "PTX names no target: expected a directive .target in the first {looked_at} bytes"
            )))
        }
        format => fault(source, window, format)?,
    };
    let mut description = Description::of_loose(ContainerKind::File, target);
    description.format = Some(format);
    let head = source.peek(window, FileFormat::SNIFF_LEN)?;
    description.info.code_version = code_version(&head, format);
    description.info.platform = MetalPlatform::of(&head);
    found.image(window.clone(), description);
    if let Some(error) = fault {
        found.finding(window.start, error);
    }
    Ok(())
}

/// Returns what is wrong with the bytes of an image of this format, judged by its own headers.
pub(crate) fn fault(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: FileFormat,
) -> io::Result<Option<Error>> {
    match format {
        FileFormat::SpirV => spirv(source, window),
        FileFormat::DirectX | FileFormat::MetalLibrary => shader(source, window, format),
        FileFormat::IntelBinary | FileFormat::Elf { machine: EM_INTELGT } => {
            let fault = lend(source, |source| check_intel(source, window))?;
            Ok(fault.map(|fault| of_image(format!("malformed {format}: byte {fault}"))))
        }
        _ if is_device_elf(format) => segments(source, window),
        _ => Ok(None),
    }
}

/// Returns the fault of a SPIR-V module, if it has one.
fn spirv(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<Error>> {
    let fault = lend(source, |source| check_spirv(source, window))?;
    Ok(fault.map(|Fault { offset, expected, found, .. }| {
        of_image(format!(
            "malformed SPIR-V module: byte {offset:#x}: expected {expected}, found {found}"
        ))
    }))
}

/// Returns the fault of a Metal library or a DirectX shader whose header does not fit.
pub(crate) fn shader(
    source: &mut Source<'_>,
    window: &Range<u64>,
    format: FileFormat,
) -> io::Result<Option<Error>> {
    const HEADER: usize = 96;
    let head = source.peek(window, HEADER)?;
    let candidate = Candidate::new(window.clone(), &head);
    let place = lend(source, |source| extent(source, &candidate, format, &mut 0))?;
    let available = window.end - window.start;
    Ok(place.is_none().then(|| {
        of_image(format!("malformed {format}: expected a header whose sizes fit the {available} bytes that are there"))
    }))
}

/// Returns the first segment that lies beyond the end of an ELF file; loaders need no sections.
fn segments(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<Error>> {
    let head = source.peek(window, size_of::<Header64>())?;
    let Some(header) = header64(&head) else { return Ok(None) };
    let available = window.end - window.start;
    let entry = size_of::<Segment64>() as u64;
    if header.e_phnum(LE) == 0 || u64::from(header.e_phentsize(LE)) != entry {
        return Ok(None);
    }
    let start = header.e_phoff(LE);
    // An end too large for a number lies past the end of the file, too.
    let end = start.saturating_add(u64::from(header.e_phnum(LE)) * entry);
    if end > available {
        return Ok(Some(of_image(format!(
            "segment table lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
        ))));
    }
    let table = source.read_range(&(window.start + start..window.start + end))?;
    for (index, segment) in table.chunks_exact(size_of::<Segment64>()).enumerate() {
        let Some(segment) = first::<Segment64>(segment) else { continue };
        let (start, size) = (segment.p_offset.get(LE), segment.p_filesz.get(LE));
        // As above.
        let end = start.saturating_add(size);
        if size > 0 && end > available {
            return Ok(Some(of_image(format!(
                "segment {index} lies at {start:#x}..{end:#x}, beyond the end of the file at {available:#x}"
            ))));
        }
    }
    Ok(None)
}

#[cold]
fn of_image(message: String) -> Error {
    Error::new(ErrorKind::Image, message)
}
