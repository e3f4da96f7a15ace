//! Loose images that are deleted: files of directories, and members of packages.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::PathBuf;

use device_select::{Database, LooseImage, LoosePlace, PlaceVerdict, Rule, Tally, few};
use gpu_packages::{Member, PackageKind, checksum_names};

use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_inputs::package::Package;
use tool_kit::budget::{Account, Budget};
use tool_kit::failure::Failure;
use tool_kit::opened::MaxInput;
use tool_kit::parallel::{Share, Shares};
use tool_kit::progress::Progress;
use tool_kit::stamp::Stamp;
use tool_kit::store::{Keep, Store};
use tool_kit::{input, parallel};

/// The most bytes of a list of checksums that are read.
const MOST_OF_LIST: u64 = 16 << 20;

/// The deletion of files that are for other GPUs as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Databases<'a> {
    /// The rule that says what is kept.
    pub rule: &'a Rule,
    /// Places may have nothing for the targets of the rule.
    pub allow_missing: bool,
    /// Places with images for other GPUs of the same vendor may, too.
    pub allow_other_gpus: bool,
    /// Places may lose all their files.
    pub allow_empty: bool,
}

/// Fate of a loose image of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LooseFate {
    /// It is deleted, as it was when it was read.
    Goes(Stamp),
    /// Nothing changes in its place.
    Stays,
    /// It is compressed and keeps all its code. It cannot be edited.
    Untouched,
    /// A note about its place says why it is kept.
    Kept,
}

/// A place with nothing for the targets of the rule.
#[derive(Debug)]
pub struct LeftPlace {
    pub(crate) name: String,
    pub(crate) images: usize,
    pub(crate) tally: Tally,
}

/// The loose images of directories, with the words about them.
#[derive(Debug, Default)]
pub(crate) struct LooseFiles {
    fates: HashMap<PathBuf, LooseFate>,
    pub(crate) left: Vec<LeftPlace>,
    pub(crate) faults: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// A loose image of a directory.
struct Found<'i> {
    file: &'i Input,
    read: Box<ReadImage>,
    /// The list and the name of the distribution that has it, or the directory that the user named.
    place: (PathBuf, String),
}

/// The names of the loose images among the members of a package, and whether each is left out.
pub(crate) type LooseMembers = HashMap<Vec<u8>, bool>;

/// A loose image, read from a file.
struct ReadImage {
    image: LooseImage,
    is_compressed: bool,
    stamp: Stamp,
}

impl LooseFiles {
    /// Returns what becomes of a file; `None` for one that is not a loose image.
    pub(crate) fn fate(&self, file: &Input) -> Option<LooseFate> {
        self.fates.get(file.path()).copied()
    }

    /// Returns the note about lists of checksums that have files which are deleted.
    pub(crate) fn note(&self, inputs: &Inputs, max: MaxInput) -> Option<String> {
        let going = self.fates.iter().filter(|(_, fate)| matches!(fate, LooseFate::Goes(_)));
        let going: HashSet<_> = going.map(|(path, _)| &**path).collect();
        let directories: HashSet<_> = going.iter().filter_map(|path| path.parent()).collect();
        let is_list = |file: &&Input| {
            let parent = file.path().parent().filter(|parent| directories.contains(parent))?;
            let goes = |name: &[u8]| going.contains(&*parent.join(input::path(name)));
            let opened = file.open(max).ok()?;
            let _ = checksum_names(opened.head())?;
            let mut text = Vec::new();
            opened.reader().take(MOST_OF_LIST).read_to_end(&mut text).ok()?;
            checksum_names(&text)?.into_iter().any(goes).then_some(())
        };
        let lists: Vec<_> = inputs.files().iter().filter(|file| is_list(file).is_some()).collect();
        let names = few(lists.iter().map(|file| file.name()));
        let text =
            "programs may download files that are deleted again, as lists have their checksums";
        (!lists.is_empty()).then(|| format!("{text}: {names}"))
    }
}

