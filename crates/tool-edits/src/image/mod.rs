//! Edits of container images: files of their layers are edited, and all that names the layers by their hashes follows.

mod layers;
mod source;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Seek};
use std::iter;
use std::path::{Path, PathBuf};

use device_select::{LoosePlace, few};
use gpu_packages::{
    ChangedImages, FileChange, ImageArchive, ImageFiles, ImageLayer, ImageView, Images, LayerFile,
    LayerMembers, NewFile, NewLayer,
};

use super::job::Job;
use super::members::Members;
use super::package::{of, text};
use super::report::{About, FileRow};
use super::words::{allow, no_wheel};
use layers::{Fate, Looked, Looking, New};
use source::{ImageFile, Layout};
pub(crate) use source::{ImageSource, is_layout, layout_of};
use tool_inputs::inputs::Input;
use tool_kit::attributes;
use tool_kit::failure::Failure;
use tool_kit::output::{How, Name, Outputs, copy_part};
use tool_kit::parallel::{self, Shares};
use tool_kit::permissions::NewPermissions;
use tool_kit::retried::Retried;
use tool_kit::{input, scratch};

/// An image that is edited.
struct Image<'a> {
    name: &'a str,
    source: &'a ImageSource,
    images: &'a Images,
}

impl Image<'_> {
    /// Returns the name of a file of the image, as `ls` has it.
    fn name_of(&self, file: &str) -> String {
        match self.source {
            ImageSource::Layout(layout) => input::display(&layout.path_of(file)),
            ImageSource::Archive(..) => format!("{}:{file}", self.name),
        }
    }

    fn layer(&self, number: usize) -> Result<(&ImageLayer, ImageFile), Failure> {
        let layer = self.images.layers().get(number);
        let layer = layer.ok_or_else(|| Failure::from("a layer is missing".to_owned()))?;
        Ok((layer, self.source.open(layer.file())?))
    }
}

/// What the layers of an image are to become.
#[derive(Default)]
struct Changes {
    /// For each layer its members with new contents.
    layers: BTreeMap<usize, BTreeMap<usize, New>>,
    files: HashMap<LayerFile, FileChange>,
    warnings: Vec<String>,
    notes: Vec<String>,
}

impl Changes {
    fn add(&mut self, file: LayerFile, new: New) {
        self.layers.entry(file.layer).or_default().insert(file.member, new);
    }
}

