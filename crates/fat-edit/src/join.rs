//! Libraries that are joined: device code of HIP comes back from kernel packs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom, Write};

use ::kpack::{Entry, Marker, Tables};
use byte_parts::{Part, ReadSeek, Source};
use ccob::{Version, WriteOptions};
use fat_object::FileFormat;
use object_edit::{Input, Output};

use crate::edit::{EditOptions, NewImage};
use crate::error::{Error, ErrorKind, Problem};
use crate::moved_out::move_in;
use crate::no_way_back::NoWayBack;
use crate::plan::EditPlan;
use crate::recipe::{CompressedForm, MOST_OF_RECIPE, Recipe};
use crate::split::{COMPRESSED, RECIPE};

/// Code objects lie at pages, as clang lays them out.
const ALIGN: u64 = 4096;

/// Returns the compression of bundles that were not compressed before: version 2, which all runtimes read.
#[must_use]
pub fn new_compression() -> WriteOptions {
    WriteOptions::default().with_version(Version::V2)
}

/// A kernel pack that is open.
#[derive(Debug)]
pub struct PackInput<'p> {
    /// For messages.
    name: String,
    tables: &'p Tables,
    source: Source<'p>,
}

impl<'p> PackInput<'p> {
    /// Returns a pack with its tables and all its bytes. Messages call it by the name.
    pub fn new(name: impl Into<String>, tables: &'p Tables, source: Source<'p>) -> Self {
        PackInput { name: name.into(), tables, source }
    }
}

/// A code object in a pack: the pack, and the entry in its table.
type PackEntry = (usize, usize);

/// A split library on its way back, with the code objects that packs have for it.
#[derive(Debug)]
pub struct Join<'p> {
    name: String,
    wrappers: Vec<u64>,
    packs: Vec<PackInput<'p>>,
    /// By the number of the wrapper and the target.
    codes: BTreeMap<(u64, String), PackEntry>,
    max_decompressed: u64,
}

impl<'p> Join<'p> {
    /// Looks for the code objects of a library ([`moved_out`](crate::moved_out)) in packs. Where several have one, later packs
    /// count.
    #[must_use]
    pub fn new(marker: &Marker, wrappers: &[u64], packs: Vec<PackInput<'p>>) -> Self {
        let (name, wrappers) = (marker.kernel_name().to_owned(), wrappers.to_vec());
        let mut codes = BTreeMap::new();
        for (pack, open) in packs.iter().enumerate() {
            for (at, entry) in open.tables.toc().entries().iter().enumerate() {
                if let Some(index) = entry.index().filter(|_| entry.kernel_name() == name) {
                    codes.insert((index, entry.arch().to_owned()), (pack, at));
                }
            }
        }
        Join { name, wrappers, packs, codes, max_decompressed: ccob::MAX_UNCOMPRESSED }
    }

    /// Sets the most bytes of one code object, and of a bundle that is compressed, which are held at one time. Default: 2 GiB.
    #[must_use]
    pub fn with_max_decompressed(mut self, max: u64) -> Self {
        self.max_decompressed = max;
        self
    }

    /// Returns the numbers of the packs that code objects come from; none if there are no code objects.
    #[must_use]
    pub fn used(&self) -> BTreeSet<usize> {
        self.codes.values().map(|(pack, _)| *pack).collect()
    }

    /// Returns the compression of the bundles of the file which was split, by the notes of packs: version and codec, with the default
    /// level. `None` if they were not compressed.
    #[must_use]
    pub fn compression(&self) -> Option<WriteOptions> {
        let key = format!("{COMPRESSED}{}", self.name);
        let note = self.packs.iter().find_map(|pack| pack.tables.toc().note(&key))?;
        let form = CompressedForm::parse(note).filter(|form| form.method.codec().is_some());
        let options = |form: CompressedForm| {
            WriteOptions::default().with_version(form.version).with_method(form.method)
        };
        Some(form.map_or_else(new_compression, options))
    }

    /// Returns the way back to the file that was split, with the hash of that ([`EditPlan::write_hashed`]), for a library of this
    /// size without device code.
    #[must_use]
    pub fn way_back(&self, size: u64) -> Option<(Recipe, u64)> {
        let key = format!("{RECIPE}{}", self.name);
        let note = self.packs.iter().find_map(|pack| pack.tables.toc().note(&key))?;
        let (hash, frame) = note.split_first_chunk()?;
        let recipe_size = ::kpack::content_size(frame).filter(|size| *size <= MOST_OF_RECIPE)?;
        let recipe = Recipe::parse(&::kpack::decompress(frame, recipe_size).ok()?)?;
        (recipe.host_size() == size).then(|| (recipe, u64::from_le_bytes(*hash)))
    }

