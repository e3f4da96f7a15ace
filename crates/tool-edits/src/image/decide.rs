//! Decisions about the files of all layers of an image.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use device_select::{LoosePlace, few};
use gpu_packages::{Compression, FileChange, ImageLayer, Images, LayerFile, LayerMembers};

use super::layers::{Fate, Looked, Looking, New};
use crate::job::{Job, Stage};
use crate::members::Members;
use crate::package::text;
use crate::report::FileRow;
use crate::words::{allow, of_package as of};
use tool_inputs::image_files::{ImageFile, ImageSource};
use tool_kit::failure::Failure;
use tool_kit::input;
use tool_kit::parallel::{self, Shares};

/// An image that is edited.
pub(super) struct Image<'a> {
    pub(super) name: &'a str,
    pub(super) source: &'a ImageSource,
    pub(super) images: &'a Images,
    /// The compression of the whole archive, if it has one.
    pub(super) compression: Option<Compression>,
}

impl Image<'_> {
    /// Returns the name of a file of the image, as `ls` has it.
    pub(super) fn name_of(&self, file: &str) -> String {
        match self.source {
            ImageSource::Layout(layout) => input::display(&layout.path_of(file)),
            ImageSource::Archive(..) => format!("{}:{file}", self.name),
        }
    }

    pub(super) fn layer(&self, number: usize) -> Result<(&ImageLayer, ImageFile), Failure> {
        let layer = self.images.layers().get(number);
        let layer = layer.ok_or_else(|| Failure::from("a layer is missing".to_owned()))?;
        Ok((layer, self.source.open(layer.file())?))
    }
}

/// The decisions about the layers of an image.
#[derive(Default)]
pub(super) struct Changes {
    /// For each layer its members with new contents.
    pub(super) layers: BTreeMap<usize, BTreeMap<usize, New>>,
    pub(super) files: HashMap<LayerFile, FileChange>,
    pub(super) warnings: Vec<String>,
    pub(super) notes: Vec<String>,
}

impl Changes {
    pub(super) fn add(&mut self, file: LayerFile, new: New) {
        self.layers.entry(file.layer).or_default().insert(file.member, new);
    }
}

/// The fewest bytes for each of several layers at the same time.
const WORTHWHILE: u64 = 512 << 20;

impl Job<'_> {
    /// Does something with each layer of some, several at the same time.
    pub(super) fn each_layer<R: Send>(
        &self,
        numbers: &[usize],
        work: impl Fn(&Job<'_>, usize) -> Result<R, Failure> + Sync,
    ) -> Result<Vec<R>, Failure> {
        let (editor, lists, loose) = (self.editor, self.lists, self.loose);
        let most = self.most_held;
        // Large libraries need much, and work that needs more than its share is done once more.
        let all = numbers.len();
        let shares =
            usize::try_from(most / WORTHWHILE).map_or(all, |shares| shares.clamp(1, all.max(1)));
        let paths = iter::repeat_n(Path::new(""), all.min(shares));
        let (at_once, each) = self.share.threads.for_files(paths);
        let shares = Shares::new(most, self.share.threads, (at_once, each));
        let work = |number: &usize| {
            shares.run(|share| {
                let mut job = Job::new(editor, (lists, loose), share);
                job.most_held = share.bytes.unwrap_or(most);
                // Layers are written while others are not read yet.
                job.stage.set(Stage::Left);
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

    pub(super) fn look_at_all(&self, image: &Image<'_>) -> Result<Vec<Looked>, Failure> {
        let numbers: Vec<usize> = (0..image.images.layers().len()).collect();
        let most = self.most_held;
        let held = Mutex::new((HashSet::new(), most));
        self.each_layer(&numbers, |job, number| {
            let (layer, file) = image.layer(number)?;
            let looked = job.look((layer, &file), &image.name_of(layer.file()))?;
            // A layer is looked at again if it needs more than its share.
            let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
            if !held.0.contains(&number) {
                held.1 = held.1.checked_sub(looked.members.held()).ok_or_else(|| {
                    let text = "the names and lists of files in all layers exceed the limit of";
                    Failure::refused(format!("{text} {most} bytes held"))
                })?;
                held.0.insert(number);
            }
            Ok(looked)
        })
    }

    /// Decides what becomes of the files that are visible, and of the lists that have them.
    pub(super) fn decide(
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
            .chain(image.images.unread())
            .chain(members.iter().flat_map(LayerMembers::findings))
            .map(ToString::to_string)
            .collect();
        let mut changes = Changes::default();
        changes.warnings.extend(allow(self.editor.options, &findings)?);
        changes.notes.extend(image.images.notes().iter().cloned());
        let (mut visible, mut covering) = (HashSet::new(), HashSet::new());
        let mut linked = HashSet::new();
        for view in image.images.views(&members).map_err(of)? {
            linked.extend(view.linked());
            for (path, file) in view.files() {
                visible.insert(file);
                covering.extend(view.covers(path).then_some(file));
            }
        }
        let path_of = |file: LayerFile| {
            let layer = image.images.layers().get(file.layer).map_or("", ImageLayer::file);
            let path = members.get(file.layer).and_then(|it| it.path(file.member)).unwrap_or(b"");
            (image.name_of(layer), text(path))
        };
        files.retain(|(file, _)| visible.contains(file));
        let going = self.loose_files(&files)?;
        let (mut kept, mut kept_for_links) = (Vec::new(), Vec::new());
        let mut row_of = HashMap::new();
        for (file, Looking { old, size, fate, .. }) in files {
            let (layer, path) = path_of(file);
            let name = format!("{layer}:{path}");
            if going.contains(&file) || matches!(fate, Fate::Goes) {
                if covering.contains(&file) {
                    kept.push(path);
                    continue;
                }
                if linked.contains(&file) {
                    kept_for_links.push(path);
                    continue;
                }
                let row = FileRow::deleted(&name, size);
                row_of.insert(file, settled.rows.len());
                settled.rows.push(row.of_package(self.editor.options.output.dry_run));
                changes.files.insert(file, FileChange::new(old, None));
                changes.add(file, New::Removed);
                continue;
            }
            let Fate::Planned(planned) = fate else { continue };
            let short = name.strip_prefix(image.name).unwrap_or(&name);
            let short = short.strip_prefix([':', '/']).unwrap_or(short);
            let Some((new, row)) = settled.settle(short, planned.map(Some))? else { continue };
            row_of.insert(file, settled.rows.len());
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
        for (kept, why) in [
            (&kept, "a lower layer has a file of the same name"),
            (&kept_for_links, "a hard link in another layer leads to it"),
        ] {
            if !kept.is_empty() {
                changes.notes.push(format!("not deleted, because {why}: {}", few(kept)));
            }
        }
        let change_lists =
            |changes: &Changes| image.images.change_lists(&members, &changes.files).map_err(of);
        let mut lists = change_lists(&changes)?;
        // As in environments, a file stays that differs from its list.
        while self.editor.shrinks.is_some() && !lists.wrong.is_empty() {
            for (file, why) in &lists.wrong {
                let row = row_of.get(file).and_then(|at| settled.rows.get_mut(*at));
                if let Some(row) = row.filter(|_| changes.files.remove(file).is_some()) {
                    *row = std::mem::take(row).unchanged(why.to_string());
                }
                if let Some(layer) = changes.layers.get_mut(&file.layer) {
                    layer.remove(&file.member);
                }
            }
            changes.layers.retain(|_, members| !members.is_empty());
            lists = change_lists(&changes)?;
        }
        let findings: Vec<String> = lists.wrong.iter().map(|(_, it)| it.to_string()).collect();
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
}
