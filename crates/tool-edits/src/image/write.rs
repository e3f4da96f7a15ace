//! New images: layers that are written first, and the directory or archive of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek};
use std::path::Path;

use gpu_packages::{
    ChangedImages, ImageArchive, ImageFiles, ImageLayer, Images, NewFile, NewLayer,
};

use super::decide::{Changes, Image};
use super::layers::Named;
use super::source::{ImageSource, Layout};
use crate::job::Job;
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

/// Returns the number of bytes of all files after the edit, without the headers of an archive.
pub(super) fn size_after(
    source: &ImageSource,
    images: &Images,
    changed: &ChangedImages,
    new: &BTreeMap<usize, NewLayer>,
) -> u64 {
    let size = |file: &str| source.size(file).map_or(0, i128::from);
    let padded = |size: i128| match source {
        ImageSource::Layout(_) => size,
        ImageSource::Archive(..) => (size + 511) / 512 * 512,
    };
    let mut sum = i128::from(source.bytes());
    for (number, layer) in new {
        let file = images.layers().get(*number).map_or("", ImageLayer::file);
        sum += padded(layer.size().into()) - padded(size(file));
    }
    for (file, text) in changed.documents() {
        sum += padded(i128::try_from(text.len()).unwrap_or(0)) - padded(size(file));
    }
    if let ImageSource::Layout(layout) = source {
        sum -= layout.names().filter(|name| changed.is_dropped(name)).map(size).sum::<i128>();
    }
    u64::try_from(sum).unwrap_or(0)
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
    let numbers: HashMap<&str, usize> =
        image.images.layers().iter().map(ImageLayer::file).zip(0..).collect();
    let mut known = HashSet::new();
    for name in layout.names().filter(|name| !changed.is_dropped(name)) {
        let new_name = changed.name(name);
        let new_path = target.join(&new_name);
        let directory = outputs.make_directory(new_path.parent().unwrap_or(target))?;
        let new_file = directory.file(new_name.rsplit('/').next().unwrap_or(&new_name));
        let number = numbers.get(name).filter(|number| written.contains_key(number));
        // Layers that differed in what was changed may be equal now.
        if !known.insert(new_name) {
            continue;
        }
        if let Some(number) = number {
            let old = temporary_name(&mut outputs, target, name, *number)?;
            outputs.rename(&old, &new_file)?;
            continue;
        }
        let old = image.source.open(name)?;
        let how = How::from(old.opened.permissions());
        match changed.document(name) {
            Some(text) => outputs.write(&new_file, how, |out| io::Write::write_all(out, text))?,
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

/// Writes a new archive.
pub(super) fn write_archive(
    image: &Image<'_>,
    changed: &ChangedImages,
    written: &Written,
    (target, out): (&Path, &mut File),
) -> io::Result<()> {
    let ImageSource::Archive(opened, _) = image.source else { return Ok(()) };
    let numbers: HashMap<&str, usize> =
        image.images.layers().iter().map(ImageLayer::file).zip(0..).collect();
    let old = BufReader::with_capacity(1 << 20, opened.reader());
    let of_output = |error: io::Error| at(target, &error);
    let out = Named { out, of_output: &of_output };
    let new = BufWriter::with_capacity(1 << 20, out);
    ImageArchive::rewrite(old, new, changed, |name| {
        let layer = numbers.get(name).and_then(|number| written.get(number));
        let Some((layer, Some(file))) = layer else { return Ok(None) };
        let mut file = file.try_clone()?;
        file.rewind()?;
        Ok(Some(NewFile::new(layer.size(), file)))
    })?;
    Ok(())
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
