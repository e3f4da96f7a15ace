//! From an archive of bundles to one archive for each target.

use std::collections::HashMap;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;

use bundle_format::{EntryId, Request};
use byte_parts::Part;
use byte_parts::ReadSeek;
use fat_object::{FileFormat, Options};

use crate::copy::ArchiveCopy;
use crate::device_archive::{DeviceArchive, Planned};
use crate::entries::{Each, Entry, Hashes, entries_of, entries_with_threads};
use crate::error::{Error, ErrorKind};
use crate::fingerprint::{Fingerprint, fingerprint_of};
use crate::layout::LayoutBuilder;
use crate::name::device_member_name;
use crate::symbols::Symbols;

/// Something odd in an archive, which does not keep it from being unbundled.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Warning(String);

/// Device archives, laid out and ready to be written.
///
/// Planning reads the input once, for names, sizes and symbols; writing reads it a second time and copies. Neither
/// holds more than the largest entry, or the largest compressed bundle, and the indexes of the archives.
#[derive(Debug)]
pub struct Unbundling {
    options: Options,
    archives: Vec<DeviceArchive>,
    planned: Vec<Planned>,
    warnings: Vec<Warning>,
    allow_missing: bool,
}

impl Unbundling {
    /// Plans the archive for each target.
    ///
    /// An entry becomes a member for every target that it is compatible with ([`Request::verdict`], strictly), in
    /// the order of the file, with LLVM's name for it: `<stem>-<ID><stem><extension>`.
    ///
    /// # Errors
    ///
    /// Errors of [`entries`](crate::entries()); for a [member](Error::member), an entry that is a malformed object
    /// file, a host object that cannot be restored, or a name that an archive cannot have.
    pub fn plan<R: Read + Seek>(
        mut input: R,
        targets: impl IntoIterator<Item = Request>,
        options: &Options,
        mut open_thin: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
    ) -> Result<Self, Error> {
        Self::plan_by(targets, options, |each| {
            entries_of(&mut input, options, Hashes::Beside, &mut open_thin, each)
        })
    }

    /// Plans as [`plan`](Self::plan) does; compressed bundles are decompressed by this many threads at the same
    /// time, one for each core if there is no number. See [`walk_with_threads`](fat_object::walk_with_threads) for
    /// the memory it takes.
    ///
    /// # Errors
    ///
    /// Errors of [`plan`](Self::plan).
    pub fn plan_with_threads<R: ReadSeek + Clone + Send>(
        input: &R,
        threads: Option<NonZeroUsize>,
        targets: impl IntoIterator<Item = Request>,
        options: &Options,
        mut open_thin: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
    ) -> Result<Self, Error> {
        Self::plan_by(targets, options, |each| {
            entries_with_threads(input, threads, options, Hashes::Beside, &mut open_thin, each)
        })
    }

    fn plan_by(
        targets: impl IntoIterator<Item = Request>,
        options: &Options,
        entries: impl FnOnce(Each<'_>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut plan = Plan {
            matcher: Matcher::new(targets.into_iter().collect()),
            archives: Vec::new(),
            planned: Vec::new(),
            warnings: Vec::new(),
            data: Vec::new(),
        };
        plan.archives.resize_with(plan.matcher.targets.len(), Default::default);
        entries(&mut |entry| plan.entry(entry))?;
        let mut archives = Vec::new();
        for (target, (names, builder)) in plan.matcher.targets.into_iter().zip(plan.archives) {
            archives.push(DeviceArchive { target, names, layout: builder.finish()? });
        }
        let (planned, warnings) = (plan.planned, plan.warnings);
        let options = options.clone();
        Ok(Unbundling { options, archives, planned, warnings, allow_missing: false })
    }

    /// Returns the archives, in the order of the targets.
    #[must_use]
    pub fn archives(&self) -> &[DeviceArchive] {
        &self.archives
    }

