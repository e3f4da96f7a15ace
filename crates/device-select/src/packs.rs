//! The kernel packs in which ROCm's loader finds the code of a split library for a GPU.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use kpack::search::{self, Loader, PackPath, Variables};
use kpack::{Entry, Marker, Toc};
use target_id::Processor;

use crate::device::Device;
use crate::few::few;
use crate::needs::Need;
use crate::support::{Support, of_part};

/// A library whose device code lies in kernel packs, in a place of a machine or of a package.
///
/// ```
/// use device_select::{Device, PackAnswer, SplitLibrary};
/// use kpack::{Marker, search::{PackPath, Variables}};
///
/// struct Library(Marker);
///
/// impl SplitLibrary for Library {
///     type Path = String;
///     fn marker(&self) -> &Marker { &self.0 }
///     fn wrappers(&self) -> &[u64] { &[0] }
///     fn variables(&self) -> Variables<'_> { Variables::default() }
///     fn path(&self, place: &PackPath) -> String { format!("/opt/lib/{}", place.path()) }
/// }
///
/// let library = Library(Marker::new("libfoo.so", ["foo_@GFXARCH@.kpack".to_owned()]));
/// let gpu = Device::parse("gfx1100").unwrap();
/// let answer = PackAnswer::new(&library, &gpu, &mut |_| None);
/// assert!(!answer.is_served());
/// assert_eq!(answer.words(String::clone), "has no code for gfx1100: looked for /opt/lib/foo_gfx1100.kpack, /opt/lib/foo_gfx11-generic.kpack");
/// ```
pub trait SplitLibrary {
    /// The name of a pack.
    type Path: Clone + Ord;

    /// Returns the marker to which its wrappers lead.
    fn marker(&self) -> &Marker;

    /// Returns the numbers of its wrappers, by which their code is known in packs.
    fn wrappers(&self) -> &[u64];

    /// Returns the variables that lead a loader to other packs.
    fn variables(&self) -> Variables<'_>;

    /// Returns the path of a place where a loader looks.
    fn path(&self, place: &PackPath) -> Self::Path;

    /// Returns the paths of packs at which a loader looks for a GPU with these targets, in its order, each once: it finds nothing
    /// in a pack that it has tried.
    fn places(&self, targets: &[&str]) -> Vec<Self::Path> {
        let places = search::places(self.marker().search_paths(), &self.variables(), targets);
        let mut seen = BTreeSet::new();
        let paths = places.iter().map(|place| self.path(place));
        paths.filter(|path| seen.insert(path.clone())).collect()
    }

    /// Returns the patterns of the paths of packs that a loader goes through.
    fn patterns(&self) -> Vec<String> {
        search::patterns(self.marker().search_paths(), &self.variables())
    }

    /// Returns the wrappers whose code a loader finds for some GPU, in packs at these paths.
    fn found_in(&self, packs: &BTreeMap<Self::Path, &Toc>) -> BTreeSet<u64> {
        let (name, wrappers) = (self.marker().kernel_name(), self.wrappers());
        let entries = packs.values().flat_map(|toc| toc.entries());
        let entries = entries.filter(|entry| entry.kernel_name() == name);
        let archs: BTreeSet<&str> = entries.map(Entry::arch).collect();
        let mut found = BTreeSet::new();
        for targets in archs.into_iter().flat_map(gpus_of) {
            if found.len() == wrappers.len() {
                break;
            }
            let places = self.places(&targets);
            let tables: Vec<&Toc> =
                places.iter().filter_map(|path| packs.get(path).copied()).collect();
            let has_code = |number: &&u64| {
                let key = search::key(name, **number);
                search::lookup(&tables, &targets, &key, Loader::Later).is_ok()
            };
            found.extend(wrappers.iter().filter(has_code));
        }
        found
    }

    /// Returns what is wrong if a loader finds code in packs at these paths only: some wrappers have none for any GPU.
    fn lacks(&self, packs: &BTreeMap<Self::Path, &Toc>) -> Option<String> {
        let found = self.found_in(packs);
        let all = self.wrappers().len();
        match self.wrappers().iter().filter(|number| !found.contains(number)).count() {
            0 => None,
            left if left == all => {
                let patterns = few(self.patterns());
                Some(format!("no kernel pack has its device code: looked for {patterns}"))
            }
            left => {
                Some(format!("{left} of {all} wrappers have no device code in any kernel pack"))
            }
        }
    }

    /// Returns what the library is, in words.
    fn describe(&self) -> String {
        let (name, patterns) = (self.marker().kernel_name(), few(self.patterns()));
        format!("its device code is in kernel packs, as {name}: {patterns}")
    }
}