impl Job<'_> {
    /// Edits the files of an image, and writes it again.
    pub(crate) fn edit_image(
        &mut self,
        named: &Input,
        source: &ImageSource,
        images: &Images,
    ) -> Result<Vec<FileRow>, Failure> {
        let options = self.editor.options;
        let (output, replaces) = self.output(named)?;
        if options.output.build_tag.is_some() {
            return Err(no_wheel());
        }
        let target = output.path();
        if let ImageSource::Layout(_) = source {
            check_target(&target, replaces, options.output.dry_run)?;
        }
        let image = Image { name: named.name(), source, images };
        let looked = self.look_at_all(&image)?;
        let mut members = Members::default();
        let mut changes = self.decide(&image, looked, &mut members)?;
        let numbers: BTreeSet<usize> = changes.layers.keys().copied().collect();
        let drops = options.host.drop_signature;
        if !drops {
            images.check_signatures(&numbers).map_err(of)?;
        }
        let is_changed = !numbers.is_empty();
        let made = match (source, &*target) {
            _ if options.output.dry_run || !is_changed => None,
            (ImageSource::Layout(_), _) => Some(Place::Layout),
            (_, path) if path.as_os_str() == "-" => Some(Place::Nowhere),
            (_, path) => Some(Place::Beside(path.parent().unwrap_or(Path::new("")).to_owned())),
        };
        let mut outputs = Outputs::default();
        let written =
            self.write_layers(&image, &changes, made.as_ref(), (&target, &mut outputs))?;
        let new = written.iter().map(|(number, (layer, _))| (*number, layer.clone())).collect();
        let changed = images.replace_layers(&new, drops).map_err(of)?;
        let mut size = size_after(source, images, &changed, &new);
        if !options.output.dry_run && (is_changed || !replaces) {
            match source {
                ImageSource::Layout(layout) => {
                    write_layout(&image, layout, &changed, &written, (&target, outputs))?;
                }
                ImageSource::Archive(opened, _) => {
                    let how = How {
                        new: opened.permissions(),
                        replaces: replaces.then_some(opened.stamp()),
                    };
                    let seal = if replaces { self.unseal(&opened.file)? } else { None };
                    changes.notes.extend(seal);
                    if replaces {
                        changes.warnings.extend(self.compare(named, &opened.file)?);
                    }
                    let mut new = Outputs::default();
                    new.write_named_or_print(&output, how, |out| {
                        write_archive(&image, &changed, &written, &mut *out)?;
                        opened.check()?;
                        if target.as_os_str() != "-" {
                            size = out.metadata()?.len();
                        }
                        if replaces {
                            let lost = attributes::hand_over(&opened.file, opened.metadata(), out)?;
                            changes.warnings.extend(lost);
                            self.listed.note(named, Some(out))?;
                        }
                        Ok(())
                    })?;
                    // The files of new layers have no name, and go.
                    drop(outputs);
                    new.commit()?;
                    self.listed.is_written();
                }
            }
        }
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
            row.output = file.unwrap_or_default();
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
        rows.push(whole.written(options.output.dry_run, replaces));
        Ok(rows)
    }

    /// Does something with each layer of some, several at the same time.
    fn each_layer<R: Send>(
        &self,
        numbers: &[usize],
        work: impl Fn(&Job<'_>, usize) -> Result<R, Failure> + Sync,
    ) -> Result<Vec<R>, Failure> {
        let (editor, lists, loose) = (self.editor, self.lists, self.loose);
        let most = self.most_held;
        // Large libraries need much, and work that needs more than its share is done once more.
        let shares = usize::try_from(most / WORTHWHILE).unwrap_or(usize::MAX).max(1);
        let paths = iter::repeat_n(Path::new(""), numbers.len().min(shares));
        let (at_once, each) = self.share.threads.for_files(paths);
        let shares = Shares::new(most, self.share.threads, (at_once, each));
        let work = |number: &usize| {
            shares.run(|share| {
                let mut job = Job::new(editor, (lists, loose), share);
                job.most_held = share.bytes.unwrap_or(most);
                // Layers are written while others are not read yet.
                job.stage.set(super::job::Stage::Left);
                let done = work(&job, *number);
                let needs_more = share.bytes.is_some() && (job.needs_more() || done.is_err());
                if needs_more { Err(done) } else { Ok(done) }
            })
        };
        let mut all = Vec::new();
        parallel::in_order(at_once, numbers, work, |_, done| {
            all.push(done?);
            Ok(())
        })
        .map(|()| all)
    }

    fn look_at_all(&self, image: &Image<'_>) -> Result<Vec<Looked>, Failure> {
        let numbers: Vec<usize> = (0..image.images.layers().len()).collect();
        self.each_layer(&numbers, |job, number| {
            let (layer, file) = image.layer(number)?;
            job.look((layer, &file), &image.name_of(layer.file()))
        })
    }

    /// Decides what becomes of the files that are visible, and of the lists that have them.
    fn decide(
        &self,
        image: &Image<'_>,
        looked: Vec<Looked>,
        settled: &mut Members,
    ) -> Result<Changes, Failure> {
        let (mut members, mut files, mut packages) = (Vec::new(), Vec::new(), Vec::new());
        for (layer, looked) in looked.into_iter().enumerate() {
            members.push(looked.members);
            files.extend(looked.files.into_iter().map(|it| (LayerFile::new(layer, it.member), it)));
            packages.extend(looked.packages.into_iter().map(|it| LayerFile::new(layer, it)));
        }
        let findings: Vec<String> = image
            .images
            .findings()
            .iter()
            .chain(members.iter().flat_map(LayerMembers::findings))
            .map(ToString::to_string)
            .collect();
        let mut changes = Changes::default();
        changes.warnings.extend(allow(self.editor.options, &findings)?);
        changes.notes.extend(image.images.notes().iter().cloned());
        let (mut visible, mut covering) = (HashSet::new(), HashSet::new());
        for number in 0..image.images.images().len() {
            let view = image.images.view(number, &members);
            let covers = |view: &ImageView, path: &[u8]| view.covers(path);
            for (path, file) in view.files() {
                visible.insert(file);
                covering.extend(covers(&view, path).then_some(file));
            }
        }
        let path_of = |file: LayerFile| {
            let layer = image.images.layers().get(file.layer).map_or("", ImageLayer::file);
            let path = members.get(file.layer).and_then(|it| it.path(file.member)).unwrap_or(b"");
            (image.name_of(layer), text(path))
        };
        files.retain(|(file, _)| visible.contains(file));
        let going = self.loose_files(&files)?;
        let mut kept = Vec::new();
        for (file, Looking { old, size, fate, .. }) in files {
            let (layer, path) = path_of(file);
            let name = format!("{layer}:{path}");
            if going.contains(&file) || matches!(fate, Fate::Goes) {
                if covering.contains(&file) {
                    kept.push(path);
                    continue;
                }
                let row = FileRow::deleted(&name, size);
                settled.rows.push(row.of_package(self.editor.options.output.dry_run));
                changes.files.insert(file, FileChange::new(old, None));
                changes.add(file, New::Removed);
                continue;
            }
            let Fate::Planned(planned) = fate else { continue };
            let short = name.strip_prefix(image.name).unwrap_or(&name);
            let short = short.strip_prefix([':', '/']).unwrap_or(short);
            let Some((new, row)) = settled.settle(short, planned.map(Some))? else { continue };
            settled.rows.push(row);
            if let Some(new) = new {
                changes.files.insert(file, FileChange::new(old, Some(new)));
                changes.add(file, New::Edited);
            }
        }
        let inner = packages.into_iter().filter(|file| visible.contains(file));
        settled.unopened.packages = inner.map(|file| path_of(file).1).collect();
        settled.check(self.editor.shrinks.is_some())?;
        changes.notes.extend(settled.notes());
        if !kept.is_empty() {
            let text = "not deleted, because a lower layer has a file of the same name";
            changes.notes.push(format!("{text}: {}", few(&kept)));
        }
        let lists = image.images.change_lists(&members, &changes.files).map_err(of)?;
        let findings: Vec<String> = lists.findings.iter().map(ToString::to_string).collect();
        changes.warnings.extend(allow(self.editor.options, &findings)?);
        lists.texts.into_iter().for_each(|(file, text)| changes.add(file, New::List(text)));
        let tables = changes
            .layers
            .keys()
            .filter(|number| members.get(**number).is_some_and(LayerMembers::has_stargz_index));
        let tables: Vec<&str> = tables
            .filter_map(|number| image.images.layers().get(*number).map(ImageLayer::file))
            .collect();
        if !tables.is_empty() {
            let text = "stargz.index.json is dropped: layers that change are no longer eStargz";
            changes.notes.push(format!("{text}: {}", few(&tables)));
        }
        Ok(changes)
    }

    /// Returns the loose images that go.
    fn loose_files(&self, files: &[(LayerFile, Looking)]) -> Result<HashSet<LayerFile>, Failure> {
        let Some(databases) = self.editor.databases else { return Ok(HashSet::new()) };
        let mut place = LoosePlace::default();
        let loose = || files.iter().filter_map(|(file, it)| Some((*file, it.loose.as_ref()?)));
        loose().for_each(|(_, image)| place.add(image));
        if place.images() == 0 || !databases.thins(&place)? {
            return Ok(HashSet::new());
        }
        Ok(loose().filter(|(_, image)| databases.drops(image)).map(|(file, _)| file).collect())
    }

    /// Writes the layers that change to files that have no name yet.
    fn write_layers(
        &self,
        image: &Image<'_>,
        changes: &Changes,
        place: Option<&Place>,
        (target, outputs): (&Path, &mut Outputs),
    ) -> Result<BTreeMap<usize, (NewLayer, Option<File>)>, Failure> {
        let numbers: Vec<usize> = changes.layers.keys().copied().collect();
        let mut files = BTreeMap::new();
        for number in &numbers {
            let file = match place {
                None => None,
                Some(Place::Nowhere) => Some(scratch::file("a new layer")?),
                Some(Place::Layout) => {
                    let (layer, old) = image.layer(*number)?;
                    let name = temporary_name(outputs, target, layer.file(), *number)?;
                    let how = How::from(old.opened.permissions());
                    Some(outputs.write(&name, how, |file| file.try_clone())?)
                }
                Some(Place::Beside(directory)) => {
                    let name = directory.join(format!("new-layer-{number}"));
                    let how = How::from(NewPermissions::PLAIN);
                    Some(outputs.write(&Name::Typed(name), how, |file| file.try_clone())?)
                }
            };
            files.insert(*number, file);
        }
        let layers = self.each_layer(&numbers, |job, number| {
            let (layer, file) = image.layer(number)?;
            let none = BTreeMap::new();
            let new = changes.layers.get(&number).unwrap_or(&none);
            let mut out = match files.get(&number).and_then(Option::as_ref) {
                Some(file) => Some(file.try_clone()?),
                None => None,
            };
            let mut out = out.as_mut().map_or(Retried::Counted(0), Retried::File);
            job.write_layer((layer, &file), new, &mut out)
        })?;
        let layers = numbers.into_iter().zip(layers);
        Ok(layers
            .map(|(number, layer)| (number, (layer, files.remove(&number).flatten())))
            .collect())
    }
}

/// The fewest bytes for each of several layers at the same time.
const WORTHWHILE: u64 = 512 << 20;

/// The place of new layers until they have a name.
enum Place {
    /// In the new layout.
    Layout,
    /// In the directory of the new archive, where they never get one.
    Beside(PathBuf),
    /// In a temporary file.
    Nowhere,
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
fn size_after(
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

type Written = BTreeMap<usize, (NewLayer, Option<File>)>;

/// Writes a new layout. The new layers are there, without their names.
fn write_layout(
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
        let new_file = directory.file(new_path.file_name().unwrap_or_default());
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
fn write_archive(
    image: &Image<'_>,
    changed: &ChangedImages,
    written: &Written,
    out: &mut File,
) -> io::Result<()> {
    let ImageSource::Archive(opened, _) = image.source else { return Ok(()) };
    let numbers: HashMap<&str, usize> =
        image.images.layers().iter().map(ImageLayer::file).zip(0..).collect();
    let old = BufReader::with_capacity(1 << 20, opened.reader());
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