    /// Returns the targets that the input has no code for. Writing is an error if there are any, unless
    /// [`with_allow_missing`](Self::with_allow_missing) says otherwise.
    pub fn missing(&self) -> impl Iterator<Item = &Request> {
        self.archives.iter().filter(|archive| archive.is_empty()).map(DeviceArchive::target)
    }

    /// Allows targets that the input has no code for: each gets an archive without members, as LLVM's
    /// `--allow-missing-bundles` makes it.
    ///
    /// ```
    /// use std::io::Cursor;
    ///
    /// use bundle_format::{EntryId, Request};
    /// use hda_archive::{Error, Options, Unbundling, no_thin_members};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut library = Cursor::new(b"!<arch>\n");
    /// let target = Request::new(&EntryId::parse("hip-amdgcn-amd-amdhsa--gfx90a")?);
    /// let plan = Unbundling::plan(&mut library, [target], &Options::default(), no_thin_members)?;
    /// let mut archive = Vec::new();
    /// let error = plan.write(&mut library, [&mut archive], no_thin_members).unwrap_err();
    /// assert_eq!(error.to_string(), "no code for hip-amdgcn-amd-amdhsa--gfx90a");
    /// plan.with_allow_missing(true).write(&mut library, [&mut archive], no_thin_members)?;
    /// assert_eq!(archive, b"!<arch>\n");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_allow_missing(mut self, allow: bool) -> Self {
        self.allow_missing = allow;
        self
    }

    /// Returns the warnings about the input.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Returns a way to write each archive by itself, in the order of the targets: at any time, on any thread.
    /// There is one when all entries lie in the input as they are, not compressed, and no host object has to be
    /// restored.
    #[must_use]
    pub fn copies(&self) -> Option<Vec<ArchiveCopy<'_>>> {
        if self.planned.iter().any(|planned| planned.offset.is_none()) {
            return None;
        }
        let copies = self.archives.iter().enumerate().map(|(index, archive)| {
            ArchiveCopy::new(index, archive, &self.planned, self.allow_missing)
        });
        Some(copies.collect())
    }

    /// Writes all archives at once; `writers` has one for each, in the order of the targets.
    ///
    /// The input is walked a second time. [`copies`](Self::copies) do without, where there are any.
    ///
    /// After an error what was written is of no use. So it is when the input is not the one that the plan was
    /// made from, which is only known in the end.
    ///
    /// # Errors
    ///
    /// [`NoCode`](crate::ErrorKind::NoCode) if the input has no code for a target, unless
    /// [that is allowed](Self::with_allow_missing); [`Usage`](crate::ErrorKind::Usage) for another number of writers;
    /// [`Changed`](crate::ErrorKind::Changed), [`Write`](crate::ErrorKind::Write) and errors of [`entries`](crate::entries()).
    pub fn write<R: Read + Seek, W: Write>(
        &self,
        mut input: R,
        writers: impl IntoIterator<Item = W>,
        mut open_thin: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
    ) -> Result<(), Error> {
        self.write_by(writers, |each| {
            entries_of(&mut input, &self.options, Hashes::Known, &mut open_thin, each)
        })
    }

    /// Writes as [`write`](Self::write) does, with threads as [`plan_with_threads`](Self::plan_with_threads).
    ///
    /// # Errors
    ///
    /// Errors of [`write`](Self::write).
    pub fn write_with_threads<R: ReadSeek + Clone + Send, W: Write>(
        &self,
        input: &R,
        threads: Option<NonZeroUsize>,
        writers: impl IntoIterator<Item = W>,
        mut open_thin: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
    ) -> Result<(), Error> {
        self.write_by(writers, |each| {
            let (options, hashes) = (&self.options, Hashes::Known);
            entries_with_threads(input, threads, options, hashes, &mut open_thin, each)
        })
    }

    fn write_by<W: Write>(
        &self,
        writers: impl IntoIterator<Item = W>,
        entries: impl FnOnce(Each<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let writers: Vec<_> = writers.into_iter().collect();
        if writers.len() != self.archives.len() {
            let (expected, found) = (self.archives.len(), writers.len());
            let text = format!("expected {expected} writers, one per archive, found {found}");
            return Err(Error::new(ErrorKind::Usage, text));
        }
        self.archives.iter().try_for_each(|archive| archive.check(self.allow_missing))?;
        let mut outs: Vec<_> = (writers.into_iter().zip(&self.archives).enumerate())
            .map(|(archive, (out, planned))| {
                let out = BufWriter::with_capacity(1 << 16, out);
                Out { archive, out, parts: planned.layout.parts().iter() }
            })
            .collect();
        let targets = self.archives.iter().map(|archive| archive.target.clone()).collect();
        let mut matcher = Matcher::new(targets);
        let mut position = 0;
        // Every entry's own bytes are compared with the plan.
        entries(&mut |entry| {
            let Some(Match { archives, target_id }) = matcher.match_id(entry.id()) else {
                return Ok(());
            };
            let name = device_member_name(entry.member_bytes(), entry.id(), &target_id);
            let planned = self.planned.get(position);
            let planned = planned.filter(|p| p.archives == archives && *p.name == *name);
            let as_planned = match planned {
                Some(planned) => write_member(entry, planned, &mut outs)?,
                None => false,
            };
            if !as_planned {
                return Err(Error::changed(position));
            }
            position += 1;
            Ok(())
        })?;
        if position != self.planned.len() {
            return Err(Error::changed(position));
        }
        for out in &mut outs {
            out.go_on()?;
            out.out.flush().map_err(|source| Error::write(out.archive, source))?;
        }
        Ok(())
    }
}

