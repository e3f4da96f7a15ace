//! LLVM bitcode: device code embedded in host modules.
//!
//! Compiling for link-time optimisation leaves no object file with sections, but a module whose global
//! variables will become sections. Variables with device code are listed in the named metadata
//! `llvm.embedded.objects`, each with the name of its section, `.llvm.offloading`.
//!
//! The data starts at any bit, so that it lies in the file nowhere as it is: it is copied out.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::vec;

use byte_parts::Budget;
use device_code::FileFormat;
use llvm_bitcode::{EmbeddedObject, ErrorKind, Reader, Unreadable};
use target_id::Triple;

use crate::containers::starts_with;
use crate::context::Context;
use crate::error::Error;
use crate::model::{ContainerKind, PathStep};
use crate::opened::{Children, Content, Finds, Inner, Inside, Opened, Start};
use crate::sequence::Sequence;
use crate::source::{Lent, Origin, Source, lend};

/// The section of listed objects.
const SECTION: &str = ".llvm.offloading";

/// First bytes of containers in globals that no metadata lists.
const MAGICS: [[u8; 4]; 4] = [*b"__CL", ccob::MAGIC, ::nv_fatbin::MAGIC, offload_binary::MAGIC];

/// Reads bitcode of a source. Faults of the source itself are errors, those of the bitcode are returned.
fn read<T>(
    source: &mut Source<'_>,
    read: impl FnOnce(&mut Lent<'_, '_>) -> Result<T, llvm_bitcode::Error>,
) -> io::Result<Result<T, llvm_bitcode::Error>> {
    lend(source, |source| match read(source) {
        // The source has no fault, but memory lacks.
        Err(error) if error.kind() == ErrorKind::Memory => Err(Unreadable),
        result => Ok(result),
    })
}

/// Opens host modules: each embedded object becomes the section that the linker would make of it.
pub(crate) fn open(source: &mut Source<'_>, window: &Range<u64>) -> io::Result<Objects> {
    let mut objects = Vec::new();
    let end = read(source, |source| find(source, window, &mut objects))?;
    Ok(Objects { start: window.start, objects: objects.into_iter(), fault: end.err() })
}

/// The objects that host modules embed.
pub(crate) struct Objects {
    start: u64,
    objects: vec::IntoIter<EmbeddedObject>,
    fault: Option<llvm_bitcode::Error>,
}

impl Children for Objects {
    fn next(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Source<'_>,
        found: &mut Finds,
    ) -> io::Result<bool> {
        let Some(object) = self.objects.next() else {
            if let Some(error) = self.fault.take() {
                found.finding(self.start, Error::of_bitcode(error));
            }
            return Ok(false);
        };
        let budget = cx.decompression_budget();
        let (data, stored) = match read(source, |source| object.read(source, budget))? {
            Ok(read) => read,
            Err(error) => {
                found.finding(self.start, Error::of_bitcode(error));
                return Ok(true);
            }
        };
        let held = data.len() as u64;
        let name = if object.is_listed() { SECTION } else { section_of(&data) };
        let mut inner = Source::of_shared(Arc::new(data), Origin::Bitcode);
        let is_container = object.is_listed()
            || starts_with(&mut inner, &(0..held), &mut Budget::new(held))? == Start::Container;
        if is_container {
            cx.decompressed.spend(held);
            cx.add_bytes(held);
            let content = Content::known(Sequence::new(0..held, false));
            found.container(Opened {
                step: PathStep::new(ContainerKind::Section, name),
                window: stored,
                compression: None,
                inside: Inside::Elsewhere(Inner { source: inner, content, held, hash: None }),
            });
        }
        Ok(true)
    }
}

/// Returns the section that clang gives a global with such a container.
fn section_of(data: &[u8]) -> &'static str {
    match FileFormat::sniff(data.get(..32).unwrap_or(data)) {
        FileFormat::Fatbinary => ".nv_fatbin",
        FileFormat::OffloadBinary => SECTION,
        _ => ".hip_fatbin",
    }
}

/// Adds the objects embedded in all modules to `found`.
fn find(
    source: &mut Lent<'_, '_>,
    window: &Range<u64>,
    found: &mut Vec<EmbeddedObject>,
) -> Result<(), llvm_bitcode::Error> {
    let mut reader = Reader::new(source, window.clone())?;
    while let Some(module) = reader.next_module()? {
        reader.embedded_objects(&module, found)?;
        // Code for a device embeds none, and there can be much of it.
        let triple = reader.triple(&module)?.unwrap_or_default();
        if !device_code::is_device(&Triple::parse(&String::from_utf8_lossy(&triple))) {
            reader.constants_starting_with(&module, &MAGICS, found)?;
        }
    }
    Ok(())
}
