//! Sums of the images of each target, and images that are the same code for several targets.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use device_code::FileFormat;
use target_id::Processor;

use crate::image::ImageInfo;

/// Sum of the images of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TargetTotal {
    /// The [name](ImageInfo::total_name) of the target.
    pub name: String,
    /// The number of images.
    pub images: usize,
    /// Their bytes, not compressed.
    pub size: u64,
    /// Their [bytes in the file](ImageInfo::stored_estimate).
    pub stored: u64,
    /// `true` if a part of `stored` is an estimate.
    pub is_estimate: bool,
}

/// Sums of images per target, in the order in which targets first appear.
#[derive(Debug, Default)]
pub struct TargetTotals {
    all: Vec<TargetTotal>,
    /// Positions by name.
    by_name: HashMap<String, usize>,
}

impl TargetTotals {
    /// Counts an image, if it [counts](ImageInfo::is_counted).
    pub fn add(&mut self, image: &ImageInfo) {
        if !image.is_counted() {
            return;
        }
        let name = image.total_name();
        let at = *self.by_name.entry(name.clone()).or_insert(self.all.len());
        if at == self.all.len() {
            self.all.push(TargetTotal { name, ..TargetTotal::default() });
        }
        if let Some(total) = self.all.get_mut(at) {
            total.images += 1;
            // Tables state the sizes, which may be too large for a number in total.
            total.size = total.size.saturating_add(image.size());
            total.stored = total.stored.saturating_add(image.stored_estimate());
            total.is_estimate |= image.stored_size().is_none();
        }
    }

    /// Returns the sums.
    #[must_use]
    pub fn all(&self) -> &[TargetTotal] {
        &self.all
    }
}

impl ImageInfo {
    /// Returns whether sums count it. Host placeholders, and containers whose images are counted themselves, have no bytes of their own.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        let format = self.format();
        let is_entered = self.compression().is_none() && self.sycl().is_none();
        let is_around = format.is_container() && is_entered;
        self.size() > 0 && format != FileFormat::HostPlaceholder && !is_around
    }

    /// Returns the number of bytes in the file for this image: [`stored_size`](Self::stored_size), or its part of the compressed
    /// bundle around it, which is an estimate.
    #[must_use]
    pub fn stored_estimate(&self) -> u64 {
        match (self.stored_size(), self.compression_around()) {
            (Some(stored), _) => stored,
            (None, Some(around)) if around.uncompressed_size() > 0 => {
                // The image may itself be compressed in what is around it.
                let size = self.compression().map_or(self.size(), |own| own.stored_size());
                let stored = around.stored_size();
                let part =
                    u128::from(size) * u128::from(stored) / u128::from(around.uncompressed_size());
                // A table may state more bytes than there are around.
                u64::try_from(part).map_or(stored, |part| part.min(stored))
            }
            _ => 0,
        }
    }

    /// Returns the name of its target for sums: the target ID, else the kind or triple, else the system of a Metal library; and the
    /// target that the image really holds, if that differs.
    #[must_use]
    pub fn total_name(&self) -> String {
        let target = self.loaded_as();
        match (target.label(), self.platform()) {
            (None, Some(platform)) => self.marked(&platform.to_string()),
            (label, _) => self.marked(label.unwrap_or("(unnamed)")),
        }
    }
}

/// Images of several targets with the same code.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Copies {
    /// Bytes of each image.
    pub size: u64,
    /// The number of images.
    pub images: u64,
    /// Bytes in the file of all images but the first.
    pub stored: u64,
    /// `true` if `stored` is an estimate.
    pub is_estimate: bool,
    /// The [names](ImageInfo::total_name) of the targets.
    pub targets: Vec<String>,
    /// The processor whose code all targets load, if there is one.
    pub for_all: Option<&'static str>,
}

impl Copies {
    /// Groups images by hashes of their code without the name of the target. The groups with the most bytes in further copies come
    /// first.
    #[must_use]
    pub fn of<'i>(images: impl IntoIterator<Item = (&'i ImageInfo, &'i str)>) -> Vec<Self> {
        let mut by_hash: BTreeMap<_, (Copies, HashSet<String>, Vec<&str>)> = BTreeMap::new();
        for (image, hash) in images {
            let (copies, seen, ids) = by_hash.entry((hash, image.size())).or_default();
            if copies.images > 0 {
                // As in the totals of targets.
                copies.stored = copies.stored.saturating_add(image.stored_estimate());
                copies.is_estimate |= image.stored_size().is_none();
            }
            copies.size = image.size();
            copies.images += 1;
            let target = image.total_name();
            if seen.insert(target.clone()) {
                copies.targets.push(target);
                ids.push(image.target().id());
            }
        }
        let of_several = by_hash.into_values().filter(|(copies, ..)| copies.targets.len() > 1);
        let mut all: Vec<_> = of_several
            .map(|(copies, _, ids)| {
                let for_all = Processor::for_all(&ids).map(|processor| processor.name());
                Copies { for_all, ..copies }
            })
            .collect();
        all.sort_by_key(|copies| Reverse(copies.further()));
        all
    }

    /// Returns the bytes of all images but one.
    #[must_use]
    pub fn further(&self) -> u64 {
        // The default has no images. As in the totals of targets.
        self.size.saturating_mul(self.images.saturating_sub(1))
    }
}
