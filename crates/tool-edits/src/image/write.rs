//! New images: layers that are written first, and the directory or archive of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use gpu_packages::{ChangedImages, ImageArchive, ImageFiles, ImageLayer, NewFile, NewLayer};

use super::decide::{Changes, Image};
use super::layers::Named;
use crate::job::Job;
use tool_inputs::image_files::{ImageSource, Layout};
use tool_kit::failure::Failure;
use tool_kit::output::{How, Name, Outputs, at, copy_part};
use tool_kit::permissions::NewPermissions;
use tool_kit::retried::Retried;
use tool_kit::scratch;

/// The contents of temporary files here.
const LAYER: &str = "a new layer";

/// The place of new layers until they have a name.
pub(super) enum Place<'t> {
    /// They are not written.
    Nowhere,
    /// In the new layout.
    Layout(&'t Path),
    /// In the directory of the new archive, where they never get one.
    Beside(&'t Path),
    /// In temporary files.
    Temporary,
}

impl<'t> Place<'t> {
    /// Returns the place of layers of a new archive.
    pub(super) fn beside(target: &'t Path) -> Self {
        if Outputs::appears_late(target) { Place::Beside(target) } else { Place::Temporary }
    }

    /// Returns the error of writing a layer, with its place.
    fn named(&self, error: io::Error) -> io::Error {
        match self {
            Place::Layout(target) | Place::Beside(target) => at(target, &error),
            Place::Nowhere | Place::Temporary => scratch::copying(LAYER, error),
        }
    }
}

/// Returns the name that a new layer has in a layout until its hash is known.
fn temporary_name(
    outputs: &mut Outputs,
    target: &Path,
    file: &str,
    number: usize,
) -> io::Result<Name> {
    let directory = target.join(file);
    let directory = outputs.make_directory(directory.parent().unwrap_or(target))?;
    Ok(directory.file(format!("new-layer-{number}")))
}

/// Returns the number of bytes of all files, or of the archive, after the edit.
pub(super) fn size_after(
    image: &Image<'_>,
    changed: &ChangedImages,
    written: &Written,
) -> io::Result<u64> {
    let layout = match image.source {
        ImageSource::Layout(layout) => layout,
        ImageSource::Archive(..) if written.is_empty() => return Ok(image.source.bytes()),
        // The size of a compressed archive depends on the contents of new layers.
        ImageSource::Archive(..) if image.compression.is_some() => {
            return rewrite(image, changed, written, io::sink(), from_start);
        }
        ImageSource::Archive(..) => {
            return rewrite(image, changed, written, io::sink(), |_| Ok(io::repeat(0)));
        }
    };
    let numbers = numbers(image);
    let mut known = HashSet::new();
    let names = layout.names().filter(|name| !changed.is_dropped(name));
    // Layers that are equal now are there once.
    let mut sizes = names.filter(|name| known.insert(changed.name(name))).map(|name| {
        let layer = numbers.get(name).and_then(|number| written.get(number));
        let layer = layer.map(|(layer, _)| layer.size());
        let document = || changed.document(name).map(|text| text.len() as u64);
        layer.or_else(document).or_else(|| image.source.size(name)).unwrap_or(0)
    });
    // Sparse files may have any size.
    Ok(sizes.try_fold(0_u64, |sum, size| sum.checked_add(size)).unwrap_or(0))
}

/// Returns the numbers of layers by the names of their files.
fn numbers<'i>(image: &Image<'i>) -> HashMap<&'i str, usize> {
    image.images.layers().iter().map(ImageLayer::file).zip(0..).collect()
}

pub(super) type Written = BTreeMap<usize, (NewLayer, Option<File>)>;

/// Writes a new layout. The new layers are there, without their names.
pub(super) fn write_layout(
    image: &Image<'_>,
    layout: &Layout,
    changed: &ChangedImages,
    written: &Written,
    (target, mut outputs): (&Path, Outputs),
) -> Result<(), Failure> {
    outputs.make_directory(target)?;
    let numbers = numbers(image);
    let mut known = HashSet::new();
    for name in layout.names().filter(|name| !changed.is_dropped(name)) {
        let new_name = changed.name(name);
        let new_path = target.join(&new_name);
        let directory = outputs.make_directory(new_path.parent().unwrap_or(target))?;
        let new_file = directory.file(new_name.rsplit('/').next().unwrap_or(&new_name));
        let number = numbers.get(name).filter(|number| written.contains_key(number));
        // Layers that differed in what was changed may be equal now.
        let is_new = known.insert(new_name);
        if let Some(number) = number {
            let old = temporary_name(&mut outputs, target, name, *number)?;
            if is_new { outputs.rename(&old, &new_file) } else { outputs.discard(&old) }?;
            continue;
        }
        if !is_new {
            continue;
        }
        let old = image.source.open(name)?;
        let how = How::from(old.opened.permissions());
        match changed.document(name) {
            Some(text) => outputs.write(&new_file, how, |out| out.write_all(text))?,
            None => {
                outputs.write(&new_file, how, |out| {
                    copy_part(&old.opened.file, old.place.clone(), out)
                })?;
            }
        }
        old.opened.check()?;
    }
    outputs.commit()?;
    Ok(())
}