/// Copies an entry to every archive that gets it. Returns whether it is the planned one.
fn write_member<'p, W: Write, P: Iterator<Item = Part<'p>>>(
    entry: &mut Entry<'_, '_, '_>,
    planned: &Planned,
    outs: &mut [Out<W, P>],
) -> Result<bool, Error> {
    // In order, so that many targets cost no more than the targets that get it.
    let is_for = |out: &&mut Out<W, P>| planned.archives.binary_search(&out.archive).is_ok();
    let mut outs: Vec<_> = outs.iter_mut().filter(is_for).collect();
    // Empty ones have no part: what is around them comes with the next.
    if planned.size > 0 {
        outs.iter_mut().try_for_each(|out| out.go_on())?;
    }
    let mut fingerprint = Fingerprint::default();
    entry.pieces(&mut |piece| {
        fingerprint.bytes(piece);
        outs.iter_mut().try_for_each(|out| out.write(piece))
    })?;
    Ok(fingerprint.finish() == (planned.size, planned.fingerprint))
}

/// The result of planning.
struct Plan {
    matcher: Matcher,
    archives: Vec<(Vec<Arc<[u8]>>, LayoutBuilder)>,
    planned: Vec<Planned>,
    warnings: Vec<Warning>,
    /// The entry that is looked at.
    data: Vec<u8>,
}

