//! Selection of the bundle entry for a target.

use alloc::string::{String, ToString};

use target_id::{Options, Target, Triple, Verdict, compatible_with_options};

use crate::entry_id::EntryId;

/// A target that somebody wants a code object for, prepared for comparing it with many entries.
///
/// Compatibility is the rule of `clang-offload-bundler` ("Target ID Compatibility" in the Clang Offload Bundler
/// documentation). Where several entries fit, that tool takes the first in the order of a hash table, even when
/// another one has the very ID asked for; here the best one wins. One entry may be the best for several targets.
///
/// ```
/// use bundle_format::{EntryId, Request};
///
/// # fn main() -> Result<(), bundle_format::Error> {
/// let ids = ["hip-amdgcn-amd-amdhsa--gfx90a", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"];
/// let mut entries = Vec::new();
/// for id in ids {
///     entries.push(EntryId::parse(id)?.target());
/// }
/// let best = |id| EntryId::parse(id).map(|id| Request::new(&id).best_match(&entries));
/// assert_eq!(best("hip-amdgcn-amd-amdhsa--gfx90a:xnack+")?, Some(1));
/// assert_eq!(best("hip-amdgcn-amd-amdhsa--gfx90a:xnack-")?, Some(0));
/// assert_eq!(best("hip-amdgcn-amd-amdhsa--gfx906")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    id: String,
    target: Target,
    options: Options,
}

impl Request {
    /// Creates a request for the target that `id` names, which is [standardised](EntryId::standardized) first.
    #[must_use]
    pub fn new(id: &EntryId<'_>) -> Self {
        let triple = Triple::parse(&Triple::parse(id.triple()).bundle_form());
        Self {
            id: id.standardized(),
            target: Target::new(Some(id.kind()), Some(triple), id.target_id()),
            options: Options::default(),
        }
    }

    /// Returns this request with other options of comparing.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Returns the standardised ID.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the target asked for.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Compares an entry for `code_object` ([`EntryId::target`]) with the target. [`Verdict::is_strict`] tells
    /// whether it may be handed out.
    #[must_use]
    pub fn verdict(&self, code_object: &Target) -> Verdict {
        compatible_with_options(code_object, &self.target, self.options)
    }

    /// Returns the position of the entry to hand out among `entries`: the ID asked for before the same processor and
    /// features in another spelling, before code that leaves the fewest features open; the first of equals. `None`
    /// when no entry may be handed out. Each entry is compared with the target once.
    pub fn best_match<'t>(&self, entries: impl IntoIterator<Item = &'t Target>) -> Option<usize> {
        let mut best: Option<(u32, bool, usize)> = None;
        for (index, code_object) in entries.into_iter().enumerate() {
            let verdict = self.verdict(code_object);
            if !verdict.is_strict() {
                continue;
            }
            let rank = verdict.rank();
            // Triples can be compatible without being the same.
            let other_text = || code_object.to_string() != self.id;
            let better = match best {
                None => true,
                Some((best_rank, best_is_other, _)) => {
                    rank < best_rank || (rank == best_rank && best_is_other && !other_text())
                }
            };
            if better {
                best = Some((rank, other_text(), index));
            }
        }
        best.map(|(_, _, index)| index)
    }
}

/// The best entry for a [`Request`], chosen while entries are read one after the other; `T` is what is kept of it.
///
/// ```
/// use bundle_format::{Choice, EntryId, Request};
///
/// let request = Request::new(&EntryId::parse("hip-amdgcn-amd-amdhsa--gfx90a:xnack+")?);
/// let mut choice = Choice::new(request);
/// for id in ["hip-amdgcn-amd-amdhsa--gfx90a", "hip-amdgcn-amd-amdhsa--gfx906", "hip-amdgcn-amd-amdhsa--gfx90a:xnack+"] {
///     choice.offer(&EntryId::parse(id)?.target(), || Ok::<_, bundle_format::Error>(id))?;
/// }
/// assert_eq!(choice.best(), Some(&"hip-amdgcn-amd-amdhsa--gfx90a:xnack+"));
/// # Ok::<(), bundle_format::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Choice<T> {
    request: Request,
    best: Option<(Target, T)>,
    equals: usize,
}