/// Returns the targets of GPUs for which a loader may take code for an architecture, in its order: a processor that a
/// generic one covers asks for its own code first.
fn gpus_of(arch: &str) -> Vec<Vec<&str>> {
    let processor = Processor::amdgpu(arch.split(':').next().unwrap_or(arch));
    let covered = processor.map_or(&[][..], |processor| processor.covers());
    let mut gpus: Vec<Vec<&str>> = covered.iter().map(|gpu| vec![*gpu, arch]).collect();
    gpus.push(vec![arch]);
    gpus
}

/// The result for a place without a pack.
const NOT_THERE: &str = "not there";

/// The table of a pack, or why it cannot be read; `None` if there is no pack.
type PackTable = Option<Result<Arc<Toc>, String>>;

/// The code objects that ROCm's loader finds in kernel packs for the wrappers of a [`SplitLibrary`] on a GPU.
#[derive(Clone, Debug)]
pub struct PackAnswer<P> {
    gpu: String,
    tried: Vec<(P, String)>,
    used: Vec<P>,
    wrappers: usize,
    missing: Vec<u64>,
    conditions: Vec<String>,
    is_later: bool,
    need: Option<Need>,
    is_unsought: bool,
    is_partial: bool,
}

/// The loader at work.
struct Search<'l, L: SplitLibrary> {
    library: &'l L,
    open: &'l mut dyn FnMut(&L::Path) -> PackTable,
    packs: BTreeMap<L::Path, PackTable>,
    tried: Vec<L::Path>,
    used: Vec<L::Path>,
    is_later: bool,
}

impl<L: SplitLibrary> Search<'_, L> {
    /// Returns the wrappers without code for a GPU with these targets.
    fn missing(&mut self, targets: &[&str]) -> Vec<u64> {
        let places = self.library.places(targets);
        for path in &places {
            if !self.packs.contains_key(path) {
                self.tried.push(path.clone());
                self.packs.insert(path.clone(), (self.open)(path));
            }
        }
        let opened = |path| Some((path, self.packs.get(path)?.as_ref()?.as_ref().ok()?));
        let packs: Vec<(&L::Path, &Arc<Toc>)> = places.iter().filter_map(opened).collect();
        let tables: Vec<&Toc> = packs.iter().map(|(_, toc)| &***toc).collect();
        let (mut left, mut taken) = (Vec::new(), BTreeSet::new());
        for number in self.library.wrappers() {
            let key = search::key(self.library.marker().kernel_name(), *number);
            let found = search::lookup(&tables, targets, &key, Loader::Later);
            self.is_later |= search::lookup(&tables, targets, &key, Loader::First) != found;
            match found {
                Ok(hit) => _ = taken.insert(hit.pack),
                Err(_) => left.push(*number),
            }
        }
        for (path, _) in taken.into_iter().filter_map(|pack| packs.get(pack)) {
            if !self.used.contains(path) {
                self.used.push((*path).clone());
            }
        }
        left
    }

    /// Returns what the loader finds at a place.
    fn result(&self, path: &L::Path) -> String {
        let toc = match self.packs.get(path) {
            Some(Some(Ok(toc))) => toc,
            Some(Some(Err(error))) => return error.clone(),
            _ => return NOT_THERE.to_owned(),
        };
        let (name, wrappers) = (self.library.marker().kernel_name(), self.library.wrappers());
        let entries = toc.entries().iter().filter(|entry| entry.kernel_name() == name);
        let known: BTreeSet<u64> = entries.filter_map(Entry::index).collect();
        let targets = few(toc.archs());
        match wrappers.iter().filter(|number| known.contains(number)).count() {
            0 => format!("has no code of {name}"),
            all if all == wrappers.len() => format!("has code for {targets}"),
            some => format!("has code for {targets}, for {some} of {} wrappers", wrappers.len()),
        }
    }
}

