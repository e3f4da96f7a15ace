//! Sums of device code by kind: what devices need, what a rule drops, and what cannot be removed.

use core::ops::{Add, AddAssign};

use fat_object::{ContainerKind, FileFormat, ImageInfo};

use crate::fit::Code;
use crate::rule::{Rule, is_host};
use crate::wanted::Fate;

/// Kind of device code, as sums distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CodeKind {
    /// Code that a GPU runs as it is: cubins, code objects, Intel's binaries.
    MachineCode,
    /// PTX, which NVIDIA's driver compiles.
    Ptx,
    /// LTO-IR, which NVIDIA's linker compiles.
    LtoIr,
    /// Anything else: SPIR-V, LLVM bitcode, images that are not understood.
    Other,
}

impl CodeKind {
    /// Returns the kind of an image; `None` for the host's entry, and for a container whose images are listed themselves.
    #[must_use]
    pub fn of(image: &ImageInfo) -> Option<Self> {
        if is_host(image) || !image.is_counted() {
            return None;
        }
        Some(match image.format() {
            FileFormat::Cubin | FileFormat::Elf { .. } | FileFormat::IntelBinary => {
                CodeKind::MachineCode
            }
            FileFormat::Ptx => CodeKind::Ptx,
            FileFormat::LtoIr => CodeKind::LtoIr,
            _ => CodeKind::Other,
        })
    }

    /// Returns the name in tables: `machine code`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CodeKind::MachineCode => "machine code",
            CodeKind::Ptx => "PTX",
            CodeKind::LtoIr => "LTO-IR",
            CodeKind::Other => "other",
        }
    }
}

/// Bytes of device code in files, by [kind](CodeKind).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeSizes {
    /// Bytes of machine code.
    pub machine_code: u64,
    /// Bytes of PTX.
    pub ptx: u64,
    /// Bytes of LTO-IR.
    pub lto_ir: u64,
    /// Bytes of anything else.
    pub other: u64,
}

impl CodeSizes {
    /// Returns the sum of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        [self.machine_code, self.ptx, self.lto_ir, self.other].into_iter().fold(0, sum)
    }

    /// Adds the [bytes in the file](ImageInfo::stored_estimate) of an image, unless it is of [no kind](CodeKind::of).
    pub fn count(&mut self, image: &ImageInfo) {
        let all = match CodeKind::of(image) {
            Some(CodeKind::MachineCode) => &mut self.machine_code,
            Some(CodeKind::Ptx) => &mut self.ptx,
            Some(CodeKind::LtoIr) => &mut self.lto_ir,
            Some(CodeKind::Other) => &mut self.other,
            None => return,
        };
        *all = sum(*all, image.stored_estimate());
    }
}

impl Add for CodeSizes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        CodeSizes {
            machine_code: sum(self.machine_code, other.machine_code),
            ptx: sum(self.ptx, other.ptx),
            lto_ir: sum(self.lto_ir, other.lto_ir),
            other: sum(self.other, other.other),
        }
    }
}

impl AddAssign for CodeSizes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Returns a sum of sizes that files state: more than a number can hold is the largest.
pub(crate) fn sum(one: u64, other: u64) -> u64 {
    one.saturating_add(other)
}

/// Device code of files by what a [`Rule`] says of it, and by what an edit does.
///
/// ```
/// use device_select::{Rule, Tally, Wanted};
///
/// let file = std::fs::File::open("../../examples/data/hip.o")?;
/// let listing = fat_object::list(file, &fat_object::Options::default())?;
/// let rule = Rule::keep([Wanted::parse("gfx1100")?]);
/// let tally = Tally::of(&rule, listing.images(), |_| false);
/// assert!(tally.kept.machine_code > 3000 && tally.kept.total() == tally.kept.machine_code);
/// assert!(tally.stuck.total() > 9000 && tally.removed.total() == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Code that the rule keeps, and that a target of the rule [means](Rule::means).
    pub kept: CodeSizes,
    /// Code that stays although no target of the rule means it: for CPUs, for unknown targets.
    pub kept_anyway: CodeSizes,
    /// The part of the kept PTX that [`Rule::Keep`] drops with `drop_ptx`: PTX in NVIDIA fatbinaries.
    pub droppable_ptx: u64,
    /// Code that the rule drops, and that is removed.
    pub removed: CodeSizes,
    /// Code that the rule drops, and that is still there.
    pub stuck: CodeSizes,
    /// Bytes of the part of it that is for GPUs of other vendors than those of the rule.
    pub other_vendors: u64,
    /// Bytes of removed code that nothing replaces for a GPU of the rule: PTX without machine code beside it.
    pub unserved: u64,
}

impl Tally {
    /// Returns the sums of all images of a file. `is_removed` says which of them an edit removes.
    #[must_use]
    pub fn of(rule: &Rule, images: &[ImageInfo], is_removed: impl Fn(&ImageInfo) -> bool) -> Self {
        let mut tally = Tally::default();
        for (image, fate) in images.iter().zip(rule.fates(images)) {
            if fate.stays() {
                let is_meant = match rule {
                    Rule::Keep { wanted, .. } => wanted.iter().any(|one| rule.means(one, image)),
                    Rule::Drop { .. } => true,
                };
                let kept = if is_meant { &mut tally.kept } else { &mut tally.kept_anyway };
                kept.count(image);
                let is_entry = image.container() == ContainerKind::NvFatbin;
                if is_meant && is_entry && CodeKind::of(image) == Some(CodeKind::Ptx) {
                    tally.droppable_ptx = sum(tally.droppable_ptx, image.stored_estimate());
                }
            } else if is_removed(image) {
                tally.removed.count(image);
                if matches!(fate, Fate::GoesUnserved) && CodeKind::of(image).is_some() {
                    tally.unserved = sum(tally.unserved, image.stored_estimate());
                }
            } else {
                tally.stuck.count(image);
                let vendor = Code::from(image).vendor().filter(|_| CodeKind::of(image).is_some());
                if vendor.is_some_and(|vendor| !rule.names_vendor(vendor)) {
                    tally.other_vendors = sum(tally.other_vendors, image.stored_estimate());
                }
            }
        }
        tally
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.kept += other.kept;
        self.kept_anyway += other.kept_anyway;
        self.droppable_ptx = sum(self.droppable_ptx, other.droppable_ptx);
        self.removed += other.removed;
        self.stuck += other.stuck;
        self.other_vendors = sum(self.other_vendors, other.other_vendors);
        self.unserved = sum(self.unserved, other.unserved);
    }
}
