//! Libraries that are split: device code of HIP goes to kernel packs, one for each target.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread;

use ::kpack::{Marker, NewKpack, Scheme, search};
use byte_parts::{Bounds, Part, Parts, Source, in_order};
use fat_object::{Finding, Image, Summary, Visitor};

use crate::edit::EditOptions;
use crate::error::{Error, Problem};
use crate::hash::hash;
use crate::no_way_back::NoWayBack;
use crate::plan::EditPlan;
use crate::recipe::{CompressedForm, MOST_OF_RECIPE, Recipe};
use crate::survey::EditableFile;

/// The key of a pack's table under which a split library's way back is kept: after it, the name of the library.
pub(crate) const RECIPE: &str = "offload:";

/// The key under which it is kept that a library had compressed bundles: after it, the name of the library.
pub(crate) const COMPRESSED: &str = "offload-compressed:";

/// No header of a compressed bundle is longer.
const HEADER_LEN: u64 = 64;

/// The level of zstd for the way back, which is small.
const RECIPE_LEVEL: i32 = 9;

/// A library that is split: the file without its device code, and what kernel packs take of it.
pub struct Split {
    name: String,
    plan: EditPlan,
    wrappers: usize,
    /// By their indices.
    images: BTreeMap<usize, Packed>,
    /// The hash of the file, and the compressed way back to it.
    recipe: Result<Vec<u8>, NoWayBack>,
    /// The form of its compressed bundles, if it has some.
    compressed: Option<CompressedForm>,
}

impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split")
            .field("name", &self.name)
            .field("plan", &self.plan)
            .field("wrappers", &self.wrappers)
            .field("images", &self.images)
            .finish_non_exhaustive()
    }
}

/// A code object for packs.
#[derive(Debug)]
struct Packed {
    target: String,
    entry_id: Option<String>,
    /// The wrappers that lead to its bundle.
    wrappers: Vec<u64>,
}

impl EditableFile {
    /// Plans a library without its device code for HIP, which goes to kernel packs: a [`PackGroup`] has the marker for it. Code
    /// objects are numbered by wrappers, as ROCm's loader looks for them.
    ///
    /// # Errors
    ///
    /// Errors of [`hip_wrappers`](Self::hip_wrappers), [`packable`](Self::packable) and [`move_out`](Self::move_out).
    pub fn split<R: Read + Seek>(
        &self,
        mut input: R,
        marker: &Marker,
        options: &EditOptions,
    ) -> Result<Split, Error> {
        let wrappers = self.hip_wrappers(&mut input)?;
        let mut containers = wrappers.iter().filter_map(|index| self.containers.get(*index));
        let compressed = match containers.find(|one| one.compression.is_some()) {
            Some(one) => {
                let mut source = Source::new(&mut input).map_err(Problem::from)?;
                let start = one.location.offset();
                let place = start..start + one.size.min(HEADER_LEN);
                let header = source.read_range(&place).map_err(Problem::from)?;
                CompressedForm::of_header(&header, one.size)
            }
            None => None,
        };
        let mut images: BTreeMap<usize, Packed> = BTreeMap::new();
        for (number, container) in (0..).zip(&wrappers) {
            for image in self.packable(*container)? {
                let packed = images.entry(image.index()).or_insert_with(|| Packed {
                    target: image.target().id().to_owned(),
                    entry_id: image.id().map(str::to_owned),
                    wrappers: Vec::new(),
                });
                packed.wrappers.push(number);
            }
        }
        let marker_bytes = marker.to_vec().map_err(Problem::of_pack)?;
        let plan = self.move_out(&mut input, &marker_bytes, options)?;
        let recipe = Recipe::of(self, &plan, &mut input)?.map(|recipe| recipe.to_vec());
        let recipe = match recipe {
            Ok(recipe) if recipe.len() as u64 > MOST_OF_RECIPE => Err(NoWayBack::TooLarge),
            Ok(recipe) => {
                // The file that comes out must be this one.
                input.seek(SeekFrom::Start(0)).map_err(Problem::from)?;
                let mut bytes = hash(&mut input).map_err(Problem::from)?.to_le_bytes().to_vec();
                let recipe = ::kpack::compress(&recipe, RECIPE_LEVEL);
                bytes.extend(recipe.map_err(Problem::of_pack)?);
                Ok(bytes)
            }
            Err(reason) => Err(reason),
        };
        let name = marker.kernel_name().to_owned();
        Ok(Split { name, plan, wrappers: wrappers.len(), images, recipe, compressed })
    }
}

