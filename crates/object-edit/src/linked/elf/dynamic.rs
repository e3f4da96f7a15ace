//! The tags of the dynamic section that name sections.

use byte_parts::Source;
use object::LittleEndian;
use object::elf::{
    DT_GNU_HASH, DT_HASH, DT_JMPREL, DT_NULL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, DT_RELR, DT_RELRSZ,
    DT_STRTAB, DT_SYMTAB, DT_VERDEF, DT_VERNEED, DT_VERSYM, Dyn64, DynamicTag, PT_DYNAMIC,
};

use super::file::{File, segment_file_range};
use super::relocations::entries;
use crate::error::Error;
use crate::patches::Patch;
use crate::pod::LE;

const KNOWN: [DynamicTag; 13] = [
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
    tag: DynamicTag,
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
        let Some(segment) = segments.find(|segment| segment.p_type.get(LE) == PT_DYNAMIC) else {
            return Ok(Dynamic::default());
        };
        let mut ended = false;
        let range = segment_file_range(segment);
        entries(source, file, &range, &mut |_, at, entry: &Dyn64<LittleEndian>| {
            let tag = entry.d_tag.get(LE);
            ended |= tag == DT_NULL;
            // Each once: a file that repeats them is none of a linker.
            if !ended && KNOWN.contains(&tag) && tags.len() < 2 * KNOWN.len() {
                tags.push(Tag { tag, value: entry.d_val.get(LE), offset: at + 8 });
            }
            Ok(())
        })?;
        Ok(Dynamic { tags })
    }

    /// Returns the value of a tag that is there once.
    pub(super) fn get(&self, tag: DynamicTag) -> Option<u64> {
        let mut found = self.tags.iter().filter(|entry| entry.tag == tag);
        let value = found.next()?.value;
        found.next().is_none().then_some(value)
    }

    /// Returns the patch that gives a tag another value.
    pub(super) fn patch(&self, tag: DynamicTag, value: u64) -> Option<Patch> {
        let entry = self.tags.iter().find(|entry| entry.tag == tag)?;
        Some(Patch::word(entry.offset, value))
    }
}
