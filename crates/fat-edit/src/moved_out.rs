//! Device code of HIP that moves out of a linked file, to archives beside it, and in again.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek};

use byte_parts::{ReadSeek, Source};
use fat_object::{ContainerKind, FileFormat, ImageInfo, Location, Options};
use kpack::Marker;
use object_edit::{Edited, Format, Output};

use crate::check::{self, Expected};
use crate::dispatch::Host;
use crate::edit::{EditOptions, NewImage};
use crate::error::{Error, Problem};
use crate::inputs::Sources;
use crate::plan::{EditNote, EditPlan};
use crate::survey::{EditableContainer, EditableFile, survey_any};
use crate::wishes::Wish;

/// The most bytes that a loader reads of a marker.
const MOST_OF_MARKER: usize = 64 << 10;

/// Reads the marker of a linked file whose device code was moved to kernel packs, and the number of each wrapper, by which its
/// code is known there; `None` for another file, and for one whose wrappers cannot be read.
///
/// ```
/// use std::io::Cursor;
///
/// let file = Cursor::new(b"\x7fELF, but not a library");
/// assert!(fat_edit::moved_out(file)?.is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Errors of reading; [`InvalidData`](io::ErrorKind::InvalidData) for a marker that is damaged, or not there.
pub fn moved_out<R: Read + Seek>(input: R) -> io::Result<Option<(Marker, Vec<u64>)>> {
    let mut source = Source::new(input)?;
    let window = 0..source.len();
    let head = source.peek(&window, FileFormat::SNIFF_LEN)?;
    let format = match FileFormat::sniff(&head) {
        FileFormat::Elf { .. } => Format::LinkedElf,
        FileFormat::Pe => Format::Pe,
        _ => return Ok(None),
    };
    let wrappers = match object_edit::hip_wrappers(&mut source, &window, format) {
        Ok(wrappers) if wrappers.iter().any(|wrapper| wrapper.is_moved_out) => wrappers,
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == object_edit::ErrorKind::Read => return Err(error.into()),
        Err(_) => return Ok(None),
    };
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let target = wrappers.first().and_then(|wrapper| wrapper.target);
    let target = target.ok_or_else(|| {
        invalid("device code was moved out, and its wrappers lead to no marker".to_owned())
    })?;
    // The pointer may lead to the end of the file.
    let bytes = source.peek(&(target..window.end), MOST_OF_MARKER)?;
    let (marker, _) = Marker::parse(&bytes).map_err(|error| invalid(error.to_string()))?;
    Ok(Some((marker, wrappers.iter().map(|wrapper| wrapper.index).collect())))
}

/// The sections of HIP's device code in linked files.
const SECTIONS: [&str; 2] = [".hip_fatbin", ".hip_fat"];

impl EditableFile {
    /// Returns the container that each wrapper leads to, by the order of the wrappers' addresses, which is how HIP's runtime
    /// numbers them in kernel packs: indices among [`containers`](Self::containers).
    ///
    /// # Errors
    ///
    /// [`Refused`](crate::ErrorKind::Refused) unless all of the file's device code for HIP is what a loader finds by wrappers:
    /// bundles with code objects of AMD's GPUs, each led to by a wrapper, and no other code beside them;
    /// [`Unsupported`](crate::ErrorKind::Unsupported) for files that are not linked; [`Host`](crate::ErrorKind::Host).
    pub fn hip_wrappers<R: Read + Seek>(&self, mut input: R) -> Result<Vec<usize>, Error> {
        Ok(self.wrappers(&mut input)?)
    }

    fn wrappers(&self, input: &mut dyn ReadSeek) -> Result<Vec<usize>, Problem> {
        let mut source = Source::new(input)?;
        let format = linked(&mut source)?;
        let window = 0..source.len();
        let found = object_edit::hip_wrappers(&mut source, &window, format);
        let found = found.map_err(Problem::from)?;
        let refused = Problem::cannot_move_out;
        if found.iter().any(|wrapper| wrapper.is_moved_out) {
            return Err(refused(&[], "its device code was moved out already"));
        }
        let containers: Vec<&EditableContainer> =
            self.containers.iter().filter(|container| is_in_section(container)).collect();
        let mut led_to = vec![false; containers.len()];
        let mut wrappers = Vec::new();
        for wrapper in &found {
            let at = wrapper.target.map(Location::File);
            let n = containers.iter().position(|container| Some(container.location) == at);
            let (n, container) = n
                .and_then(|n| Some((n, *containers.get(n)?)))
                .ok_or_else(|| refused(&[], "a wrapper leads to no bundle"))?;
            if let Some(led_to) = led_to.get_mut(n) {
                *led_to = true;
            }
            wrappers.push(container.index);
        }
        for (container, is_led_to) in containers.iter().zip(led_to) {
            let why = match container.kind {
                _ if !is_led_to => "no wrapper leads to it, so that no loader would look for it",
                ContainerKind::Bundle | ContainerKind::Ccob => continue,
                _ => "it is not a bundle, and kernel packs hold nothing else",
            };
            return Err(refused(&container.path, why));
        }
        if wrappers.is_empty() {
            return Err(Problem::no_device_code());
        }
        Ok(wrappers)
    }

