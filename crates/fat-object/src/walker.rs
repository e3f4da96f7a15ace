//! The walk: from a file to its images, through any nesting of containers.

use std::collections::HashMap;
use std::io::{self, Cursor, Read, Seek};
use std::ops::Range;
use std::sync::Arc;

use byte_parts::Budget;
use target_id::Target;

use crate::agreement::contradiction;
use crate::ahead::Outcome;
use crate::containers::is_text_ending_in_marker;
use crate::error::Error;
use crate::file_format::{FileFormat, SNIFF_LEN};
use crate::image::{Description, Image};
use crate::model::{Compression, Container, ContainerKind, Finding, Location, PathStep, Visitor};
use crate::source::{Origin, Source};
use crate::{bare, code};

/// What a [`walk`] looks at, and how much it may cost.
///
/// ```
/// let options = fat_object::Options::default().with_max_decompressed(64 << 20).with_verify_hash(false);
/// assert_eq!(options.max_depth, 32);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of decompressed data, and of data copied out of LLVM bitcode, held at one time, over all levels of
    /// nesting. Default: 2 GiB.
    pub max_decompressed: u64,
    /// Bytes of such data that each byte of the file stands for, over the whole walk: in all it is no more than
    /// [`max_decompressed`](Options::max_decompressed) and this many times the size of the file, with the files
    /// that thin archives name. Compressed bundles expand to 20 times their size at most, unless they hold
    /// next to nothing. Default: 256.
    pub max_expansion: u64,
    /// Bytes that the files named by thin archives have together; each counts for 4 KiB at least. Default: 16 GiB.
    pub max_thin_bytes: u64,
    /// Containers around an image: archives in archives, bundles in bundles. Default: 32.
    pub max_depth: usize,
    /// `true` if compressed bundles and offload binaries are opened. Otherwise they are passed over, as is what follows one of version 1,
    /// whose end only decompression shows. Default: `true`.
    pub decompress: bool,
    /// Whether what compressed bundles hold is compared with their hash. It takes as long as decompressing: a second
    /// walk of the same file can do without. Default: yes.
    pub verify_hash: bool,
    /// Whether the images of a compressed bundle are shown while what it holds is still being compared with its hash, on
    /// a second thread. For visitors who take back what they made of images when there is something wrong: that the
    /// hash is, is a finding behind them, and of the images before it nothing is certain. Default: no.
    pub early_images: bool,
    /// Whether images that can hold further images are looked into: host objects, bundles in bundles. Default: yes.
    pub enter_images: bool,
    /// `true` if compressed bundles are read only up to the end of their tables of entries, which have the IDs, offsets
    /// and sizes of images: their first kilobytes instead of hundreds of megabytes. Default: `false`.
    ///
    /// Images in them then have the format [`NotRead`](FileFormat::NotRead) and no bytes to [read](crate::Image::reader),
    /// hashes are not compared, and damage after the table is not found. A bundle is read to its end nevertheless where
    /// its table does not tell everything: if something is wrong with it, if it is a text bundle, of version 1, or followed
    /// by something; compressed offload binaries are always; and, to [look into images](Self::enter_images), if it holds more than code for AMD GPUs. An entry for
    /// an AMD GPU that is a container all the same is not looked into, unless it is the first.
    pub tables_only: bool,
    /// `true` if images that are compressed by themselves, in NVIDIA's fatbinaries, are decompressed to be compared with what
    /// their entries say ([`Image::disagreement`](crate::Image::disagreement)). It takes as long as decompressing.
    /// Default: `false`.
    pub check_compressed: bool,
    /// `true` if host files (ELF, PE, Mach-O, COFF, WebAssembly) are searched for containers in all bytes that nothing
    /// accounts for: sections for other data, files without section headers, bytes after the last section. It costs
    /// less than reading those bytes. Default: `true`.
    ///
    /// A container is found by its magic and taken for one if all of its headers are in order. Such containers come
    /// after those of the host file's own sections; [`PathStep::is_found_by_scan`] tells them apart.
    pub scan: bool,
    /// Whether compressed bundles that are not opened are told of, and the ends of those of version 1 found, for which
    /// these are decompressed nevertheless.
    pub(crate) tell_unopened: bool,
    /// Whether compressed bundles that are not opened are told of whose headers record where they end.
    pub(crate) tell_sized: bool,
    /// `true` if a container at the start of a section for other data is to be the only thing there.
    pub(crate) tell_trailing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_decompressed: 2 << 30,
            max_expansion: 256,
            max_thin_bytes: 16 << 30,
            max_depth: 32,
            decompress: true,
            verify_hash: true,
            early_images: false,
            enter_images: true,
            tables_only: false,
            check_compressed: false,
            scan: true,
            tell_trailing: false,
            tell_unopened: false,
            tell_sized: false,
        }
    }
}

