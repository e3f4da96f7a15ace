//! LLVM bitcode: device code embedded in host modules.
//!
//! Compiling for link-time optimisation leaves no object file with sections, but a module whose global
//! variables will become sections. Those with device code are listed in the named metadata
//! `llvm.embedded.objects`, each with the name of its section, `.llvm.offloading`.
//!
//! ```text
//! file     [wrapper: magic, version, offset, size, CPU type: u32 each]
//!          magic 42 43 C0 DE
//!          IDENTIFICATION_BLOCK
//!          MODULE_BLOCK              global variables, functions and what follows them
//!            BLOCKINFO_BLOCK         abbreviations for the other blocks
//!            CONSTANTS_BLOCK         the initialisers: the data
//!            METADATA_BLOCK          what names the global variables
//!            FUNCTION_BLOCK ...      skipped
//!          more modules (split for thin link-time optimisation), STRTAB_BLOCK, SYMTAB_BLOCK
//! ```
//!
//! The data starts at any bit, so that it lies in the file nowhere as it is: it is copied out.

mod abbreviation;
mod bitstream;
mod error;
mod globals;
mod module;
mod processor;
mod symbols;
mod symtab;

use std::io::{self, Cursor as Bytes};
use std::ops::Range;

use target_id::{Target, Triple};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use bitstream::{Cursor, Head, Stream};
pub use error::Error;
use error::Fault;
use module::Object;
pub use symbols::bitcode_symbols;

use crate::bare;
use crate::budget::Budget;
use crate::containers::{Start, starts_with};
use crate::image_format::ImageFormat;
use crate::model::{ContainerKind, Segment};
use crate::source::{Origin, Source};
use crate::walker::Walker;

/// The first four bytes of raw bitcode.
pub(crate) const MAGIC: [u8; 4] = *b"BC\xc0\xde";
/// The first four bytes of bitcode in its wrapper.
pub(crate) const WRAPPER_MAGIC: [u8; 4] = 0x0B17_C0DE_u32.to_le_bytes();

const WRAPPER_LEN: usize = 20;

/// The wrapper's header.
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct RawWrapper {
    magic: [u8; 4],
    version: U32,
    offset: U32,
    size: U32,
    cpu_type: U32,
}

const _: () = assert!(size_of::<RawWrapper>() == WRAPPER_LEN);

impl Walker<'_> {
    /// Walks what host modules embed. Each object is entered as the section that it becomes.
    pub(crate) fn bitcode(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
    ) -> io::Result<()> {
        let stream = match stream(source, window)? {
            Ok(stream) => stream,
            Err(error) => return self.finding(source, window.start, error.into()),
        };
        let mut objects = Vec::new();
        let end = find(&mut Cursor::new(source, stream), &mut objects);
        for object in objects {
            self.embedded_object(source, stream, object)?;
        }
        match end {
            Ok(()) => Ok(()),
            Err(Fault::Io(error)) => Err(error),
            Err(Fault::Malformed(error)) => self.finding(source, window.start, error.into()),
        }
    }

    fn embedded_object(
        &mut self,
        source: &mut Source<'_>,
        stream: Stream,
        mut object: Object,
    ) -> io::Result<()> {
        let mut cursor = Cursor::new(source, stream);
        cursor.seek(object.position);
        let data = cursor.bytes(&mut object.record, self.decompression_budget());
        let (start, end) = (object.position / 8, cursor.position() / 8);
        let mut data = match data {
            Ok(data) => data,
            Err(Fault::Io(error)) => return Err(error),
            Err(Fault::Malformed(error)) => {
                return self.finding(source, stream.container, error.into());
            }
        };
        if object.zero_terminated {
            data.push(0);
        }
        let held = data.len() as u64;
        let name = match object.is_listed {
            true => module::SECTION,
            false => section_of(&data),
        };
        let mut data = Bytes::new(data);
        if !object.is_listed {
            let mut inner = Source::new(&mut data, Origin::Bitcode)?;
            if starts_with(&mut inner, &(0..held), &mut Budget::new(held))? != Start::Container {
                return Ok(());
            }
        }
        let segment = Segment::new(ContainerKind::Section, name);
        let stored = stream.start + start..stream.start + end;
        self.hold(held);
        self.decompressed.spend(held);
        self.within(source, segment, &stored, None, |walker, _| {
            let mut inner = Source::new(&mut data, Origin::Bitcode)?;
            walker.add_source(&inner);
            let all = 0..inner.len();
            walker.sequence(&mut inner, &all, None, false).map(drop)
        })?;
        self.release(held);
        Ok(())
    }
}