    /// Plans the file that was split. A reason, if packs lack a code object of it, or this build compresses bundles to another size.
    /// `spool` is an empty file for code objects.
    ///
    /// # Errors
    ///
    /// [`Damaged`](crate::ErrorKind::Damaged) packs, [`Refused`](crate::ErrorKind::Refused) if a code object or a bundle exceeds the
    /// limit of [`with_max_decompressed`](Self::with_max_decompressed), errors of reading packs, and of writing to the spool.
    pub fn plan_back<S>(
        &mut self,
        recipe: &Recipe,
        spool: S,
    ) -> Result<Result<EditPlan, NoWayBack>, Error>
    where
        S: Read + Write + Seek + Send + 'static,
    {
        let sizes = || recipe.bundle_sizes();
        sizes().try_for_each(|size| check_size("a bundle", size, self.max_decompressed))?;
        if sizes().count() > self.wrappers.len() {
            return Ok(Err(NoWayBack::Changed));
        }
        let mut spool = Spool::new(spool, self.max_decompressed);
        let mut places = BTreeMap::new();
        for (wrapper, target, size) in recipe.images() {
            let key = (wrapper, target.to_owned());
            let Some(place) = self.codes.get(&key) else { return Ok(Err(NoWayBack::Missing)) };
            let (start, found) = spool.add(&mut self.packs, *place)?;
            if found != size {
                return Ok(Err(NoWayBack::Missing));
            }
            places.insert(key, start);
        }
        // Each code object lies in one bundle, which bounds the work by the size of the code in packs.
        let most = spool.end.saturating_add(recipe.bundle_bytes());
        if sizes().fold(0, u64::saturating_add) > most {
            return Ok(Err(NoWayBack::Changed));
        }
        let place = |wrapper, target: &str| Some((0, *places.get(&(wrapper, target.to_owned()))?));
        let mut bundles = Vec::new();
        for (form, size, contents) in recipe.bundles(place) {
            let Some(contents) = contents else { return Ok(Err(NoWayBack::Missing)) };
            let plain = plain(&contents, &mut spool.file)?;
            match ccob::compress(&plain, &form.options()) {
                Ok(bytes) if bytes.len() as u64 == size => bundles.push((0, spool.append(&bytes)?)),
                _ => return Ok(Err(NoWayBack::Codec)),
            }
        }
        let plan = recipe.plan_with(place, bundles, vec![NewImage::new(spool.file)]);
        Ok(plan.ok_or(NoWayBack::Missing))
    }

    /// Plans the library with new bundles, compressed in this way or not. `spool` is an empty file for code objects.
    ///
    /// # Errors
    ///
    /// Errors of [`plan_back`](Self::plan_back) and of [`move_in`].
    pub fn plan_anew<R, S>(
        &mut self,
        mut input: R,
        spool: S,
        compression: Option<&WriteOptions>,
        options: &EditOptions,
    ) -> Result<EditPlan, Error>
    where
        R: Read + Seek,
        S: Read + Write + Seek + Send + 'static,
    {
        let mut spool = Spool::new(spool, self.max_decompressed);
        let host = host_id(&mut input).map_err(Problem::from)?;
        let (mut contents, mut offsets) = (Output::new(), Vec::new());
        // Wrappers with the same code objects share a bundle.
        let mut bundles: BTreeMap<Vec<(String, u64, u64)>, u64> = BTreeMap::new();
        for number in &self.wrappers {
            let mut entries = vec![(host.to_owned(), 0, 0)];
            let of_wrapper = self.codes.range((*number, String::new())..);
            let of_wrapper = of_wrapper.take_while(|((other, _), _)| other == number);
            if compression.is_some() {
                let sizes = of_wrapper.clone().map(|(_, place)| self.size(*place));
                let size = sizes.fold(0, u64::saturating_add);
                check_size("a bundle", size, self.max_decompressed)?;
            }
            for ((_, target), place) in of_wrapper {
                let (start, size) = spool.add(&mut self.packs, *place)?;
                let pack = self.packs.get(place.0).map(|open| open.tables.toc());
                let entry = pack.and_then(|toc| toc.entries().get(place.1));
                let id = entry.and_then(Entry::entry_id);
                let id = id.unwrap_or_else(|| format!("hipv4-amdgcn-amd-amdhsa--{target}"));
                entries.push((id, start, size));
            }
            if let Some(offset) = bundles.get(&entries) {
                offsets.push(*offset);
                continue;
            }
            let bundle = bundle(&entries)?;
            let next = contents.size().next_multiple_of(ALIGN);
            contents.pad_to(next);
            if let Some(compression) = compression {
                contents.push_vec(compressed(&bundle, &mut spool.file, compression)?);
            } else {
                contents.append(&bundle);
            }
            offsets.push(next);
            bundles.insert(entries, next);
        }
        move_in(input, contents, &offsets, vec![NewImage::new(spool.file)], options)
    }

    /// Returns the size that a table gives for a code object.
    fn size(&self, (pack, at): PackEntry) -> u64 {
        let entries = self.packs.get(pack).map(|open| open.tables.toc().entries());
        entries.and_then(|entries| entries.get(at)).map_or(0, Entry::original_size)
    }
}