impl Options {
    /// These options with another limit of bytes that are decompressed [at one time](Self::max_decompressed).
    #[must_use]
    pub fn with_max_decompressed(mut self, max_decompressed: u64) -> Self {
        self.max_decompressed = max_decompressed;
        self
    }

    /// These options with another limit of bytes decompressed [for each byte](Self::max_expansion) of the file.
    #[must_use]
    pub fn with_max_expansion(mut self, max_expansion: u64) -> Self {
        self.max_expansion = max_expansion;
        self
    }

    /// These options with another limit of bytes of [files that thin archives name](Self::max_thin_bytes).
    #[must_use]
    pub fn with_max_thin_bytes(mut self, max_thin_bytes: u64) -> Self {
        self.max_thin_bytes = max_thin_bytes;
        self
    }

    /// These options with another limit of [containers around an image](Self::max_depth).
    #[must_use]
    pub fn with_max_depth(mut self, max_depth: usize) -> Self {
        self.max_depth = max_depth;
        self
    }

    /// These options, with compressed bundles [opened](Self::decompress) or not.
    #[must_use]
    pub fn with_decompress(mut self, decompress: bool) -> Self {
        self.decompress = decompress;
        self
    }

    /// These options, with [hashes](Self::verify_hash) compared or not.
    #[must_use]
    pub fn with_verify_hash(mut self, verify_hash: bool) -> Self {
        self.verify_hash = verify_hash;
        self
    }

    /// These options, with images shown [before](Self::early_images) the hash is known to be right, or not.
    #[must_use]
    pub fn with_early_images(mut self, early_images: bool) -> Self {
        self.early_images = early_images;
        self
    }

    /// These options, with images [looked into](Self::enter_images) or not.
    #[must_use]
    pub fn with_enter_images(mut self, enter_images: bool) -> Self {
        self.enter_images = enter_images;
        self
    }

    /// These options, with compressed bundles read by their [tables](Self::tables_only) only, or to their end.
    #[must_use]
    pub fn with_tables_only(mut self, tables_only: bool) -> Self {
        self.tables_only = tables_only;
        self
    }

    /// These options, with images that are compressed by themselves [checked](Self::check_compressed) or not.
    #[must_use]
    pub fn with_check_compressed(mut self, check_compressed: bool) -> Self {
        self.check_compressed = check_compressed;
        self
    }

    /// These options, with all told that an editor of the file has to know, or not. Then compressed bundles that are not
    /// opened are [entered](crate::Visitor::enter) nevertheless, and the ends of those of version 1 are found, for which these
    /// are decompressed; and a container at the start of a section for other data is to be the only thing there.
    #[must_use]
    pub fn with_extents(mut self, extents: bool) -> Self {
        self.tell_unopened = extents;
        self.tell_trailing = extents;
        self
    }

    /// These options, with host files [scanned](Self::scan) for containers in any of their bytes, or not.
    #[must_use]
    pub fn with_scan(mut self, scan: bool) -> Self {
        self.scan = scan;
        self
    }
}

/// Names may share bytes, and one name may stand above many images: copies of them, and looking for their ends, must
/// not add up to a multiple of the file. Honest names come to less than twice the bytes around them. Those of small
/// files may do as they like.
const NAMES_FOR_EACH_BYTE: u64 = 4;
const NAMES_AT_LEAST: u64 = 1 << 26;

/// Returns the limit on the size of names for a file of this many bytes.
pub(crate) fn names_of(len: u64) -> Budget {
    Budget::new(NAMES_AT_LEAST.saturating_add(len.saturating_mul(NAMES_FOR_EACH_BYTE)))
}

/// What a finished [`walk`] saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Summary {
    /// Format of the file itself. With no image found, [`FileFormat::is_read`] tells a file without device code (a
    /// plain object) from one that a walk does not read (a wheel, junk).
    pub format: FileFormat,
    /// Length of the file in bytes.
    pub size: u64,
    /// Images visited.
    pub images: usize,
    /// Findings reported.
    pub findings: usize,
}

