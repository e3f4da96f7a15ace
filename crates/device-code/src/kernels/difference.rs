//! The difference of kernels between two files.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::list::{KernelList, ListedKernel};
use super::{Measure, Stored};

/// A kernel of two lists, or of one of them. Its text is the change: `new, code 52`, or `code 52 -> 60, registers 2 -> 3`.
///
/// ```
/// use device_code::{KernelCollector, KernelPair, KernelTotals, kernels};
///
/// let list = |ptx: &[u8]| {
///     let mut collector = KernelCollector::default();
///     collector.add("sm_90", 0, ptx.len() as u64, &kernels(ptx).ok_or("no image")?);
///     Ok::<_, &str>(collector.finish())
/// };
/// let old = list(b".version 8.0\n.target sm_90\n.entry add() .maxntid 64 { ret; }\n")?;
/// let new = list(b".version 8.0\n.target sm_90\n.entry add() .maxntid 96 { ret; }\n.entry sub() { ret; }\n")?;
/// let pairs = KernelPair::of(&old, &new);
/// assert_eq!(pairs[0].to_string(), "workgroup 64 -> 96");
/// assert_eq!((pairs[1].target, pairs[1].to_string()), ("sm_90", "new".to_owned()));
/// assert_eq!(KernelTotals::of_both(&old, &new)["sm_90"].map(|one| one.kernels), [1, 2]);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KernelPair<'l> {
    /// The target of its image.
    pub target: &'l str,
    /// The kernel of the earlier list.
    pub old: Option<&'l ListedKernel>,
    /// The kernel of the later list.
    pub new: Option<&'l ListedKernel>,
}

impl<'l> KernelPair<'l> {
    /// Pairs the kernels of two lists by target and name as in the source, several of one name in their order. Copies are left out.
    #[must_use]
    pub fn of(old: &'l KernelList, new: &'l KernelList) -> Vec<Self> {
        let mut by_name: BTreeMap<(&str, &str), [Vec<&ListedKernel>; 2]> = BTreeMap::new();
        for (side, list) in [old, new].into_iter().enumerate() {
            for kernel in list.distinct() {
                let both = by_name.entry((list.target(kernel), kernel.name(false))).or_default();
                both.get_mut(side).into_iter().for_each(|kernels| kernels.push(kernel));
            }
        }
        let mut pairs = Vec::new();
        for ((target, _), [old, new]) in by_name {
            for at in 0..old.len().max(new.len()) {
                let (old, new) = (old.get(at).copied(), new.get(at).copied());
                pairs.push(KernelPair { target, old, new });
            }
        }
        pairs
    }

    /// Returns the later kernel; the earlier one if it is gone.
    #[must_use]
    pub fn either(&self) -> Option<&'l ListedKernel> {
        self.new.or(self.old)
    }

    /// Returns the measures that differ; none for a kernel that is new or gone.
    #[must_use]
    pub fn changes(&self) -> Vec<Measure> {
        match (self.old, self.new) {
            (Some(old), Some(new)) => {
                Measure::all().filter(|one| old.of(*one) != new.of(*one)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether the kernel is new, gone, or has other numbers.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.old.is_none() || self.new.is_none() || !self.changes().is_empty()
    }

    /// Returns by how many bytes the size of the code differs.
    #[must_use]
    pub fn code_difference(&self) -> u64 {
        let code = |kernel: Option<&ListedKernel>| {
            kernel.and_then(|kernel| kernel.of(Measure::Code).known()).unwrap_or(0)
        };
        code(self.old).abs_diff(code(self.new))
    }
}

impl fmt::Display for KernelPair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |kernel: &ListedKernel| match kernel.of(Measure::Code) {
            Stored::Absent => String::new(),
            _ => format!(", code {}", kernel.text(Measure::Code)),
        };
        match (self.old, self.new) {
            (None, Some(kernel)) => write!(f, "new{}", size(kernel)),
            (Some(kernel), None) => write!(f, "gone{}", size(kernel)),
            (Some(old), Some(new)) => {
                for (nth, measure) in self.changes().into_iter().enumerate() {
                    let comma = if nth > 0 { ", " } else { "" };
                    write!(f, "{comma}{measure} {} -> {}", old.text(measure), new.text(measure))?;
                }
                Ok(())
            }
            (None, None) => Ok(()),
        }
    }
}

/// Numbers of a GPU in a [`KernelList`]. Copies of kernels do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelTotals {
    /// The number of images.
    pub images: u64,
    /// The number of images with kernels.
    pub with_kernels: u64,
    /// Bytes of images, not compressed.
    pub size: u64,
    /// The number of kernels.
    pub kernels: u64,
    /// Bytes of their code; `None` if no image says.
    pub code: Option<u64>,
    /// The most registers of a kernel.
    pub registers: Option<u64>,
    /// The most memory of a work-group.
    pub group_memory: Option<u64>,
    /// The most private memory of a work-item.
    pub private_memory: Stored,
    /// The number of kernels that spill vector registers.
    pub spilling: Option<u64>,
}

impl KernelTotals {
    /// Returns the numbers of each GPU in a list.
    #[must_use]
    pub fn of(list: &KernelList) -> BTreeMap<&str, Self> {
        let mut totals: BTreeMap<&str, Self> = BTreeMap::new();
        for image in &list.images {
            let total = totals.entry(&image.target).or_default();
            total.images += 1;
            // Headers state the sizes.
            total.size = total.size.saturating_add(image.size);
        }
        let mut image = None;
        for kernel in list.distinct() {
            let total = totals.entry(list.target(kernel)).or_default();
            total.with_kernels += u64::from(image.replace(kernel.image) != Some(kernel.image));
            total.add(kernel);
        }
        totals
    }

    /// Returns the numbers of each GPU in two lists.
    #[must_use]
    pub fn of_both<'l>(old: &'l KernelList, new: &'l KernelList) -> BTreeMap<&'l str, [Self; 2]> {
        let mut both: BTreeMap<&str, [Self; 2]> = BTreeMap::new();
        for (target, total) in Self::of(old) {
            both.insert(target, [total, Self::default()]);
        }
        for (target, total) in Self::of(new) {
            let [_, new] = both.entry(target).or_default();
            *new = total;
        }
        both
    }

    fn add(&mut self, kernel: &ListedKernel) {
        self.kernels += 1;
        let known = |measure| kernel.of(measure).known();
        if let Some(code) = known(Measure::Code) {
            // As above.
            self.code = Some(self.code.unwrap_or(0).saturating_add(code));
        }
        // `None` is less than any number.
        self.registers = self.registers.max(known(Measure::Registers));
        self.group_memory = self.group_memory.max(known(Measure::GroupMemory));
        let private = kernel.of(Measure::PrivateMemory);
        if private.rank() > self.private_memory.rank() {
            self.private_memory = private;
        }
        if let Some(spills) = known(Measure::VectorSpills) {
            self.spilling = Some(self.spilling.unwrap_or(0) + u64::from(spills > 0));
        }
    }
}
