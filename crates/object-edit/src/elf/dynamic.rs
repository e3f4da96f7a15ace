//! The tags of the dynamic section that name sections.

use byte_parts::Source;
use zerocopy::LittleEndian;

use super::file::{File, segment_file_range};
use super::relocations::entries;
use super::wrappers::Patch;
use crate::error::Error;
use crate::wire::ElfDynamic64;

pub(super) const PT_DYNAMIC: u32 = 2;

const DT_NULL: u64 = 0;
pub(super) const DT_PLTRELSZ: u64 = 2;
pub(super) const DT_HASH: u64 = 4;
pub(super) const DT_STRTAB: u64 = 5;
pub(super) const DT_SYMTAB: u64 = 6;
pub(super) const DT_RELA: u64 = 7;
pub(super) const DT_RELASZ: u64 = 8;
pub(super) const DT_JMPREL: u64 = 23;
pub(super) const DT_RELRSZ: u64 = 35;
pub(super) const DT_RELR: u64 = 36;
pub(super) const DT_GNU_HASH: u64 = 0x6fff_fef5;
pub(super) const DT_VERSYM: u64 = 0x6fff_fff0;
pub(super) const DT_VERDEF: u64 = 0x6fff_fffc;
pub(super) const DT_VERNEED: u64 = 0x6fff_fffe;

const KNOWN: [u64; 13] = [
    DT_PLTRELSZ,
    DT_HASH,
    DT_STRTAB,
    DT_SYMTAB,
    DT_RELA,
    DT_RELASZ,
    DT_JMPREL,
    DT_RELRSZ,
    DT_RELR,
    DT_GNU_HASH,
    DT_VERSYM,
    DT_VERDEF,
    DT_VERNEED,
];

/// A tag, its value, and where the value lies in the ELF file.
struct Tag {
    tag: u64,
    value: u64,
    offset: u64,
}

#[derive(Default)]
pub(super) struct Dynamic {
    tags: Vec<Tag>,
}

impl Dynamic {
    pub(super) fn read(source: &mut Source<'_>, file: &File) -> Result<Self, Error> {
        let mut tags: Vec<Tag> = Vec::new();
        let mut segments = file.segments.iter();
        let Some(segment) = segments.find(|segment| segment.kind.get() == PT_DYNAMIC) else {
            return Ok(Dynamic::default());
        };
        let mut ended = false;
        let range = segment_file_range(segment);
        entries(source, file, &range, &mut |_, at, entry: &ElfDynamic64<LittleEndian>| {
            let tag = entry.tag.get();
            ended |= tag == DT_NULL;
            // Each once: a file that repeats them is none of a linker.
            if !ended && KNOWN.contains(&tag) && tags.len() < 2 * KNOWN.len() {
                tags.push(Tag { tag, value: entry.value.get(), offset: at.saturating_add(8) });
            }
            Ok(())
        })?;
        Ok(Dynamic { tags })
    }

    /// The value of a tag that is there once.
    pub(super) fn get(&self, tag: u64) -> Option<u64> {
        let mut found = self.tags.iter().filter(|entry| entry.tag == tag);
        let value = found.next()?.value;
        found.next().is_none().then_some(value)
    }

    /// Another value for a tag.
    pub(super) fn patch(&self, tag: u64, value: u64) -> Option<Patch> {
        let entry = self.tags.iter().find(|entry| entry.tag == tag)?;
        Some(Patch::word(entry.offset, value))
    }
}