/// Walks through everything in `input` that holds device images, in file order.
///
/// Time and memory grow no faster than the file, and with what of it is decompressed; see [the bounds](crate#bounds).
///
/// # Errors
///
/// An error of reading `input`, or the error that a method of `visitor` returned. A malformed file is no
/// error of the walk: the visitor gets [`Finding`]s.
pub fn walk<R: Read + Seek>(
    mut input: R,
    options: &Options,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    Walker::walk(Source::new(&mut input, Origin::File)?, options, visitor, None)
}

/// Walks through `data` as [`walk`] does, without copying the bytes that it looks at: faster for what is in memory, read
/// or mapped. [`Image::bytes_in`] gives the images that lie in `data`.
///
/// ```
/// use std::io;
/// use fat_object::{Image, Options, Visitor, walk_slice};
///
/// /// The images of an input of a linker, which stay where they are.
/// struct Images<'data> {
///     data: &'data [u8],
///     found: Vec<&'data [u8]>,
/// }
///
/// impl Visitor for Images<'_> {
///     fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
///         self.found.extend(image.bytes_in(self.data)); // none for images of compressed bundles
///         Ok(())
///     }
/// }
///
/// let layout = bundle_format::Layout::new([("hip-amdgcn-amd-amdhsa--gfx906", 4)], 1)?;
/// let data = layout.to_vec(&[b"code"])?;
/// let mut images = Images { data: &data, found: Vec::new() };
/// walk_slice(&data, &Options::default(), &mut images)?;
/// assert_eq!(images.found, [b"code"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// The error that a method of `visitor` returned.
pub fn walk_slice(
    data: &[u8],
    options: &Options,
    visitor: &mut dyn Visitor,
) -> io::Result<Summary> {
    let mut reader = Cursor::new(data);
    Walker::walk(Source::of_bytes(&mut reader, data, Origin::File), options, visitor, None)
}

pub(crate) struct Walker<'v> {
    pub(crate) options: &'v Options,
    pub(crate) visitor: &'v mut dyn Visitor,
    /// Gives what the compressed bundle at an offset of the file came to, if somebody else decompresses it.
    pub(crate) ahead: Option<&'v mut dyn FnMut(u64) -> Option<Outcome>>,
    path: Vec<PathStep>,
    compressions: Vec<Compression>,
    /// Bytes that are held beside the walked file.
    held: u64,
    /// Bytes decompressed, or copied out of bitcode, in all.
    pub(crate) decompressed: Budget,
    /// Bytes of names and of strings of offload binaries.
    pub(crate) names: Budget,
    /// Bytes of the files that thin archives name.
    pub(crate) thin_members: Budget,
    /// Whether the walk is in such a file, at any depth.
    pub(crate) in_thin_member: bool,
    /// Whether an entry that stands for the object itself was found in the object that is walked.
    pub(crate) has_placeholder: bool,
    images: usize,
    /// Containers entered so far.
    entered: usize,
    pub(crate) findings: usize,
    /// The IDs of a bundle without fault that came before.
    pub(crate) sound_ids: Vec<String>,
    /// What IDs say that came before.
    pub(crate) targets: HashMap<String, Arc<Target>>,
}

impl<'v> Walker<'v> {
    /// As [`walk`].
    pub(crate) fn walk(
        mut source: Source<'_>,
        options: &'v Options,
        visitor: &'v mut dyn Visitor,
        ahead: Option<&'v mut dyn FnMut(u64) -> Option<Outcome>>,
    ) -> io::Result<Summary> {
        let size = source.len();
        let mut walker = Walker {
            options,
            visitor,
            ahead,
            path: Vec::new(),
            compressions: Vec::new(),
            held: 0,
            decompressed: Budget::new(options.max_decompressed),
            names: names_of(0),
            thin_members: Budget::new(options.max_thin_bytes),
            in_thin_member: false,
            has_placeholder: false,
            images: 0,
            entered: 0,
            findings: 0,
            sound_ids: Vec::new(),
            targets: HashMap::new(),
        };
        walker.add_file(&source);
        let format = walker.contents(&mut source, &(0..size))?;
        Ok(Summary { format, size, images: walker.images, findings: walker.findings })
    }
}