impl<P: Clone + Ord> PackAnswer<P> {
    /// Looks for the code of all wrappers of a library, as the loader does for each: with the features that the GPU may have.
    /// `open` reads the table of the pack at a path; `None` without one.
    pub fn new(
        library: &impl SplitLibrary<Path = P>,
        gpu: &Device,
        open: &mut dyn FnMut(&P) -> PackTable,
    ) -> Self {
        let mut search = Search {
            library,
            open,
            packs: BTreeMap::new(),
            tried: Vec::new(),
            used: Vec::new(),
            is_later: false,
        };
        let generic = gpu.id().processor_info().and_then(|info| info.covered_by());
        let generic = generic.map(|info| info.name().to_owned());
        let mut states: Vec<String> =
            gpu.states().iter().map(|state| state.id().to_string()).collect();
        if states.is_empty() {
            states.push(gpu.name());
        }
        let (mut served, mut missing): (Vec<String>, Option<Vec<u64>>) = (Vec::new(), None);
        for state in states {
            let targets: Vec<&str> =
                [Some(&*state), generic.as_deref()].into_iter().flatten().collect();
            let left = search.missing(&targets);
            if left.is_empty() { served.push(state) } else { missing = Some(left) }
        }
        let tried = search.tried.iter().map(|path| (path.clone(), search.result(path))).collect();
        let is_nowhere = served.is_empty();
        let (missing, conditions) = match missing {
            Some(missing) if is_nowhere => (missing, Vec::new()),
            Some(_) => (Vec::new(), served),
            None => (Vec::new(), Vec::new()),
        };
        PackAnswer {
            gpu: gpu.name(),
            tried,
            used: search.used,
            wrappers: library.wrappers().len(),
            missing,
            conditions,
            is_later: search.is_later,
            need: Some(Need::of_kernel_packs()).filter(|need| gpu.lacks(need)),
            is_unsought: false,
            is_partial: false,
        }
    }

    /// Sets whether something that may hold packs was not read: then no answer is [`No`](Support::No). Default: all was read.
    #[must_use]
    pub fn with_unread(self, is_partial: bool) -> Self {
        PackAnswer { is_partial, ..self }
    }

    /// Returns the answer without the claim that packs are not there: only
    /// some places were looked at. Where code is missing, other packs may have it.
    #[must_use]
    pub fn with_unsought(mut self) -> Self {
        self.is_unsought = !self.missing.is_empty() && self.need.is_none();
        for (_, result) in self.tried.iter_mut().filter(|(_, result)| result == NOT_THERE) {
            *result = "not looked for".to_owned();
        }
        self
    }

    /// Returns the verdict: [`Unknown`](Support::Unknown) if packs that [nobody looked for](Self::with_unsought) may have the code.
    #[must_use]
    pub fn support(&self) -> Support {
        let is_unknown = self.is_unsought || self.is_partial && self.need.is_none();
        match (self.is_served(), is_unknown) {
            (true, _) => Support::Yes,
            (false, true) => Support::Unknown,
            (false, false) => Support::No,
        }
    }

    /// Returns the name of the GPU.
    #[must_use]
    pub fn gpu(&self) -> &str {
        &self.gpu
    }

    /// Returns whether all wrappers get code.
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.missing.is_empty() && self.need.is_none()
    }

    /// Returns all places where the loader looks, in its order, and what is there, in words.
    #[must_use]
    pub fn tried(&self) -> &[(P, String)] {
        &self.tried
    }

    /// Returns the number of wrappers.
    #[must_use]
    pub fn wrappers(&self) -> usize {
        self.wrappers
    }

    /// Returns the numbers of the wrappers without code.
    #[must_use]
    pub fn missing(&self) -> &[u64] {
        &self.missing
    }

    /// Returns the settings of features with which there is code, if not with all.
    #[must_use]
    pub fn conditions(&self) -> &[String] {
        &self.conditions
    }

    /// Returns whether loaders of the first releases find less: see [`Loader::First`].
    #[must_use]
    pub fn is_later(&self) -> bool {
        self.is_later
    }

    /// Returns the conclusion in words, with paths as `show` writes them: `has code for gfx1100 in foo_gfx1100.kpack`.
    #[must_use]
    pub fn words(&self, show: impl Fn(&P) -> String) -> String {
        let words = self.words_of_read(show);
        let is_part = self.support() == Support::Unknown && !self.is_unsought;
        if is_part { of_part(&words) } else { words }
    }

    fn words_of_read(&self, show: impl Fn(&P) -> String) -> String {
        let gpu = &self.gpu;
        let paths = few(self.used.iter().map(&show));
        if let Some(need) = &self.need {
            return format!("has no code for {gpu} that is found: needs {need}");
        }
        match self.missing.len() {
            1.. if self.is_unsought => {
                let places = few(self.tried.iter().map(|(path, _)| show(path)));
                format!(
                    "may have code for {gpu} in kernel packs that were not looked for; name them, too: {places}"
                )
            }
            0 if !self.conditions.is_empty() => {
                let states = few(&self.conditions);
                format!("has code for {gpu} in {paths}, if it is {states}")
            }
            0 => format!("has code for {gpu} in {paths}"),
            missing if missing == self.wrappers => {
                let places = few(self.tried.iter().map(|(path, _)| show(path)));
                format!("has no code for {gpu}: looked for {places}")
            }
            missing => {
                let all = self.wrappers;
                format!(
                    "{missing} of {all} wrappers have no code for {gpu}; the others have it in {paths}"
                )
            }
        }
    }
}
