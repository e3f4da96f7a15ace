//! The processor that several target IDs have in common.

use alloc::vec::Vec;

use crate::amd_processor::Processor;
use crate::target_id::TargetId;

impl Processor {
    /// Returns the processor whose code all of these target IDs load: their own if they differ in features only, or the generic
    /// one that covers them.
    ///
    /// ```
    /// use target_id::Processor;
    ///
    /// let for_all = |ids: &[&str]| Some(Processor::for_all(ids)?.name());
    /// assert_eq!(for_all(&["gfx90a:xnack+", "gfx90a:xnack-"]), Some("gfx90a"));
    /// assert_eq!(for_all(&["gfx1100", "gfx1103"]), Some("gfx11-generic"));
    /// assert_eq!(for_all(&["gfx1100", "gfx906"]), None);
    /// ```
    #[must_use]
    pub fn for_all(ids: &[&str]) -> Option<&'static Self> {
        let mut processors = ids.iter().map(|id| TargetId::parse(id).ok()?.processor_info());
        let first = processors.next()??;
        let covering =
            |info: &'static Self| if info.is_generic() { Some(info) } else { info.covered_by() };
        let others: Vec<&Self> = processors.collect::<Option<_>>()?;
        let all = |one: &Self, of: fn(&'static Self) -> Option<&'static Self>| {
            others.iter().all(|other| of(other).is_some_and(|other| other.name == one.name))
        };
        if all(first, Some) {
            Some(first)
        } else {
            covering(first).filter(|one| all(one, covering))
        }
    }
}