impl Split {
    /// Returns the name of the library in packs.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the plan of the library without device code.
    #[must_use]
    pub fn plan(&self) -> &EditPlan {
        &self.plan
    }

    /// Returns the number of its wrappers.
    #[must_use]
    pub fn wrappers(&self) -> usize {
        self.wrappers
    }

    /// Returns the targets of its code objects, each once for each of these.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.images.values().map(|image| &*image.target)
    }

    /// Returns why packs do not note how it was laid out; `None` if they do, and [`Join`](crate::Join) makes the same file again.
    #[must_use]
    pub fn no_way_back(&self) -> Option<NoWayBack> {
        self.recipe.as_ref().err().copied()
    }
}

/// The kernel packs of libraries that are split together: one for each target, `GROUP_TARGET.kpack`.
///
/// ```
/// use fat_edit::PackGroup;
/// use kpack::Scheme;
///
/// let group = PackGroup::new("blas", ".kpack", Scheme::Zstd);
/// let marker = group.marker("lib/libfoo.so");
/// assert_eq!(marker.search_paths(), ["../.kpack/blas_@GFXARCH@.kpack"]);
/// ```
#[derive(Debug)]
pub struct PackGroup {
    name: String,
    directory: String,
    scheme: Scheme,
    /// By target, with the sizes of code objects as they are stored.
    packs: BTreeMap<String, (NewKpack, Vec<u64>)>,
}

/// A pack of a group, laid out.
#[derive(Debug)]
#[non_exhaustive]
pub struct GroupPack {
    /// The target of its code objects.
    pub target: String,
    /// The name of its file.
    pub file_name: String,
    /// Its parts. Input 0 has all code objects as they are stored, in the order in which they were added.
    pub parts: Parts<usize>,
    /// The number of code objects.
    pub images: u64,
}

impl PackGroup {
    /// Starts a group of packs in this directory, a path with `/` that starts where the names of libraries do.
    #[must_use]
    pub fn new(name: &str, directory: &str, scheme: Scheme) -> Self {
        let (name, directory) = (name.to_owned(), directory.to_owned());
        PackGroup { name, directory, scheme, packs: BTreeMap::new() }
    }

    /// Returns the marker for a library of this name, a path with `/`, which leads to the packs.
    #[must_use]
    pub fn marker(&self, library: &str) -> Marker {
        let up = "../".repeat(library.matches('/').count());
        let file = self.file_name(search::PLACEHOLDER);
        Marker::new(library, [format!("{up}{}/{file}", self.directory)])
    }

    fn file_name(&self, target: &str) -> String {
        format!("{}_{target}.kpack", self.name)
    }

    /// Adds the code objects of a library to the packs of their targets, compressed by this level of zstd
    /// ([`kpack::compress`](::kpack::compress)) and with several threads. `walk` walks through the file that was surveyed, without
    /// [entering images](fat_object::Options::with_enter_images). `store` gets the target of each code object, and its bytes as its
    /// pack will have them: one file for each target takes them all, one after the other.
    ///
    /// # Errors
    ///
    /// Errors of `walk` and `store`, and damage that the walk finds.
    pub fn pack(
        &mut self,
        library: &Split,
        (level, threads): (i32, NonZeroUsize),
        walk: impl FnOnce(&mut dyn Visitor) -> io::Result<Summary> + Send,
        store: &mut dyn FnMut(&str, &[u8]) -> io::Result<()>,
    ) -> Result<(), Error> {
        let scheme = self.scheme;
        let (sender, receiver) = mpsc::sync_channel::<(usize, Vec<u8>)>(0);
        let packed: Result<(), Problem> = thread::scope(|scope| {
            let walk = scope.spawn(|| {
                let mut sending = Sending { library, sender, finding: None };
                match (walk(&mut sending), sending.finding) {
                    (Err(error), _) => Err(Problem::from(error)),
                    (_, Some(finding)) => Err(Problem::of_pack(finding)),
                    (Ok(_), None) => Ok(()),
                }
            });
            let jobs = receiver.into_iter().map(|(index, code)| {
                let size = code.len() as u64;
                ((index, code), size)
            });
            let compress = || {
                move |(index, code): (usize, Vec<u8>)| {
                    let size = code.len() as u64;
                    let stored = match scheme {
                        Scheme::Plain => Ok(code),
                        Scheme::Zstd => ::kpack::compress(&code, level),
                    };
                    (index, size, stored)
                }
            };
            let bounds = Bounds::new(threads).with_jobs(threads.get());
            for (index, size, stored) in in_order(scope, bounds, jobs, compress) {
                let stored = stored.map_err(Problem::of_pack)?;
                if let Some(target) = self.add(library, index, size, stored.len() as u64) {
                    store(target, &stored).map_err(Problem::write)?;
                }
            }
            let ended = |_| Err(Problem::from(io::Error::other("a thread ended early")));
            walk.join().unwrap_or_else(ended)
        });
        Ok(packed?)
    }

