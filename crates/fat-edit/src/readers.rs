//! Offload binaries that compression may change: whoever reads them decides.
//!
//! LLVM 24 reads compressed offload binaries, of version 3, where its linker wrapper and tools look for them. LLVM 23 and older
//! read no version 3. An offload binary in the memory of a program is read by a runtime: the wrapper that LLVM 24 makes for
//! OpenMP and SYCL hands out pointers into it, so it has to be plain.

use std::io;
use std::ops::Range;

use byte_parts::Source;
use fat_object::{ContainerKind, Location};
use object_edit::sections_never_loaded;

use crate::EditableFile;
use crate::error::Problem;
use crate::offload_form::{OffloadBinaryForm, Reader};
use crate::survey::Node;

impl EditableFile {
    /// Finds the readers of the offload binaries that are not compressed.
    pub(super) fn find_readers(&mut self, source: &mut Source<'_>) -> Result<(), Problem> {
        let mut found = Vec::new();
        in_file(source, &(0..self.size), &self.root, &mut found)?;
        for (container, form) in found {
            if let Some(container) = self.containers.get_mut(container) {
                container.binary = Some(form);
            }
        }
        Ok(())
    }
}

fn is_offload_binary(node: &Node) -> bool {
    node.kind() == ContainerKind::OffloadBinary
        && node.compression.is_none()
        && matches!(node.location, Location::File(_))
}

fn in_file(
    source: &mut Source<'_>,
    window: &Range<u64>,
    nodes: &[Node],
    found: &mut Vec<(usize, OffloadBinaryForm)>,
) -> Result<(), Problem> {
    let mut never_loaded = None;
    for node in nodes {
        match node.kind() {
            ContainerKind::OffloadBinary => form(source, node, Reader::Tools, found)?,
            ContainerKind::Member if matches!(node.location, Location::File(_)) => {
                in_file(source, &node.range, &node.children, found)?;
            }
            ContainerKind::Section if node.children.iter().any(is_offload_binary) => {
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
                for binary in &node.children {
                    form(source, binary, reader, found)?;
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
    found: &mut Vec<(usize, OffloadBinaryForm)>,
) -> io::Result<()> {
    let Some(container) = node.container.filter(|_| is_offload_binary(node)) else { return Ok(()) };
    let header = source.peek(&node.range, 24)?;
    if let (Some(version), Some(entries)) = (header.get(4..8), header.get(16..24))
        && let (Ok(version), Ok(entries)) = (version.try_into(), entries.try_into())
    {
        let (version, entries_at) = (u32::from_le_bytes(version), u64::from_le_bytes(entries));
        found.push((container, OffloadBinaryForm { version, entries_at, reader }));
    }
    Ok(())
}

/// Returns whether HIP's runtime reads sections of this name.
fn is_hip_section(name: &str) -> bool {
    matches!(name, ".hip_fatbin" | ".hip_fat" | "__hip_fatbin")
}