/// Refuses what would be larger in memory than the limit.
fn check_size(what: &str, size: u64, max: u64) -> Result<(), Problem> {
    if size <= max {
        return Ok(());
    }
    let text = format!("{what} of {size} bytes would exceed the limit of {max} bytes");
    Err(Problem::new(ErrorKind::Refused, text))
}

/// Code objects in a temporary file, one after the other.
struct Spool<S> {
    file: S,
    end: u64,
    starts: BTreeMap<PackEntry, (u64, u64)>,
    /// The largest code object that is read.
    max: u64,
}

impl<S: Write + Seek> Spool<S> {
    fn new(file: S, max: u64) -> Self {
        Spool { file, end: 0, starts: BTreeMap::new(), max }
    }

    /// Adds a code object, if it is not there; returns its start and its size.
    fn add(
        &mut self,
        packs: &mut [PackInput<'_>],
        (pack, at): PackEntry,
    ) -> Result<(u64, u64), Problem> {
        let open = packs.get_mut(pack).ok_or_else(Problem::input_changed)?;
        let entries = open.tables.toc().entries();
        let entry = entries.get(at).ok_or_else(Problem::input_changed)?;
        // Several entries may share one.
        let first = entries.iter().position(|other| other.ordinal() == entry.ordinal());
        let place = (pack, first.unwrap_or(at));
        if let Some(known) = self.starts.get(&place) {
            return Ok(*known);
        }
        let what = format!("{}: {} for {}: code", open.name, entry.key(), entry.arch());
        check_size(&what, entry.original_size(), self.max)?;
        let code = open.tables.code(&mut open.source, entry).map_err(|error| {
            let name = format!("{}: {} for {}", open.name, entry.key(), entry.arch());
            Problem::from(io::Error::new(error.kind(), format!("{name}: {error}")))
        })?;
        let code = code.map_err(|error| Problem::of_pack(format!("{}: {error}", open.name)))?;
        let found = (self.append(&code)?, code.len() as u64);
        self.starts.insert(place, found);
        Ok(found)
    }

    /// Adds bytes; returns their start.
    fn append(&mut self, bytes: &[u8]) -> Result<u64, Problem> {
        // It may have been read in between.
        let to_end = self.file.seek(SeekFrom::Start(self.end));
        to_end.and_then(|_| self.file.write_all(bytes)).map_err(Problem::write)?;
        let start = self.end;
        self.end += bytes.len() as u64;
        Ok(start)
    }
}

/// Returns a bundle of code objects in the spool: by entry ID, with start and size.
fn bundle(entries: &[(String, u64, u64)]) -> Result<Output, Problem> {
    let sizes = entries.iter().map(|(id, _, size)| (&**id, *size));
    let layout = bundle_format::layout(sizes, ALIGN);
    let layout = layout.map_err(Problem::of_pack)?;
    let mut bundle = Output::new();
    for part in layout.parts().iter() {
        match part {
            Part::Bytes(bytes) => bundle.push_bytes(bytes),
            Part::Zeros(count) => bundle.push_zeros(count),
            Part::Input(&at, range) => {
                let start = entries.get(at).map_or(0, |(_, start, _)| *start);
                bundle.push_input(Input::New(0), start + range.start..start + range.end);
            }
        }
    }
    Ok(bundle)
}

/// Returns the compressed form of a bundle.
fn compressed(
    bundle: &Output,
    spool: &mut dyn ReadSeek,
    options: &WriteOptions,
) -> Result<Vec<u8>, Problem> {
    let plain = plain(bundle, spool)?;
    let mut options = options.clone();
    if u32::try_from(plain.len()).is_err() {
        // Others cannot hold it.
        options = options.with_version(Version::V3);
    }
    ccob::compress(&plain, &options).map_err(Problem::of_pack)
}

/// Returns the bytes of a bundle.
fn plain(bundle: &Output, spool: &mut dyn ReadSeek) -> Result<Vec<u8>, Problem> {
    let mut source = Source::new(spool)?;
    let mut plain = Vec::new();
    for part in bundle.iter() {
        match part {
            Part::Bytes(bytes) => plain.extend_from_slice(bytes),
            Part::Zeros(count) => {
                let count = usize::try_from(count).map_err(|_| io::ErrorKind::OutOfMemory);
                plain.resize(plain.len() + count.map_err(io::Error::from)?, 0);
            }
            Part::Input(_, range) => source.append_range(&range, &mut plain)?,
        }
    }
    Ok(plain)
}

/// Returns the entry ID of the host in a bundle for this file.
fn host_id(input: &mut dyn ReadSeek) -> io::Result<&'static str> {
    let mut source = Source::new(input)?;
    let head = source.peek(&(0..source.len()), FileFormat::SNIFF_LEN)?;
    Ok(match FileFormat::sniff(&head) {
        FileFormat::Elf { machine: 183 } => "host-aarch64-unknown-linux-gnu-",
        FileFormat::Elf { .. } => "host-x86_64-unknown-linux-gnu-",
        _ => "host-x86_64-pc-windows-msvc-",
    })
}
