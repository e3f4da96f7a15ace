//! Split libraries and kernel packs that belong together: members of packages, as they lie where these are installed.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use kpack::{Entry, Toc};

use crate::device::Device;
use crate::few::few;
use crate::packs::{PackAnswer, SplitLibrary};

/// The split libraries and kernel packs of a set of files, each with a name for messages.
#[derive(Debug)]
pub struct PackSet<L: SplitLibrary> {
    libraries: Vec<Library<L>>,
    packs: BTreeMap<L::Path, Pack<L::Path>>,
}

#[derive(Debug)]
struct Library<L> {
    name: String,
    library: Arc<L>,
    is_elsewhere: bool,
}

#[derive(Debug)]
struct Pack<P> {
    name: String,
    /// The path of the pack for the processor without features.
    plain: Option<P>,
    toc: Arc<Toc>,
}

impl<L: SplitLibrary> Default for PackSet<L> {
    fn default() -> Self {
        PackSet { libraries: Vec::new(), packs: BTreeMap::new() }
    }
}

impl<L: SplitLibrary> PackSet<L> {
    /// Adds a library. If its packs may lie elsewhere, and not only in the set, nothing is said of it.
    pub fn add_library(&mut self, name: &str, library: &Arc<L>, is_elsewhere: bool) {
        let (name, library) = (name.to_owned(), Arc::clone(library));
        self.libraries.push(Library { name, library, is_elsewhere });
    }

    /// Adds a pack by its path. `plain` is the path of the pack for the same processor without features, if this is for one with
    /// some ([`kpack::search::without_features`]).
    pub fn add_pack(&mut self, path: L::Path, plain: Option<L::Path>, name: &str, toc: &Arc<Toc>) {
        self.packs.insert(path, Pack { name: name.to_owned(), plain, toc: Arc::clone(toc) });
    }

    /// Returns whether a library of the set has code in a pack.
    #[must_use]
    pub fn has_library_of(&self, toc: &Toc) -> bool {
        let names: BTreeSet<&str> = toc.entries().iter().map(Entry::kernel_name).collect();
        self.libraries.iter().any(|one| names.contains(one.library.marker().kernel_name()))
    }

    fn own(&self) -> impl Iterator<Item = &Library<L>> {
        self.libraries.iter().filter(|one| !one.is_elsewhere)
    }

    /// Returns the answers about the libraries whose packs lie in the set, with their names.
    pub fn answers(&self, gpu: &Device) -> impl Iterator<Item = (&str, PackAnswer<L::Path>)> {
        self.own().map(move |one| {
            let mut open = |path: &L::Path| Some(Ok(Arc::clone(&self.packs.get(path)?.toc)));
            (&*one.name, PackAnswer::new(&*one.library, gpu, &mut open))
        })
    }

    /// Returns the libraries whose wrappers have code in packs of the set, with the number of these; and what is wrong with the
    /// set: code that no pack has, packs that no library is for, packs that hide others from old loaders.
    #[must_use]
    pub fn check(&self) -> (Vec<(&str, usize)>, Vec<String>) {
        let (mut sound, mut faults) = (Vec::new(), Vec::new());
        let packs = self.packs.iter().map(|(path, pack)| (path.clone(), &*pack.toc)).collect();
        for Library { name, library, .. } in self.own() {
            match library.lacks(&packs) {
                Some(text) => faults.push(format!("{name}: {text}")),
                None => sound.push((&**name, library.wrappers().len())),
            }
        }
        for Pack { name, toc, .. } in self.packs.values() {
            if toc.entries().is_empty() {
                faults.push(format!("{name}: the kernel pack is empty"));
            } else if !self.libraries.is_empty() && !self.has_library_of(toc) {
                let names: BTreeSet<&str> = toc.entries().iter().map(Entry::kernel_name).collect();
                faults.push(format!("{name}: no library here is for its code: {}", few(names)));
            }
        }
        for Pack { name, plain, .. } in self.packs.values() {
            let plain = plain.as_ref().and_then(|plain| self.packs.get(plain));
            faults.extend(plain.map(|plain| {
                format!(
                    "{name}: ROCm up to 7.14.0 stops at this pack and finds nothing of {}",
                    plain.name
                )
            }));
        }
        (sound, faults)
    }
}