/// Returns the section that clang gives a global with such a container.
fn section_of(data: &[u8]) -> &'static str {
    match ImageFormat::sniff(data.get(..32).unwrap_or(data)) {
        ImageFormat::Fatbinary => ".nv_fatbin",
        ImageFormat::OffloadBinary => module::SECTION,
        _ => ".hip_fatbin",
    }
}

/// Where the bitstream lies: the whole window, or what the wrapper says.
fn stream(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Result<Stream, Error>> {
    let (container, available) = (window.start, window.end - window.start);
    let head = source.peek(window, WRAPPER_LEN)?;
    if !head.starts_with(&WRAPPER_MAGIC) {
        return Ok(Ok(Stream { container, start: container, len: available }));
    }
    let Ok(wrapper) = RawWrapper::ref_from_bytes(&head) else {
        return Ok(Err(Error::TruncatedWrapper { available }));
    };
    let (start, len) = (u64::from(wrapper.offset), u64::from(wrapper.size));
    let end = start + len;
    if end > available {
        return Ok(Err(Error::WrapperBeyondEnd { start, end, available }));
    }
    Ok(Ok(Stream { container, start: container + start, len }))
}

/// Returns the target of the first module: its triple, and of code for a device the processor that all functions name.
/// `None` if it has no triple, or is malformed before it.
pub(crate) fn target(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Option<Target>> {
    let Ok(stream) = stream(source, window)? else { return Ok(None) };
    let cursor = &mut Cursor::new(source, stream);
    let Some((module, triple)) = readable(first_module(cursor))?.flatten() else {
        return Ok(None);
    };
    let triple = Triple::parse(&triple);
    let processor = match bare::is_device(&triple) && !triple.is_spirv() && !triple.is_spir() {
        true => readable(processor::processor(cursor, &module))?.flatten(),
        false => None,
    };
    Ok(Some(Target::new(None, Some(triple), &processor.unwrap_or_default())))
}

/// Returns what could be read; `None` where the module is malformed.
fn readable<T>(result: Result<T, Fault>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Io(error)) => Err(error),
        Err(Fault::Malformed(_)) => Ok(None),
    }
}

/// Returns the first module and its triple.
fn first_module(cursor: &mut Cursor<'_, '_>) -> Result<Option<(Head, String)>, Fault> {
    cursor.magic()?;
    while cursor.bytes_left() >= 8 {
        let block = cursor.outer_block()?;
        let end = cursor.position();
        if block.id == module::MODULE_BLOCK {
            let triple = module::triple(cursor, &block)?;
            let triple = triple.and_then(|triple| String::from_utf8(triple).ok());
            return Ok(triple.map(|triple| (block, triple)));
        }
        cursor.leave_to(end);
    }
    Ok(None)
}

/// Adds the objects embedded in all modules to `found`.
fn find(cursor: &mut Cursor<'_, '_>, found: &mut Vec<Object>) -> Result<(), Fault> {
    cursor.magic()?;
    let mut has_module = false;
    // LLVM, too, takes fewer than eight bytes for padding, which archivers add.
    while cursor.bytes_left() >= 8 {
        let block = cursor.outer_block()?;
        let end = cursor.position();
        if block.id == module::MODULE_BLOCK {
            module::embedded_objects(cursor, &block, found)?;
            // Code for a device embeds none, and there can be much of it.
            let triple = module::triple(cursor, &block)?.unwrap_or_default();
            let triple = Triple::parse(&String::from_utf8_lossy(&triple));
            if !bare::is_device(&triple) {
                module::container_constants(cursor, &block, found)?;
            }
            has_module = true;
        }
        cursor.leave_to(end);
    }
    if !has_module {
        return Err(Error::NoModule { offset: cursor.offset() }.into());
    }
    Ok(())
}