impl<T> Choice<T> {
    /// Starts to choose.
    #[must_use]
    pub fn new(request: Request) -> Self {
        Choice { request, best: None, equals: 0 }
    }

    /// Returns the request.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Takes an entry for this code object if it is better than all before, as [`Request::best_match`] says; `keep` is
    /// called only then.
    ///
    /// # Errors
    ///
    /// Errors of `keep`.
    pub fn offer<E>(
        &mut self,
        code_object: &Target,
        keep: impl FnOnce() -> Result<T, E>,
    ) -> Result<(), E> {
        if !self.request.verdict(code_object).is_strict() {
            return Ok(());
        }
        let best = self.best.as_ref().map(|(target, _)| target);
        let position = usize::from(best.is_some());
        if self.request.best_match(best.into_iter().chain([code_object])) == Some(position) {
            self.best = Some((code_object.clone(), keep()?));
            self.equals = 0;
        } else if best.is_some_and(|best| self.request.best_match([code_object, best]) == Some(0)) {
            self.equals += 1;
        }
        Ok(())
    }

    /// Returns what was kept of the best entry.
    #[must_use]
    pub fn best(&self) -> Option<&T> {
        self.best.as_ref().map(|(_, kept)| kept)
    }

    /// Returns the number of entries that would do as well as the best, which is the first of these.
    #[must_use]
    pub fn equals(&self) -> usize {
        self.equals
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn best(request: &str, entries: &[&str]) -> Option<usize> {
        let entries: Vec<_> =
            entries.iter().map(|id| EntryId::parse(id).unwrap().target()).collect();
        Request::new(&EntryId::parse(request).unwrap()).best_match(&entries)
    }

    #[test]
    fn the_best_entry_wins_in_any_order() {
        let any = "hip-amdgcn-amd-amdhsa--gfx90a";
        let on = "hip-amdgcn-amd-amdhsa--gfx90a:xnack+";
        let both = "hip-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+";
        let orders = [[any, on, both], [both, on, any], [on, any, both]];
        for entries in orders.into_iter().take(if cfg!(miri) { 1 } else { 3 }) {
            for request in entries {
                let index = best(request, &entries);
                assert_eq!(index.map(|i| entries[i]), Some(request), "{entries:?}");
            }
            let other = "hip-amdgcn-amd-amdhsa--gfx90a:sramecc-:xnack+";
            assert_eq!(best(other, &entries).map(|i| entries[i]), Some(on));
            assert_eq!(best("hip-amdgcn-amd-amdhsa--gfx906", &entries), None);
        }
    }

    #[test]
    fn equal_text_wins_among_equivalent_entries_then_the_first() {
        let (hip, v4) = ("hip-amdgcn-amd-amdhsa--gfx906", "hipv4-amdgcn-amd-amdhsa--gfx906");
        assert_eq!(best(v4, &[hip, v4]), Some(1));
        assert_eq!(best(hip, &[v4, hip]), Some(1));
        assert_eq!(best(hip, &[v4, v4]), Some(0));
        let (pc, unknown) = ("host-x86_64-foo-linux-gnu-", "host-x86_64-unknown-linux-gnu-");
        assert_eq!(best(unknown, &[pc, unknown, unknown]), Some(1));
    }

    #[test]
    fn the_request_is_standardised() {
        assert_eq!(best("host-x86_64-linux-gnu-", &["host-x86_64-unknown-linux-gnu"]), Some(0));
        let id = EntryId::parse("hip-amdgcn-amd-amdhsa-foo-gfx906").unwrap();
        assert_eq!(Request::new(&id).id(), "hip-amdgcn-amd-amdhsa--gfx906");
    }

    #[test]
    fn hip_serves_openmp_on_request() {
        let entries = [EntryId::parse("hip-amdgcn-amd-amdhsa--gfx906").unwrap().target()];
        let request = Request::new(&EntryId::parse("openmp-amdgcn-amd-amdhsa--gfx906").unwrap());
        assert_eq!(request.best_match(&entries), None);
        let request = request.with_options(Options::default().with_hip_openmp(true));
        assert_eq!(request.best_match(&entries), Some(0));
    }
}
