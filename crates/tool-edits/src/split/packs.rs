//! Kernel packs in the making: for single libraries, and for those of wheels.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};

use byte_parts::Part;
use fat_edit::{EditOptions, Error, GroupPack, PackGroup, Split, survey};
use fat_object::Visitor;
use kpack::Marker;
use tool_inputs::limits::Limits;
use tool_kit::failure::Failure;
use tool_kit::positioned::Positioned;
use tool_kit::scratch;

use crate::words::CODES;

/// The directory of packs, below the overlay root of a wheel.
pub(super) const DIRECTORY: &str = ".kpack";

/// Plans a file of this length without its device code for HIP.
///
/// # Errors
///
/// Findings of the file, and errors of [`EditableFile::split`](fat_edit::EditableFile::split).
pub fn plan(
    (file, len): (Positioned<'_>, u64),
    marker: &Marker,
    limits: &Limits,
    drop_signature: bool,
) -> Result<Split, Failure> {
    let contents = survey(file, &limits.for_file(&limits.options(), len));
    let contents = contents.map_err(|error| error.to_string())?;
    if let Some(finding) = contents.findings().first() {
        return Err(Failure::refused(finding.to_string()));
    }
    let options = EditOptions::default().with_drop_signature(drop_signature);
    Ok(contents.split(file, marker, &options).map_err(|error| error.to_string())?)
}

/// The packs of some libraries, with a file for the stored code objects of each target.
#[derive(Debug)]
pub struct Packs {
    group: PackGroup,
    codes: BTreeMap<String, File>,
    level: i32,
}

/// A pack that can be written.
#[derive(Debug)]
pub struct Pack {
    layout: GroupPack,
    codes: Option<File>,
}

impl Packs {
    /// Starts the packs of a group, which compress code objects by this level of zstd.
    pub fn new(group: PackGroup, level: i32) -> Self {
        Packs { group, codes: BTreeMap::new(), level }
    }

    /// Returns the marker of a library with this name.
    pub fn marker(&self, library: &str) -> Marker {
        self.group.marker(library)
    }

    /// Adds the code objects of a library, of this length, to the packs of their targets.
    ///
    /// # Errors
    ///
    /// Errors of [`PackGroup::pack`].
    pub fn add(
        &mut self,
        library: &Split,
        (file, len): (Positioned<'_>, u64),
        limits: &Limits,
    ) -> Result<(), Error> {
        let Packs { group, codes, level } = self;
        let options = limits.for_file(&limits.options().with_enter_images(false), len);
        let threads = limits.threads.for_walks();
        let walk = |visitor: &mut dyn Visitor| {
            fat_object::walk_with_threads(&file, threads, &options, visitor)
        };
        let mut store = |target: &str, stored: &[u8]| {
            let file = match codes.get_mut(target) {
                Some(file) => file,
                None => codes.entry(target.to_owned()).or_insert(scratch::file(CODES)?),
            };
            file.write_all(stored)
        };
        group.pack(library, (*level, limits.threads.count()), walk, &mut store)
    }

    /// Lays out the packs, in the order of their targets. They note the way back to these libraries.
    ///
    /// # Errors
    ///
    /// Errors of [`PackGroup::layout`].
    pub fn finish<'s>(
        self,
        libraries: impl IntoIterator<Item = &'s Split>,
    ) -> Result<Vec<Pack>, String> {
        let Packs { group, mut codes, .. } = self;
        let layouts = group.layout(libraries).map_err(|error| error.to_string())?;
        let pack = |layout: GroupPack| Pack { codes: codes.remove(&layout.target), layout };
        Ok(layouts.into_iter().map(pack).collect())
    }
}

impl Pack {
    /// Returns the target of its code objects.
    pub fn target(&self) -> &str {
        &self.layout.target
    }

    /// Returns the name of its file.
    pub fn file_name(&self) -> &str {
        &self.layout.file_name
    }

    /// Returns the number of its code objects.
    pub fn images(&self) -> u64 {
        self.layout.images
    }

    /// Returns the size of its file in bytes.
    pub fn size(&self) -> u64 {
        self.layout.parts.size()
    }

    /// Writes the file.
    ///
    /// # Errors
    ///
    /// Errors of reading the code objects and of writing.
    pub fn write(&self, out: &mut File) -> io::Result<()> {
        let codes = self.codes.as_ref().map(Positioned::new);
        self.layout.parts.write_to(Vec::from_iter(codes).as_mut_slice(), out)?;
        Ok(())
    }

    /// Returns a reader of the file.
    pub(super) fn reader(&self) -> impl Read + '_ {
        let part = |part: Part<'_, usize>| match part {
            Part::Bytes(bytes) => Box::new(io::Cursor::new(bytes.to_vec())) as Box<dyn Read>,
            Part::Zeros(count) => Box::new(io::repeat(0).take(count)),
            Part::Input(_, range) => {
                let codes = self.codes.as_ref().map(|codes| Positioned::of_range(codes, &range));
                codes
                    .map_or_else(|| Box::new(io::empty()) as Box<dyn Read>, |codes| Box::new(codes))
            }
        };
        Chain(self.layout.parts.iter().map(part).collect())
    }
}

/// Readers, one after the other.
struct Chain<'r>(VecDeque<Box<dyn Read + 'r>>);

impl Read for Chain<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(first) = self.0.front_mut() {
            match first.read(buf)? {
                0 if !buf.is_empty() => drop(self.0.pop_front()),
                read => return Ok(read),
            }
        }
        Ok(0)
    }
}
