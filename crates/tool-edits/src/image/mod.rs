//! Edits of container images: files of their layers are edited, and all that names the layers by their hashes follows.

mod decide;
mod layers;
mod write;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Seek as _};
use std::path::Path;
use std::sync::Arc;

use gpu_packages::{ImageFiles, Images};

use super::job::{Edited, Job};
use super::members::Members;
use super::report::{About, FileRow, Stays};
use super::words::{no_wheel, of_package as of};
use decide::Image;
use tool_inputs::image_files::{Archive, ImageSource, is_layout, layout_of};
use tool_inputs::inputs::Input;
use tool_kit::attributes;
use tool_kit::directory::Held;
use tool_kit::failure::Failure;
use tool_kit::input;
use tool_kit::opened::Opened;
use tool_kit::output::{How, Outputs, copy_part};
use tool_kit::retried::Retried;
use tool_kit::scratch;
use write::{Place, Written, size_after, write_archive, write_layout};

impl Job<'_> {
    /// Edits the images that a directory has; `None` if it is not a layout.
    pub(crate) fn edit_layout(&mut self, file: &Input) -> Option<Edited> {
        if !is_layout(file.path()) {
            return None;
        }
        let mut edit = || {
            let source = ImageSource::layout(Held::open(file.path())?)?;
            if let ImageSource::Layout(layout) = &source {
                layout.check_links()?;
            }
            self.most_held = self.editor.options.limits.held_of(source.bytes());
            let images = Images::read(&source, self.most_held).map_err(of)?;
            images.map_or(Err(Failure::NoCode), |images| self.edit_images(file, &source, &images))
        };
        Some(edit())
    }

    /// Returns the failure for a file with these reasons to leave it. Only a command that shrinks says them of files in directories.
    fn left(&self, file: &Input, why: Vec<String>) -> Failure {
        let says = file.is_named() || self.editor.shrinks.is_some();
        if says { Failure::Refused(why) } else { Failure::NotConcerned(why) }
    }

    /// Edits the images that an archive has; `None` for another file. A file of a layout is refused.
    pub(crate) fn edit_archive(&mut self, file: &Input, opened: &Arc<Opened>) -> Option<Edited> {
        let in_place = self.editor.options.output.in_place;
        if let Some(layout) = layout_of(file.path()).filter(|_| in_place) {
            let layout = layout.display();
            let why = vec![format!("belongs to the image '{layout}', which is edited as a whole")];
            return Some(Err(self.left(file, why)));
        }
        if file.is_in_package() {
            return None;
        }
        let source = match ImageSource::archive(opened, &self.editor.options.limits) {
            Ok(source) => source?,
            Err(error) => return Some(Err(error.into())),
        };
        if let ImageSource::Archive(archive) = &source {
            self.most_held =
                self.most_held.max(self.editor.options.limits.held_of(archive.plain.len()));
        }
        match Images::read(&source, self.most_held).map_err(of).transpose()? {
            Ok(images) => Some(self.edit_images(file, &source, &images)),
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Edits images, which have several threads, and what they hold, by themselves.
    fn edit_images(&mut self, file: &Input, source: &ImageSource, images: &Images) -> Edited {
        if self.share.bytes.is_some() {
            return Err(self.missed(Failure::NoCode));
        }
        if !self.editor.images.files.is_empty() {
            let text = "is a container image: code is added and replaced in files by themselves";
            return Err(Failure::refused(text));
        }
        self.edit_image(file, source, images)
    }

    /// Edits the files of an image, and writes it again.
    fn edit_image(
        &mut self,
        named: &Input,
        source: &ImageSource,
        images: &Images,
    ) -> Result<Vec<FileRow>, Failure> {
        let options = self.editor.options;
        let (output, replaces) = self.output(named)?;
        if self.editor.is_for_wheels() {
            return Err(no_wheel());
        }
        let target = output.path();
        if let ImageSource::Layout(_) = source {
            check_target(&target, replaces, options.output.dry_run)?;
        }
        let mut compression = None;
        if let ImageSource::Archive(archive) = source
            && let Some(like) = archive.compression()?
        {
            let like = match options.package_level {
                Some(level) => like.with_level(level).map_err(of)?,
                None => like,
            };
            compression = Some(like.with_threads(self.share.threads.count()));
        }
        let image = Image { name: named.name(), source, images, compression };
        let looked = self.look_at_all(&image)?;
        let mut members = Members::default();
        let decided = self.decide(&image, looked, &mut members);
        let mut changes = decided.map_err(|failure| match failure {
            // It may be in what was not looked into.
            Failure::NoCode if !(images.notes().is_empty() && images.unread().is_empty()) => {
                let unread = images.unread().iter().map(ToString::to_string);
                let why = unread.chain(images.notes().iter().cloned()).collect();
                self.left(named, why)
            }
            failure => failure,
        })?;
        let numbers: BTreeSet<usize> = changes.layers.keys().copied().collect();
        let drops = options.host.drop_signature;
        if !drops {
            images.check_signatures(&numbers).map_err(of)?;
        }
        let is_changed = !numbers.is_empty();
        if let ImageSource::Archive(Archive { opened, .. }) = source
            && replaces
            && is_changed
        {
            changes.notes.extend(self.unseal(&opened.file)?);
        }
        let new_of = |written: &Written| {
            let new = written.iter().map(|(number, (layer, _))| (*number, layer.clone()));
            images.replace_layers(&new.collect(), drops).map_err(of)
        };
        let mut outputs = Outputs::default();
        let mut lost = Vec::new();
        let is_written = !options.output.dry_run && (is_changed || !replaces);
        let (written, changed, size) = match source {
            _ if !is_written => {
                let is_compressed = image.compression.is_some();
                let place = if is_compressed { Place::Temporary } else { Place::Nowhere };
                let written = self.write_layers(&image, &changes, &place, &mut outputs)?;
                let changed = new_of(&written)?;
                let size = size_after(&image, &changed, &written)?;
                (written, changed, size)
            }
            ImageSource::Layout(layout) => {
                let place = Place::Layout(&target);
                let written = self.write_layers(&image, &changes, &place, &mut outputs)?;
                let changed = new_of(&written)?;
                let size = size_after(&image, &changed, &written)?;
                if self.must_not_grow(source.bytes(), size).is_some() {
                    drop(outputs);
                    let (none, outputs) = (Written::new(), Outputs::default());
                    write_layout(&image, layout, &new_of(&none)?, &none, (&target, outputs))?;
                } else {
                    write_layout(&image, layout, &changed, &written, (&target, outputs))?;
                }
                (written, changed, size)
            }
            ImageSource::Archive(Archive { opened, .. }) => {
                if replaces {
                    changes.warnings.extend(self.compare(named, &opened.file)?);
                }
                let replaced = replaces.then_some(opened.stamp());
                let how = How { new: opened.permissions(), replaces: replaced };
                // The files of new layers never get a name.
                let mut layers = Outputs::default();
                let shrinks = self.editor.shrinks.is_some();
                let mut fill = |out: &mut File| {
                    let place = Place::beside(&target);
                    let written = self.write_layers(&image, &changes, &place, &mut layers);
                    let done = written.and_then(|written| {
                        let changed = new_of(&written)?;
                        Ok((written, changed))
                    });
                    let (written, changed) = match done {
                        Ok(done) => done,
                        Err(failure) => return Ok(Err(failure)),
                    };
                    let size = write_archive(&image, &changed, &written, (&target, &mut *out))?;
                    opened.check()?;
                    let grows = self.must_not_grow(opened.len(), size).is_some();
                    if grows {
                        Retried::File(out).restart()?;
                        copy_part(&opened.file, 0..opened.len(), out)?;
                    } else if replaces {
                        lost = attributes::hand_over(&opened.file, opened.metadata(), out)?;
                        self.listed.note(named, Some(out))?;
                    }
                    Ok(Ok((written, changed, size)))
                };
                let done = outputs.write_named_or_print(&output, how, |out| {
                    if target.as_os_str() != "-" || !shrinks {
                        return fill(out);
                    }
                    // Printed bytes cannot be taken back.
                    let mut file = scratch::file("a new container image")?;
                    let done = fill(&mut file)?;
                    file.rewind()?;
                    io::copy(&mut file, out)?;
                    Ok(done)
                })??;
                if !replaces || self.must_not_grow(opened.len(), done.2).is_none() {
                    outputs.commit()?;
                    self.listed.is_written();
                }
                done
            }
        };
        let stays = self.must_not_grow(source.bytes(), size).filter(|_| is_changed);
        let (written, changed, size) = match &stays {
            Some(why) => {
                members.keep_all(why);
                (Written::new(), new_of(&Written::new())?, source.bytes())
            }
            None => (written, changed, size),
        };
        let is_changed = is_changed && stays.is_none();
        changes.warnings.extend(lost);
        let mut rows = members.rows;
        let place = |file: &str, name: &str| match source {
            ImageSource::Layout(_) => input::display(&target.join(file)) + name,
            ImageSource::Archive(..) => format!("{}:{file}{name}", input::display(&target)),
        };
        for row in &mut rows {
            let file = images.layers().iter().find_map(|layer| {
                let rest = row.file.strip_prefix(&image.name_of(layer.file()))?;
                Some(place(&changed.name(layer.file()), rest))
            });
            if let Some(output) = file {
                row.output = output;
            }
        }
        for (number, layer) in images.layers().iter().enumerate() {
            let mut row = FileRow::default();
            row.file = image.name_of(layer.file());
            row.output = place(&changed.name(layer.file()), "");
            row.size_before = source.size(layer.file()).unwrap_or(0);
            row.size_after = written.get(&number).map_or(row.size_before, |(new, _)| new.size());
            (row.about, row.changed) = (About::Layer, written.contains_key(&number));
            rows.push(row.written(options.output.dry_run, replaces));
        }
        let mut whole = FileRow::default();
        (whole.file, whole.output) = (named.name().to_owned(), input::display(&target));
        (whole.size_before, whole.size_after) = (source.bytes(), size);
        (whole.about, whole.changed) = (About::Package, is_changed);
        changes.notes.extend(changed.notes().iter().cloned());
        (whole.notes, whole.warnings) = (changes.notes, changes.warnings);
        whole.stays = stays.map_or(Stays::Nothing, Stays::Refused);
        rows.push(whole.written(options.output.dry_run, replaces));
        Ok(rows)
    }
}

/// Fails if a new layout cannot be made at a path.
fn check_target(target: &Path, replaces: bool, dry_run: bool) -> Result<(), Failure> {
    if replaces && !dry_run {
        return Err(Failure::refused("is an image: a new one is written beside it, with --output"));
    }
    if target.as_os_str() == "-" {
        return Err(Failure::refused("is a directory: expected one as --output, found -"));
    }
    if !replaces && !dry_run && fs::symlink_metadata(target).is_ok() {
        let target = target.display();
        return Err(Failure::refused(format!("'{target}' exists: expected a new directory")));
    }
    Ok(())
}
