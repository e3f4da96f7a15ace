//! Device code of the files of a package: for some GPUs, for others, and not understood.

use core::ops::AddAssign;

use fat_object::{FileFormat, ImageInfo};

use crate::loose::LooseImage;
use crate::rule::Rule;
use crate::tally::{CodeSizes, Tally, sum};

/// Bytes of device code as stored in files, such as the files of a package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holding {
    /// The number of files with device code.
    pub files: u64,
    /// Bytes of machine code that the rule keeps or does not touch, and of other code that is neither PTX nor LTO-IR.
    pub code: u64,
    /// Bytes of PTX that the rule keeps.
    pub ptx: u64,
    /// Bytes of LTO-IR that the rule keeps.
    pub lto_ir: u64,
    /// Bytes of code that the rule drops; 0 without a rule.
    pub other_gpus: u64,
    /// The part of all these in files that are [device code as a whole](LooseImage).
    pub loose: u64,
    /// Bytes of files that may hold device code and are damaged or not read.
    pub not_understood: u64,
}

impl Holding {
    /// Returns the device code of one file, by its images; without a rule all code is kept.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use device_select::{Holding, Rule, Wanted};
    /// use fat_object::{Options, list};
    ///
    /// let ptx = ".version 8.0\n.target sm_80\n";
    /// let listing = list(Cursor::new(ptx), &Options::default())?;
    /// let of = |rule| Holding::of(rule, listing.images(), (listing.format(), listing.size()), false);
    /// assert_eq!((of(None).ptx, of(None).loose), (27, 27));
    /// let rule = Rule::keep([Wanted::parse("gfx906")?]);
    /// assert_eq!((of(Some(&rule)).ptx, of(Some(&rule)).other_gpus), (0, 27));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn of(
        rule: Option<&Rule>,
        images: &[ImageInfo],
        (format, size): (FileFormat, u64),
        is_damaged: bool,
    ) -> Self {
        let mut all = CodeSizes::default();
        images.iter().for_each(|image| all.count(image));
        let tally = rule.map(|rule| Tally::of(rule, images, |_| false));
        let kept = tally.map_or(all, |tally| tally.kept + tally.kept_anyway);
        let is_understood = !is_damaged && !format.may_hold_unread_code();
        Holding {
            files: u64::from(all.total() > 0),
            code: sum(kept.machine_code, kept.other),
            ptx: kept.ptx,
            lto_ir: kept.lto_ir,
            other_gpus: tally.map_or(0, |tally| tally.stuck.total()),
            loose: if LooseImage::may_be(format) { all.total() } else { 0 },
            not_understood: if is_understood { 0 } else { size },
        }
    }

    /// Returns whether there is nothing to say.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files == 0 && self.not_understood == 0
    }
}

impl AddAssign for Holding {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.code = sum(self.code, other.code);
        self.ptx = sum(self.ptx, other.ptx);
        self.lto_ir = sum(self.lto_ir, other.lto_ir);
        self.other_gpus = sum(self.other_gpus, other.other_gpus);
        self.loose = sum(self.loose, other.loose);
        self.not_understood = sum(self.not_understood, other.not_understood);
    }
}
