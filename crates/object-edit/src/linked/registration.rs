//! The sections of device code that programs register with a runtime, and the wrappers that lead to it.
//!
//! A wrapper has 24 bytes: magic, version, the address of what it registers, and a word that is of no concern here
//! (LLVM's `OffloadWrapper.cpp`, clang's `CGCUDANV.cpp`, CUDA's `fatbinary_section.h`).

use std::fmt;

use byte_parts::Source;

use crate::error::{Error, ErrorKind};
use crate::linked::host::{SectionChange, SectionEdit};

/// The fault of a section of wrappers whose size does not fit theirs.
pub(crate) const NO_MULTIPLE: &str = "not a multiple of the 24 bytes of a wrapper";

/// The words of a wrapper.
pub(crate) type Record = [[u8; 8]; 3];
/// The offset of the pointer in a wrapper.
pub(crate) const POINTER: u64 = 8;
/// The offset of the last word, directly after the pointer.
pub(crate) const NUMBER: u64 = 16;

/// The way a runtime gets its device code.
#[derive(Debug)]
pub(crate) struct Registration {
    /// The names of the sections of device code. PE files may have room for their first 8 characters only.
    pub(crate) sections: &'static [&'static str],
    /// The name of the section of the wrappers.
    pub(crate) wrappers: &'static str,
    magic: u32,
    /// The versions of wrappers.
    versions: &'static [u32],
    /// The magic of wrappers whose device code was moved to a file of its own.
    moved: Option<u32>,
    /// The least alignment of device code: HIP's runtime maps bundles by the page, CUDA's reads the memory.
    pub(crate) align: u64,
    /// As many bytes of what a wrapper leads to as the runtime reads before it knows the size.
    pub(crate) readable: u64,
    /// First bytes of what wrappers lead to.
    pub(crate) magics: &'static [&'static [u8]],
}

/// One wrapper for each bundle or, with `-fgpu-rdc`, for each translation unit.
pub(crate) const HIP: Registration = Registration {
    sections: &[".hip_fatbin"],
    wrappers: ".hipFatBinSegment",
    magic: HIPF,
    versions: &[1],
    moved: Some(HIPK),
    align: 4096,
    readable: 4096,
    magics: &[b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB", b"\x10\xff\x10\xad"],
};

/// The same with device code in archives beside the file: wrappers lead to a marker, which says where the archives are, and
/// their last word is the number of the bundle (ROCm's `rocm-kpack`).
pub(crate) const HIP_MOVED: Registration = Registration {
    sections: &[".rocm_kpack_ref", ".kpackrf"],
    wrappers: ".hipFatBinSegment",
    magic: HIPK,
    versions: &[1],
    moved: None,
    align: 1,
    readable: 1,
    magics: &[&[0x82]],
};

pub(crate) const HIPF: u32 = 0x4849_5046;
pub(crate) const HIPK: u32 = 0x4b50_4948;

/// One wrapper for each fatbinary. Wrappers of version 2 register what was linked for the device, and at run time the fatbinaries
/// of wrappers of version 1 with it.
pub(crate) const CUDA: Registration = Registration {
    sections: &[".nv_fatbin", "__nv_relfatbin"],
    wrappers: ".nvFatBinSegment",
    magic: 0x4662_43b1,
    versions: &[1, 2],
    moved: None,
    align: 8,
    readable: 16,
    magics: &[b"\x50\xed\x55\xba"],
};

/// All of them.
pub(crate) const ALL: [&Registration; 2] = [&HIP, &CUDA];

/// The device code that an edit changes: sections of one name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device {
    pub(crate) registration: &'static Registration,
    pub(crate) section: &'static str,
}

impl Device {
    /// Returns the device code that lies in sections of this name.
    pub(crate) fn of(section: &str) -> Option<Self> {
        let registration = Registration::of(section)?;
        let section = registration.sections.iter().find(|name| **name == section)?;
        Some(Device { registration, section })
    }

    /// Returns whether a section is one of them. An edit may have split it.
    pub(crate) fn is_named(self, name: &[u8]) -> bool {
        name.starts_with(self.section.as_bytes())
    }
}

/// The magic and the versions of wrappers.
impl fmt::Display for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<_> = self.versions.iter().map(u32::to_string).collect();
        write!(f, "{:#x} and {}", self.magic, versions.join(" or "))
    }
}

impl Registration {
    /// Returns the way in which the section of this name is registered.
    pub(crate) fn of(section: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|registration| registration.sections.contains(&section))
    }

    /// Returns the same for a name in a PE file, which may be cut off.
    pub(crate) fn of_short(section: &str) -> Option<&'static Self> {
        let is_named = |name: &&str| *name == section || name.get(..8) == Some(section);
        ALL.into_iter().find(|registration| registration.sections.iter().any(is_named))
    }

    /// Returns whether the section of this name holds its device code.
    pub(crate) fn has_section(&self, name: &[u8]) -> bool {
        self.sections.iter().any(|section| section.as_bytes() == name)
    }

    /// Returns whether another runtime gets what starts with these bytes.
    fn is_foreign(&'static self, bytes: &[u8]) -> bool {
        let starts = |of: &Registration| of.magics.iter().any(|magic| bytes.starts_with(magic));
        !starts(self) && ALL.into_iter().any(starts)
    }

    /// Returns the address that a wrapper leads to. `wrapper` and `address`: the number of the wrapper and its place, for
    /// errors.
    pub(crate) fn target(
        &'static self,
        record: &Record,
        wrapper: usize,
        address: u64,
    ) -> Result<u64, Error> {
        let [[m0, m1, m2, m3, version @ ..], target, _] = *record;
        let (magic, version) = (u32::from_le_bytes([m0, m1, m2, m3]), u32::from_le_bytes(version));
        if Some(magic) == self.moved {
            return Err(Error::moved_out("wrapper magic HIPK"));
        }
        if magic == self.magic && self.versions.contains(&version) {
            Ok(u64::from_le_bytes(target))
        } else {
            let text = format!(
                "wrapper {wrapper} at {address:#x}: magic {magic:#010x} and version {version}, expected {self}"
            );
            Err(Error::new(ErrorKind::Malformed, text))
        }
    }
}

/// Checks that no section holds the device code of another runtime than its name says: other wrappers would lead there.
pub(crate) fn check(source: &mut Source<'_>, sections: &[SectionEdit]) -> Result<(), Error> {
    let longest = ALL.iter().flat_map(|of| of.magics).map(|magic| magic.len()).max().unwrap_or(0);
    for section in sections {
        let SectionChange::Items(items) = &section.change else { continue };
        let Some(registration) = Registration::of_short(&section.name) else { continue };
        for item in items {
            if registration.is_foreign(&source.peek(&item.old, longest)?) {
                let kind = "sections with the device code of another runtime";
                return Err(Error::unsupported_kind(kind));
            }
        }
    }
    Ok(())
}