impl Databases<'_> {
    /// Returns whether files of a place go.
    ///
    /// # Errors
    ///
    /// All would go, and that is not allowed.
    pub(crate) fn thins(&self, place: &LoosePlace) -> Result<bool, String> {
        let (images, has) = (place.images(), place.has());
        let allow_missing = self.allow_missing || self.allow_other_gpus && place.is_of_vendor();
        match place.verdict(self.rule, allow_missing, self.allow_empty) {
            PlaceVerdict::Emptied => Err(format!(
                "all {images} loose images would be deleted (has: {has}); --allow-empty permits this"
            )),
            verdict => Ok(verdict == PlaceVerdict::Thinned),
        }
    }

    /// Returns the kernel database that the path of a file leads to, if the file may go. In an environment, only those of the
    /// vendors of the targets do.
    pub(crate) fn database(&self, path: &str) -> Option<Database> {
        let is_meant =
            |it: &Database| !self.allow_other_gpus || self.rule.is_of_vendor(&it.to_target());
        self.rule.database(path).filter(is_meant)
    }

    /// Returns whether an image goes from a place that is thinned, as [`database`](Self::database) does.
    pub(crate) fn drops(&self, image: &LooseImage) -> bool {
        !image.is_needed() && (!self.allow_other_gpus || image.is_of_vendor())
    }

    /// Returns the loose image that a file is. The edit complains of files that cannot be read.
    ///
    /// # Errors
    ///
    /// The share may be too small: this counts for nothing. A compressed file is read alone, as packages are.
    fn image(
        &self,
        file: &Input,
        limits: &Limits,
        share: Share,
    ) -> Result<Option<Box<ReadImage>>, Option<Box<ReadImage>>> {
        let Ok(opened) = file.open(limits.max_input) else { return Ok(None) };
        let stamp = opened.stamp();
        let read = |image, is_compressed| Box::new(ReadImage { image, is_compressed, stamp });
        if LooseImage::may_start(opened.head()) {
            let walk = limits.for_file(&limits.options(), opened.metadata().len());
            let walk = walk.with_max_held(share.bytes);
            let image = self.rule.loose(opened.reader(), &walk).ok().flatten();
            let image = image.map(|image| read(image, false));
            return if image.is_none() && share.bytes.is_some() { Err(None) } else { Ok(image) };
        }
        let package = Package::of(&opened).ok().flatten().filter(Package::is_compressed);
        match package {
            Some(_) if share.bytes.is_some() => Err(None),
            Some(package) => {
                let image = self.members(&package, limits).remove(&Vec::new()).flatten();
                Ok(image.map(|image| read(image, true)))
            }
            None => Ok(None),
        }
    }

    /// Returns the loose images among the members of a package, by their names. The only member of a compressed file has the
    /// name of that.
    fn members(&self, package: &Package, limits: &Limits) -> HashMap<Vec<u8>, Option<LooseImage>> {
        let look = |member: &Member, contents: &mut dyn Read, held: &mut Account<'_>| {
            let is_inner = member.package() == PackageKind::Compressed;
            let mut names = member.path().names().collect::<Vec<_>>();
            names.pop_if(|_| is_inner);
            let name = match names[..] {
                [] => Vec::new(),
                [name] => name.to_vec(),
                _ => return Ok(None),
            };
            let mut head = Vec::new();
            contents.take(LooseImage::HEAD as u64).read_to_end(&mut head)?;
            if !LooseImage::may_start(&head) {
                return Ok(Some((name, None)));
            }
            let store = Store::read(&head, contents, Keep::All, held)?;
            let walk = limits.options().with_max_decompressed(held.left());
            let image = self.rule.loose(store.reader(), &walk)?;
            store.reuse(held)?;
            Ok(Some((name, image)))
        };
        let mut found: HashMap<Vec<u8>, Option<LooseImage>> = HashMap::new();
        // The edit complains of members that cannot be read.
        let mut take = |result: Result<(Vec<u8>, Option<LooseImage>), _>| {
            if let Ok((name, image)) = result {
                // All members of one name stay if there are several.
                found.entry(name).and_modify(|image| *image = None).or_insert(image);
            }
            ControlFlow::Continue(())
        };
        let (budget, threads) = (Budget::default(), limits.threads.count());
        package.each((limits, &budget), false, threads, &look, (&|_| true, &mut take));
        found
    }

    /// Finds the loose images of directories, and decides about each place. `names` tells the distributions that have a file.
    pub(crate) fn find(
        &self,
        inputs: &Inputs,
        (limits, at_once, shares): (&Limits, NonZeroUsize, &Shares),
        names: &dyn Fn(&Input) -> BTreeSet<(PathBuf, String)>,
    ) -> io::Result<LooseFiles> {
        let mut all = LooseFiles::default();
        let files: Vec<&Input> = inputs.files().iter().filter(|file| !file.is_named()).collect();
        let mut found = Vec::new();
        let _progress = Progress::start("looking for loose images");
        let look = |file: &&Input| shares.run(|share| self.image(file, limits, share));
        parallel::in_order(at_once, &files, look, |file, read| {
            let directory = || (PathBuf::new(), inputs.directory_of(file).to_owned());
            found.extend(read.map(|read| Found {
                file,
                read,
                place: names(file).pop_first().unwrap_or_else(directory),
            }));
            io::Result::Ok(())
        })?;
        let mut places: BTreeMap<&(PathBuf, String), LoosePlace> = BTreeMap::new();
        for Found { read, place, .. } in &found {
            places.entry(place).or_default().add(&read.image);
        }
        let mut thinned = HashSet::new();
        for (at, place) in &places {
            let name = &at.1;
            match self.thins(place) {
                Ok(true) => {
                    thinned.insert(*at);
                    let also = Some(place.also_keeps()).filter(|also| !also.is_empty());
                    all.notes.extend(also.map(|also| {
                        format!("{name}: also keeps {also}, which the GPUs could load (--exact does not)")
                    }));
                }
                Ok(false) => {
                    let (images, tally) = (place.images(), *place.tally());
                    all.left.push(LeftPlace { name: name.clone(), images, tally });
                }
                Err(fault) => all.faults.push(format!("{name}: {fault}")),
            }
        }
        for Found { file, read, place } in &found {
            let ReadImage { image, is_compressed, stamp } = &**read;
            let fate = match image {
                _ if !thinned.contains(place) => LooseFate::Stays,
                image if self.drops(image) => LooseFate::Goes(*stamp),
                image if *is_compressed && image.stays_whole() => LooseFate::Untouched,
                _ => LooseFate::Kept,
            };
            all.fates.insert(file.path().to_owned(), fate);
        }
        Ok(all)
    }

    /// Returns the names of the loose images among the members of a package, and whether each is left out.
    pub(crate) fn loose_members(
        &self,
        package: &Package,
        limits: &Limits,
    ) -> Result<LooseMembers, Failure> {
        if package.is_compressed() {
            return Ok(LooseMembers::default());
        }
        let found = self.members(package, limits);
        let mut place = LoosePlace::default();
        found.values().flatten().for_each(|image| place.add(image));
        let is_thinned = place.images() > 0 && self.thins(&place).map_err(Failure::refused)?;
        let all = found.into_iter().filter_map(|(name, image)| Some((name, image?)));
        Ok(all.map(|(name, image)| (name, is_thinned && self.drops(&image))).collect())
    }
}