impl Walker<'_> {
    /// Walks what lies in `window`, by its first bytes. Returns what that was.
    pub(crate) fn contents(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
    ) -> io::Result<FileFormat> {
        let head = source.peek(window, SNIFF_LEN)?;
        let format = FileFormat::sniff(&head);
        let before = self.entered;
        match format {
            FileFormat::Bundle if bundle_format::text::is_text_bundle(&head) => {
                self.text_bundle(source, window)?;
            }
            FileFormat::Bundle
            | FileFormat::CompressedBundle
            | FileFormat::OffloadBinary
            | FileFormat::Hcf
            | FileFormat::Fatbinary => self.sequence(source, window, None, false).map(drop)?,
            FileFormat::Archive | FileFormat::Deb => self.archive(source, window)?,
            FileFormat::Wasm => self.wasm(source, window)?,
            FileFormat::Bitcode => self.bitcode(source, window)?,
            // The file itself may be a code object that was made the host of a bundle.
            FileFormat::Elf { .. } | FileFormat::Cubin | FileFormat::Coff | FileFormat::MachO
                if format.may_hold_images() || self.is_outside() =>
            {
                self.host_file(source, window)?;
            }
            // Last, because it costs another reading. Code for a GPU may stand first in such a text.
            FileFormat::Unknown | FileFormat::Ptx | FileFormat::LinkerScript
                if is_text_ending_in_marker(source, window, &head)? =>
            {
                self.text_ending_in_marker(source, window)?;
                return Ok(FileFormat::Bundle);
            }
            _ => {}
        }
        if bare::may_be(format) && self.entered == before && self.is_outside() {
            self.bare_image(source, window, format)?;
        }
        Ok(format)
    }

    /// Walks containers that follow each other, with zeros between and after them. `object` is where the object
    /// file lies for which bundles among them are its object form. Returns where other bytes follow that may do so: the end
    /// of the window, unless it is `mixed`.
    pub(crate) fn sequence(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        object: Option<&Range<u64>>,
        mixed: bool,
    ) -> io::Result<u64> {
        let mut at = window.start;
        let mut ordinal = 0;
        loop {
            let before = at;
            at = source.skip_zeros(&(at..window.end))?;
            if at >= window.end {
                return Ok(window.end);
            }
            let rest = at..window.end;
            let head = source.peek(&rest, SNIFF_LEN)?;
            if ordinal > 0 && self.directly_in(ContainerKind::Member) && is_member_padding(&head) {
                return Ok(window.end);
            }
            let end = match FileFormat::sniff(&head) {
                FileFormat::Bundle if !bundle_format::text::is_text_bundle(&head) => {
                    self.bundle(source, &rest, ordinal, object)?
                }
                FileFormat::CompressedBundle => self.compressed_bundle(source, &rest, ordinal)?,
                FileFormat::OffloadBinary => self.offload_binary(source, &rest, ordinal)?,
                FileFormat::Fatbinary => self.nv_fatbin(source, &rest, ordinal)?,
                FileFormat::Hcf => self.hcf(source, &rest, ordinal)?,
                _ if mixed && ordinal > 0 => return Ok(before),
                _ => {
                    let first = head.into_iter().take(8).collect();
                    let error = match ordinal {
                        0 => Error::UnknownContents { first },
                        _ => Error::TrailingBytes { after: at - window.start, first },
                    };
                    self.finding(source, at, error)?;
                    None
                }
            };
            // A container always takes at least its header; the check only guards the loop.
            match end {
                Some(end) if end > at => at = end,
                _ => return Ok(window.end),
            }
            ordinal += 1;
        }
    }

    /// Enters a container, walks what `inside` walks, and leaves it. Returns without entering when the
    /// nesting is too deep.
    pub(crate) fn within<'s>(
        &mut self,
        source: &mut Source<'s>,
        segment: PathStep,
        window: &Range<u64>,
        compression: Option<Compression>,
        inside: impl FnOnce(&mut Self, &mut Source<'s>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.path.len() >= self.options.max_depth {
            return self.finding(
                source,
                window.start,
                Error::TooDeep { limit: self.options.max_depth },
            );
        }
        // Visitors keep the path of each container, too; the names of members and sections are counted where they are
        // read.
        if !self.takes_path() {
            let error = Error::TooManyNames { limit: self.names.limit() };
            return self.finding(source, window.start, error);
        }
        let kind = segment.kind();
        self.entered += 1;
        self.path.push(segment);
        let container = Container {
            path: &self.path,
            kind,
            location: Location::new(source.origin(), window.start),
            size: window.end.saturating_sub(window.start),
            compression,
        };
        self.visitor.enter(&container)?;
        let looks_into = self.visitor.looks_into(&container);
        if let Some(compression) = compression {
            self.compressions.push(compression);
            self.hold(compression.uncompressed_size);
        }
        if looks_into {
            inside(self, source)?;
        }
        if let Some(compression) = compression {
            self.compressions.pop();
            self.release(compression.uncompressed_size);
        }
        self.visitor.leave()?;
        self.path.pop();
        Ok(())
    }

    /// Reports an image, then walks into it if it can hold further images.
    pub(crate) fn image(
        &mut self,
        source: &mut Source<'_>,
        window: &Range<u64>,
        description: &Description,
    ) -> io::Result<()> {
        // Visitors keep the path of each image.
        if !self.takes_path() {
            let error = Error::TooManyNames { limit: self.names.limit() };
            return self.finding(source, window.start, error);
        }
        let head = match (description.format, description.compression) {
            (None, _) => Some(source.peek(window, SNIFF_LEN)?),
            (Some(_), Some(own)) if self.options.check_compressed => {
                let room = self.room();
                code::decompressed_head(source, window, own, room, &mut self.decompressed)?
            }
            _ => None,
        };
        let format = match (description.format, &head) {
            (Some(format), _) => format,
            (None, head) => FileFormat::sniff(head.as_deref().unwrap_or_default()),
        };
        let disagreement = head.and_then(|head| {
            let own = description.format.map_or(format, |_| FileFormat::sniff(&head));
            contradiction(description, own, &head)
        });
        let index = self.images;
        self.images += 1;
        let room = self.room();
        self.visitor.image(&mut Image {
            index,
            path: &self.path,
            description,
            format,
            disagreement: disagreement.as_ref(),
            around: self.compressions.last().copied(),
            window: window.clone(),
            source,
            room,
            decompressed: &mut self.decompressed,
        })?;
        if let Some(disagreement) = disagreement {
            let error = Error::Disagreement { entry: description.entry(index), disagreement };
            self.finding(source, window.start, error)?;
        }
        // Bitcode for a device embeds nothing, and there can be much of it.
        let is_host = description.target.is_host();
        let may_hold = format.may_hold_images() || (format == FileFormat::Bitcode && is_host);
        // Archives of code for several GPUs of Intel are images as a whole.
        let is_whole = description.compression.is_some() || description.sycl.is_some();
        if !may_hold || is_whole || !self.options.enter_images {
            return Ok(());
        }
        let name = description.id.clone().unwrap_or_else(|| index.to_string());
        let segment = PathStep::new(ContainerKind::Image, name);
        self.within(source, segment, window, None, |walker, source| {
            walker.contents(source, window).map(drop)
        })
    }

    /// Reports something wrong in the container that starts at `at`.
    pub(crate) fn finding(&mut self, source: &Source<'_>, at: u64, error: Error) -> io::Result<()> {
        self.findings += 1;
        let location = Location::new(source.origin(), at);
        self.visitor.finding(&Finding { path: &self.path, location, error })
    }

    /// Counts the names of all containers around; false if these are too many.
    fn takes_path(&mut self) -> bool {
        self.names.take(self.path.iter().map(|segment| segment.name().len() as u64).sum())
    }

    /// The containers around.
    pub(crate) fn path(&self) -> &[PathStep] {
        &self.path
    }

    /// Whether the walk is directly inside a container of this kind.
    pub(crate) fn directly_in(&self, kind: ContainerKind) -> bool {
        self.path.last().is_some_and(|segment| segment.kind() == kind)
    }

    /// Allows for what a file costs that is not made of other data.
    pub(crate) fn add_file(&mut self, source: &Source<'_>) {
        self.decompressed.grow(source.len().saturating_mul(self.options.max_expansion));
        self.add_source(source);
    }

    /// Allows for the names in new bytes.
    pub(crate) fn add_source(&mut self, source: &Source<'_>) {
        self.add_bytes(source.len());
    }

    /// Allows for the names in so many new bytes.
    pub(crate) fn add_bytes(&mut self, len: u64) {
        self.names.grow(len.saturating_mul(NAMES_FOR_EACH_BYTE));
    }

    /// How many bytes may be held on top of what is held already.
    pub(crate) fn room(&self) -> u64 {
        self.options.max_decompressed.saturating_sub(self.held)
    }

    /// How many bytes may be made now: held, and counted among [all](Walker::decompressed).
    pub(crate) fn decompression_budget(&self) -> u64 {
        self.room().min(self.decompressed.left())
    }

    /// Counts bytes that are held until they are [released](Walker::release).
    pub(crate) fn hold(&mut self, bytes: u64) {
        self.held = self.held.saturating_add(bytes);
    }

    pub(crate) fn release(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
    }
}

/// Whether these last bytes of a member fill it up to a multiple of 8, as in archives for Apple's linker, where the
/// padding counts as part of the member.
fn is_member_padding(rest: &[u8]) -> bool {
    rest.len() < 8 && rest.iter().all(|&byte| byte == b'\n')
}
