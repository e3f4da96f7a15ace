//! Packages that compression may change: whoever reads them decides.
//!
//! LLVM 24 reads compressed packages, of version 3, where its linker wrapper and tools look for them. LLVM 23 and older
//! read no version 3. A package in the memory of a program is read by a runtime: the wrapper that LLVM 24 makes for
//! OpenMP and SYCL hands out pointers into it, so it has to be plain.

use std::io;
use std::ops::Range;

use byte_parts::Source;
use fat_object::{ContainerKind, Location};
use object_edit::sections_never_loaded;

use crate::Contents;
use crate::compress::CompressOptions;
use crate::error::Problem;
use crate::survey::Node;

/// Offset of the entries in an offload binary that can be compressed: its header leaves no choice.
const ENTRIES_AT: u64 = 40;

/// A plain package, as far as compression asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PackageForm {
    version: u32,
    entries_at: u64,
    reader: Reader,
}

/// The reader of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reader {
    /// Tools: it lies in a file of packages, or in a section that is never loaded.
    Tools,
    /// HIP's runtime.
    Hip,
    /// Another runtime.
    Program,
}

/// The outcome of compression for a plain package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    Compress,
    /// As `Compress`; it becomes version 3 by that.
    Upgrade,
    /// It stays: those who read its version need not read version 3.
    Older,
    /// It stays: a runtime reads it that may not decompress it.
    Registered,
}

impl PackageForm {
    pub(super) fn treatment(self, options: &CompressOptions) -> Treatment {
        match (self.reader, self.version) {
            (Reader::Program, _) => Treatment::Registered,
            (_, 3) if self.entries_at == ENTRIES_AT => Treatment::Compress,
            (Reader::Tools, _) if options.upgrade_packages => Treatment::Upgrade,
            _ => Treatment::Older,
        }
    }
}

impl Contents {
    /// Finds out what reads the packages that are not compressed.
    pub(super) fn find_readers(&mut self, source: &mut Source<'_>) -> Result<(), Problem> {
        let mut found = Vec::new();
        in_file(source, &(0..self.size), &self.root, &mut found)?;
        for (container, form) in found {
            if let Some(container) = self.containers.get_mut(container) {
                container.package = Some(form);
            }
        }
        Ok(())
    }
}

fn is_package(node: &Node) -> bool {
    node.kind() == ContainerKind::OffloadBinary
        && node.compression.is_none()
        && matches!(node.location, Location::File(_))
}

fn in_file(
    source: &mut Source<'_>,
    window: &Range<u64>,
    nodes: &[Node],
    found: &mut Vec<(usize, PackageForm)>,
) -> Result<(), Problem> {
    let mut never_loaded = None;
    for node in nodes {
        match node.kind() {
            ContainerKind::OffloadBinary => form(source, node, Reader::Tools, found)?,
            ContainerKind::Member if matches!(node.location, Location::File(_)) => {
                in_file(source, &node.range, &node.children, found)?;
            }
            ContainerKind::Section if node.children.iter().any(is_package) => {
                let reader = match node.segment.name() {
                    name if is_hip_section(name) => Reader::Hip,
                    _ => {
                        let sections = match never_loaded.take() {
                            Some(sections) => sections,
                            None => sections_never_loaded(source, window)?,
                        };
                        let is_found = sections.contains(&node.range.start);
                        never_loaded = Some(sections);
                        if is_found { Reader::Tools } else { Reader::Program }
                    }
                };
                for package in &node.children {
                    form(source, package, reader, found)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn form(
    source: &mut Source<'_>,
    node: &Node,
    reader: Reader,
    found: &mut Vec<(usize, PackageForm)>,
) -> io::Result<()> {
    let Some(container) = node.container.filter(|_| is_package(node)) else { return Ok(()) };
    let header = source.peek(&node.range, 24)?;
    if let (Some(version), Some(entries)) = (header.get(4..8), header.get(16..24))
        && let (Ok(version), Ok(entries)) = (version.try_into(), entries.try_into())
    {
        let (version, entries_at) = (u32::from_le_bytes(version), u64::from_le_bytes(entries));
        found.push((container, PackageForm { version, entries_at, reader }));
    }
    Ok(())
}

/// Returns whether HIP's runtime is handed what sections of this name hold.
fn is_hip_section(name: &str) -> bool {
    matches!(name, ".hip_fatbin" | ".hip_fat" | "__hip_fatbin")
}