/// Writes a new archive, and returns its size in bytes.
pub(super) fn write_archive(
    image: &Image<'_>,
    changed: &ChangedImages,
    written: &Written,
    (target, out): (&Path, &mut File),
) -> io::Result<u64> {
    let of_output = |error: io::Error| at(target, &error);
    if let ImageSource::Archive(archive) = image.source
        && image.compression.is_some()
        && written.is_empty()
    {
        // Other bytes of the same archive would help nobody.
        let len = archive.opened.len();
        copy_part(&archive.opened.file, 0..len, out).map_err(&of_output)?;
        return Ok(len);
    }
    let out = Named { out, of_output: &of_output };
    rewrite(image, changed, written, BufWriter::with_capacity(1 << 20, out), from_start)
}

/// Opens the file of a new layer at its start.
fn from_start(file: Option<&File>) -> io::Result<File> {
    let mut file = file.ok_or(io::ErrorKind::NotFound)?.try_clone()?;
    file.rewind()?;
    Ok(file)
}

/// A writer that counts its bytes.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes an archive again. `contents` opens the file of a new layer, if it has one.
fn rewrite<R: Read>(
    image: &Image<'_>,
    changed: &ChangedImages,
    written: &Written,
    out: impl Write,
    contents: impl Fn(Option<&File>) -> io::Result<R>,
) -> io::Result<u64> {
    let ImageSource::Archive(archive) = image.source else { return Ok(0) };
    let numbers = numbers(image);
    let old = BufReader::with_capacity(1 << 20, archive.plain.reader());
    let layer = |name: &str| {
        let layer = numbers.get(name).and_then(|number| written.get(number));
        let Some((layer, file)) = layer else { return Ok(None) };
        Ok(Some(NewFile::new(layer.size(), contents(file.as_ref())?)))
    };
    let mut out = Counted { out, bytes: 0 };
    match &image.compression {
        None => _ = ImageArchive::rewrite(old, &mut out, changed, layer)?,
        Some(compression) => {
            let mut encoder = compression.encoder(&mut out)?;
            ImageArchive::rewrite(old, &mut encoder, changed, layer)?;
            encoder.finish()?.flush()?;
        }
    }
    Ok(out.bytes)
}

impl Job<'_> {
    /// Writes the layers that change to files that have no name yet.
    pub(super) fn write_layers(
        &self,
        image: &Image<'_>,
        changes: &Changes,
        place: &Place<'_>,
        outputs: &mut Outputs,
    ) -> Result<Written, Failure> {
        let numbers: Vec<usize> = changes.layers.keys().copied().collect();
        let mut files = BTreeMap::new();
        for number in &numbers {
            let (name, new) = match place {
                Place::Nowhere => continue,
                Place::Temporary => {
                    files.insert(*number, scratch::file(LAYER)?);
                    continue;
                }
                Place::Layout(target) => {
                    let (layer, old) = image.layer(*number)?;
                    let name = temporary_name(outputs, target, layer.file(), *number)?;
                    (name, old.opened.permissions())
                }
                Place::Beside(target) => {
                    let directory = target.parent().unwrap_or(Path::new(""));
                    let name = directory.join(format!("new-layer-{number}"));
                    (Name::Typed(name), NewPermissions::PLAIN)
                }
            };
            let file = outputs.write(&name, How::from(new), |file| file.try_clone());
            let file = match (file, place) {
                // The directory of the name may be one of the system's: /dev/fd.
                (Err(_), Place::Beside(_)) => scratch::file(LAYER)?,
                (file, _) => file?,
            };
            files.insert(*number, file);
        }
        let layers = self.each_layer(&numbers, |job, number| {
            let (layer, file) = image.layer(number)?;
            let none = BTreeMap::new();
            let new = changes.layers.get(&number).unwrap_or(&none);
            let mut out = files.get(&number).map(File::try_clone).transpose()?;
            let mut out = out.as_mut().map_or(Retried::Counted(0), Retried::File);
            job.write_layer((layer, &file), new, (&mut out, &|error| place.named(error)))
        })?;
        let layers = numbers.into_iter().zip(layers);
        Ok(layers.map(|(number, layer)| (number, (layer, files.remove(&number)))).collect())
    }
}