impl Plan {
    fn entry(&mut self, entry: &mut Entry<'_, '_, '_>) -> Result<(), Error> {
        if !is_text(entry.id()) {
            self.warnings.push(Warning(format!(
                "archive member \"{}\": bundle entry ID \"{}\" has bytes that are not UTF-8",
                entry.member().escape_debug(),
                entry.id().escape_debug()
            )));
            return Ok(());
        }
        if let Err(error) = EntryId::parse(entry.id()) {
            let member = entry.member().escape_debug();
            self.warnings.push(Warning(format!("archive member \"{member}\": {error}")));
            return Ok(());
        }
        let Some(Match { archives, target_id }) = self.matcher.match_id(entry.id()) else {
            return Ok(());
        };
        let name: Arc<[u8]> =
            device_member_name(entry.member_bytes(), entry.id(), &target_id).into();
        let offset = entry.offset();
        let (size, fingerprint, symbols) = if may_have_symbols(entry.format()) {
            let data = entry.read_into(&mut self.data);
            let data = data.map_err(|error| error.in_member(entry.member_bytes()))?;
            let symbols = match Symbols::read(data) {
                Ok(symbols) => symbols,
                Err(error) => {
                    let error = error.into_bitcode().map_err(|error| error.in_member(&name))?;
                    let member = String::from_utf8_lossy(&name);
                    self.warnings.push(Warning(format!(
                        "archive member \"{}\" is not in the index of symbols: {error}",
                        member.escape_debug()
                    )));
                    None
                }
            };
            (data.len() as u64, fingerprint_of(data), symbols)
        } else {
            let mut fingerprint = Fingerprint::default();
            entry.pieces(&mut |piece| {
                fingerprint.bytes(piece);
                Ok(())
            })?;
            let (size, fingerprint) = fingerprint.finish();
            (size, fingerprint, None)
        };
        for &index in archives.iter() {
            if let Some((names, builder)) = self.archives.get_mut(index) {
                builder
                    .push(&name, size, symbols.as_ref())
                    .map_err(|error| error.in_member(&name))?;
                names.push(Arc::clone(&name));
            }
        }
        self.planned.push(Planned { size, fingerprint, offset, name, archives });
        Ok(())
    }
}

/// Formats that bring symbols into an index.
fn may_have_symbols(format: FileFormat) -> bool {
    matches!(
        format,
        FileFormat::Elf { .. }
            | FileFormat::Cubin
            | FileFormat::Coff
            | FileFormat::Pe
            | FileFormat::MachO
            | FileFormat::Bitcode
            | FileFormat::HostPlaceholder
    )
}

/// Returns whether an ID is the stored text. Bytes that are not UTF-8 were replaced by U+FFFD, which no valid ID has.
pub(crate) fn is_text(id: &str) -> bool {
    !id.contains(char::REPLACEMENT_CHARACTER)
}

/// The destination of an entry.
#[derive(Clone)]
struct Match {
    archives: Arc<[usize]>,
    /// The target ID in its ID.
    target_id: Arc<str>,
}

/// Tells which archives an entry goes to. The same few IDs come again and again.
struct Matcher {
    targets: Vec<Request>,
    /// By ID; `None` for what is for no target.
    known: HashMap<String, Option<Match>>,
}

impl Matcher {
    fn new(targets: Vec<Request>) -> Self {
        Matcher { targets, known: HashMap::new() }
    }

    fn match_id(&mut self, id: &str) -> Option<Match> {
        if let Some(known) = self.known.get(id) {
            return known.clone();
        }
        let found = EntryId::parse(id).ok().filter(|_| is_text(id)).and_then(|id| {
            let code_object = id.target();
            let fits = |target: &Request| target.verdict(&code_object).is_strict();
            let archives: Arc<[usize]> = (self.targets.iter().enumerate())
                .filter(|(_, target)| fits(target))
                .map(|(index, _)| index)
                .collect();
            (!archives.is_empty()).then(|| Match { archives, target_id: id.target_id().into() })
        });
        self.known.insert(id.to_owned(), found.clone());
        found
    }
}

/// An archive that is being written.
struct Out<W: Write, P> {
    archive: usize,
    out: BufWriter<W>,
    /// The parts that come next.
    parts: P,
}

impl<'p, W: Write, P: Iterator<Item = Part<'p>>> Out<W, P> {
    /// Writes the bytes before the next member, or at the end.
    fn go_on(&mut self) -> Result<(), Error> {
        while let Some(Part::Bytes(bytes)) = self.parts.next() {
            self.write(bytes)?;
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let archive = self.archive;
        self.out.write_all(bytes).map_err(|source| Error::write(archive, source))
    }
}