    /// Returns the device images of a container that a kernel pack can hold: code objects of AMD's GPUs.
    ///
    /// # Errors
    ///
    /// [`Refused`](crate::ErrorKind::Refused) for other code: no loader would find it in a kernel pack.
    pub fn packable(&self, container: usize) -> Result<Vec<&ImageInfo>, Error> {
        let Some(container) = self.containers.get(container) else { return Ok(Vec::new()) };
        let mut packable = Vec::new();
        for image in self.images_in(container) {
            let target = image.target();
            if target.is_host() {
                continue;
            }
            let why = match image.format() {
                _ if target.id().contains('/') => "its target has a slash",
                FileFormat::Elf { .. } if target.id().starts_with("gfx") => {
                    packable.push(image);
                    continue;
                }
                FileFormat::Empty => continue,
                FileFormat::SpirV => "loaders compile no SPIR-V from kernel packs",
                FileFormat::Bitcode => "loaders take no bitcode from kernel packs",
                _ => "it is not a code object for a GPU of AMD",
            };
            let mut path = container.path.clone();
            path.extend(image.path().last().filter(|step| path.last() != Some(*step)).cloned());
            return Err(Problem::cannot_move_out(&path, why).into());
        }
        Ok(packable)
    }

    /// Plans the file without its device code for HIP. All wrappers lead to `marker` then, and have the numbers that their
    /// order gives them.
    ///
    /// # Errors
    ///
    /// As [`hip_wrappers`](Self::hip_wrappers), and [`Host`](crate::ErrorKind::Host) where the file does not allow it.
    pub fn move_out<R: Read + Seek>(
        &self,
        mut input: R,
        marker: &[u8],
        options: &EditOptions,
    ) -> Result<EditPlan, Error> {
        let wrappers: BTreeSet<usize> = self.wrappers(&mut input)?.into_iter().collect();
        let mut source = Source::new(&mut input).map_err(Problem::from)?;
        let (format, window) = (linked(&mut source)?, 0..source.len());
        let edited =
            object_edit::move_out(&mut source, &window, format, marker, host_options(options));
        let plan = planned(edited.map_err(Problem::from)?, window.end, Vec::new());
        let wish = |image: &ImageInfo| match self.containers_of.get(image.index()) {
            Some(container) if wrappers.contains(container) => Wish::Remove,
            _ => Wish::Keep,
        };
        check::check(self, &mut source, &plan, Expected::new(self, wish))?;
        Ok(plan)
    }
}

/// Plans a file with device code in the place of the marker to which its wrappers lead. `contents` are bundles one after the
/// other, each at a multiple of 4096: their tables as bytes, and code objects as bytes or as ranges of `images`. `offsets` has
/// the place of the bundle of each wrapper in them.
///
/// # Errors
///
/// [`Unsupported`](crate::ErrorKind::Unsupported) for files that are not linked, or that another tool has split;
/// [`Host`](crate::ErrorKind::Host) where the file does not allow it, as where the contents need more room than there was
/// ([`EditOptions::with_grow`]).
pub fn move_in<R: Read + Seek>(
    mut input: R,
    contents: Output,
    offsets: &[u64],
    images: Vec<NewImage>,
    options: &EditOptions,
) -> Result<EditPlan, Error> {
    let mut source = Source::new(&mut input).map_err(Problem::from)?;
    let (format, window) = (linked(&mut source)?, 0..source.len());
    let old = survey_any(source.reader(), &Options::default(), true)?;
    let mut expected = Expected::new(&old, |_| Wish::Keep);
    expected.add_contents(&contents, &images, &mut source)?;
    let mut sources = Sources::new(&images, &[]);
    let options = host_options(options);
    let edited = object_edit::move_in(
        &mut source,
        &window,
        format,
        contents,
        offsets,
        options,
        &mut sources,
    );
    let plan = planned(edited.map_err(Problem::from)?, window.end, images);
    check::check(&old, &mut source, &plan, expected)?;
    Ok(plan)
}

/// Returns whether a container lies in a section of device code that a loader finds by wrappers.
fn is_in_section(container: &EditableContainer) -> bool {
    match container.path.as_slice() {
        [section, _] => {
            section.kind() == ContainerKind::Section && SECTIONS.contains(&section.name())
        }
        _ => false,
    }
}

fn linked(source: &mut Source<'_>) -> Result<Format, Problem> {
    let window = 0..source.len();
    match Host::of(source, &window)? {
        Host::Sections(format @ (Format::LinkedElf | Format::Pe)) => Ok(format),
        _ => Err(Problem::unsupported(&[], "files that are not linked")),
    }
}

fn host_options(options: &EditOptions) -> object_edit::Options {
    object_edit::Options::default()
        .with_grow(options.grow)
        .with_drop_signature(options.drop_signature)
}

fn planned(edited: Edited, input_size: u64, new_images: Vec<NewImage>) -> EditPlan {
    let mut notes = Vec::new();
    if edited.signature_dropped {
        notes.push(EditNote::SignatureDropped);
    }
    if edited.zeroed > 0 {
        notes.push(EditNote::Zeroed { bytes: edited.zeroed });
    }
    EditPlan {
        parts: edited.parts,
        derived: Vec::new(),
        new_images,
        input_size,
        containers: Vec::new(),
        images: Vec::new(),
        notes,
        needs: BTreeSet::new(),
    }
}