    /// Adds a code object of a library, once for each wrapper that leads to its bundle: its index, its size, and the
    /// size of its bytes as they are stored. Returns the target of the pack for it.
    fn add<'s>(
        &mut self,
        library: &'s Split,
        image: usize,
        size: u64,
        stored: u64,
    ) -> Option<&'s str> {
        let Packed { target, entry_id, wrappers } = library.images.get(&image)?;
        let new = || (NewKpack::new(&*self.name, &**target, self.scheme), Vec::new());
        let (pack, sizes) = self.packs.entry(target.clone()).or_insert_with(new);
        let mut first = None;
        for wrapper in wrappers {
            match first {
                None => first = Some(pack.add(&library.name, *wrapper, target, size)),
                Some(ordinal) => pack.add_again(&library.name, *wrapper, target, size, ordinal),
            }
            if let Some(id) = entry_id {
                pack.set_entry_id(id);
            }
        }
        sizes.push(stored);
        Some(target)
    }

    /// Lays out the packs, in the order of their targets. They note the way back to these libraries, and how the bundles of them
    /// were compressed.
    ///
    /// # Errors
    ///
    /// Errors of [`NewKpack::layout`].
    pub fn layout<'s>(
        mut self,
        libraries: impl IntoIterator<Item = &'s Split>,
    ) -> Result<Vec<GroupPack>, ::kpack::Error> {
        for library in libraries {
            let Split { name, recipe, compressed, .. } = library;
            for (pack, _) in self.packs.values_mut() {
                if let Ok(recipe) = recipe {
                    pack.note(&format!("{RECIPE}{name}"), recipe);
                }
                if let Some(form) = compressed {
                    pack.note(&format!("{COMPRESSED}{name}"), &form.to_bytes());
                }
            }
        }
        let pack = |(target, (pack, sizes)): (&String, &(NewKpack, Vec<u64>))| {
            let starts: Vec<u64> = sizes
                .iter()
                .scan(0_u64, |end, size| Some(std::mem::replace(end, *end + size)))
                .collect();
            let mut parts = Parts::new();
            for part in pack.layout(sizes)?.iter() {
                match part {
                    Part::Bytes(bytes) => parts.push_bytes(bytes),
                    Part::Zeros(count) => parts.push_zeros(count),
                    Part::Input(n, range) => {
                        let at = starts.get(*n).copied().unwrap_or(0);
                        parts.push_input(0, at + range.start..at + range.end);
                    }
                }
            }
            let (target, file_name) = (target.clone(), self.file_name(target));
            Ok(GroupPack { target, file_name, parts, images: pack.len() })
        };
        self.packs.iter().map(pack).collect()
    }
}

/// Sends code objects to who compresses them.
struct Sending<'l> {
    library: &'l Split,
    sender: mpsc::SyncSender<(usize, Vec<u8>)>,
    finding: Option<String>,
}

impl Visitor for Sending<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if !self.library.images.contains_key(&image.index()) {
            return Ok(());
        }
        let mut code = Vec::new();
        // The size is what the file says: there may be less.
        let size = usize::try_from(image.size()).map_err(|_| io::ErrorKind::OutOfMemory)?;
        code.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        image.pieces(&mut |piece| {
            code.extend_from_slice(piece);
            Ok(())
        })?;
        // Nobody receives it after a failure, which is told there.
        self.sender.send((image.index(), code)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.finding.get_or_insert_with(|| finding.to_string());
        Ok(())
    }
}
