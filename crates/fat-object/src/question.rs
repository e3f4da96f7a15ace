//! A linker's question: is there device code in a file? Headers tell.

use std::io;
use std::ops::{ControlFlow, Range};

use byte_parts::Budget;
use device_code::FileFormat;

use crate::containers;
use crate::context::names_of;
use crate::error::Error;
use crate::host::{NamedSection, Parts, parts};
use crate::model::ContainerKind;
use crate::opened::Start;
use crate::options::Options;
use crate::section::{SectionContents, is_gcc_section};
use crate::source::{Origin, Source};
use crate::sycl;
use crate::text::lossy;
use crate::walker::{Event, Walk};

/// Returns whether a file has device code in it, according to its headers: linkers ask this about each of their inputs.
///
/// It reads section headers, section names and the first bytes of sections of an ELF, COFF, PE or Mach-O file, at about
/// twice the cost of reading the headers with the `object` crate. It reads bitcode without its functions. It reads the members of an
/// archive in the same way up to the first with device code. It does not [scan](Options::with_scan) for what lies elsewhere.
///
/// | answer | meaning |
/// |---|---|
/// | `Ok(true)` | A section by its type or name is for device code, or a container starts where a [`walk`](crate::walk) would find it. What it holds is not looked at: it may be damaged, or for the host only. |
/// | `Ok(false)` | There is none: a walk enters no container of device code, finds no image and no error. |
/// | `Err` | Nothing was found, but damage may hide something, or the file has a format that a walk does not know. |
///
/// A device image itself (a code object, a cubin, PTX, SPIR-V, bitcode for a device) has no device code *in* it: `false`.
///
/// ```
/// let object = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/hip.o"))?;
/// if fat_object::has_device_code(&object)? {
///     for image in fat_object::list_slice(&object, &fat_object::Options::default())?.images() {
///         let _code: Option<&[u8]> = image.bytes_in(&object); // not copied
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Any error in the file that prevents an answer. Among it are ELF programs and libraries without section headers,
/// GCC's objects with intermediate code, and formats that are not [read](FileFormat::is_read), as packages,
/// compressed data and junk (all [`NotRead`](crate::ErrorKind::NotRead)), and thin archives, whose members lie in
/// other files ([`ThinMember`](crate::ErrorKind::ThinMember)).
pub fn has_device_code(data: &[u8]) -> Result<bool, Error> {
    let answer = match FileFormat::sniff(data.get(..FileFormat::SNIFF_LEN).unwrap_or(data)) {
        FileFormat::Elf { .. } | FileFormat::Coff | FileFormat::Pe | FileFormat::MachO => {
            of_sections(data)?
        }
        format if containers::of(format).is_some_and(|row| row.is_start.is_some()) => {
            let all = 0..data.len() as u64;
            let start = start_of(data, &all, &mut Budget::new(all.end))?;
            (start == Start::Container).then_some(true)
        }
        _ => None,
    };
    answer.map_or_else(|| of_walk(data), Ok)
}

/// Returns the answer of the sections of a host file; `None` if it has none itself, as universal files, or if tables of SYCL images
/// may lie anywhere in it.
fn of_sections(data: &[u8]) -> Result<Option<bool>, Error> {
    let available = data.len() as u64;
    let (mut names, mut headers) = (names_of(available), Budget::new(available));
    let (mut found, mut fault, mut may_have_tables) = (false, None, false);
    let listed = parts(data, &mut names, &mut |section: NamedSection<'_>| {
        may_have_tables |= sycl::may_have_tables(section.name);
        match start_of_section(data, &section, &mut headers) {
            Ok(Start::Nothing) => {}
            Ok(Start::Container) => found = true,
            Ok(Start::Unknown) => {
                fault.get_or_insert_with(|| {
                    Error::overlapping_sections(&lossy(section.name), &section.range)
                });
            }
            Err(error) => {
                fault.get_or_insert(error);
            }
        }
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match (listed, fault) {
        _ if found => Ok(Some(true)),
        (Err(error), _) => Err(error),
        (Ok(Parts::Nothing), _) => Err(Error::no_section_headers()),
        (Ok(Parts::TooManyNames), _) => Err(Error::too_many_names(names.limit())),
        (Ok(Parts::Slices(_)), _) => Ok(None),
        (Ok(Parts::Sections), None) if may_have_tables => Ok(None),
        (Ok(Parts::Sections), Some(error)) => Err(error),
        (Ok(Parts::Sections), None) => Ok(Some(false)),
    }
}

fn start_of_section(
    data: &[u8],
    section: &NamedSection<'_>,
    headers: &mut Budget,
) -> Result<Start, Error> {
    let available = data.len() as u64;
    if section.range.end > available {
        return Err(Error::section_beyond_end(&lossy(section.name), &section.range, available));
    }
    if section.contents == SectionContents::DeviceCode || section.is_bundle_entry() {
        return Ok(Start::Container);
    }
    if is_gcc_section(section.name) {
        return Err(Error::gcc_intermediate_code());
    }
    if section.contents == SectionContents::Table {
        return Ok(Start::Nothing);
    }
    Ok(start_of(data, &section.range, headers)?)
}

/// Returns the kind of container at the start of `window`.
fn start_of(data: &[u8], window: &Range<u64>, headers: &mut Budget) -> io::Result<Start> {
    if !containers::may_start_at(data, window.start) {
        return Ok(Start::Nothing);
    }
    containers::starts_with(&mut Source::of_bytes(data, Origin::File), window, headers)
}

/// Returns the answer of a walk that ends at the first container of device code: such a one is found by its header.
fn of_walk(data: &[u8]) -> Result<bool, Error> {
    let options = Options::default().with_enter_images(false).with_scan(false);
    let mut walk = Walk::of_slice(data, &options);
    let mut fault = None;
    while let Some(event) = walk.next()? {
        match event {
            Event::Enter(container)
                if !matches!(container.kind(), ContainerKind::Member | ContainerKind::Slice) =>
            {
                return Ok(true);
            }
            Event::Image(image) if image.container() != ContainerKind::File => return Ok(true),
            Event::Finding(finding) if fault.is_none() => {
                fault = Some(Error::of_finding(finding));
            }
            _ => {}
        }
    }
    let format = walk.summary().format;
    match fault {
        Some(fault) => Err(fault),
        None if format.is_read() => Ok(false),
        None => Err(Error::not_read(format)),
    }
}
