//! Container images as sets of files: the layers on top of each other, without what higher layers replace or remove.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::path::PathBuf;
use std::sync::Arc;

use gpu_packages::{
    Error, ErrorKind, Finding, FindingKind, ImageLayer, ImageView, Images, LayerFile, LayerMembers,
    MAX_VARIANT_JSON, Member, Options, Record, VisibleMembers,
};

use crate::image_files::ImageSource;
use crate::limits::Limits;
use tool_kit::input;
use tool_kit::parallel::{self, Threads};

/// The place of a file in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of the image.
    pub image: Arc<str>,
    /// The path of the file in it, for messages.
    pub name: String,
    /// The path where it is installed.
    pub path: PathBuf,
    /// The names of the variants that it was installed from, with its path in each.
    pub variants: Vec<(Arc<str>, String)>,
}

/// A variant of a wheel that is installed in an image.
pub struct ImageVariant {
    /// The names of the image and the distribution.
    pub name: Arc<str>,
    /// Its `variant.json`.
    pub json: Vec<u8>,
    /// The reason why its files are not known.
    pub fault: Option<String>,
}

/// The images of a layout or an archive.
#[derive(Debug)]
pub(crate) struct Merged {
    /// Names of the images, each different.
    pub(crate) names: Arc<[Arc<str>]>,
    visible: VisibleMembers,
    /// Faults of documents, and of layers if their hashes were compared; images that are not read.
    pub(crate) findings: Vec<Finding>,
    /// Reasons why a part is not looked into.
    pub(crate) notes: Vec<String>,
    /// Installed variants of wheels.
    pub(crate) variants: Vec<ImageVariant>,
    /// Their files, by the numbers of images and the paths in these.
    files: HashMap<(usize, Vec<u8>), Vec<OfVariant>>,
}

/// The name of a variant that a file is of, and its path there.
type OfVariant = (Arc<str>, String);

/// The `variant.json` of each distribution in a layer, by member.
type KeptInLayer = Vec<(usize, Vec<u8>)>;

/// The `variant.json` of each distribution, by layer and member.
type Kept = HashMap<(usize, usize), Vec<u8>>;

/// The end of the path of the metadata of an installed variant.
const VARIANT_JSON: &[u8] = b".dist-info/variant.json";

/// Bytes that are held for each file of a variant, beside its name.
const FILE: u64 = 96;

impl Merged {
    /// Reads the images of a file or a directory of this name; `None` if there are none. With `verifies`, the hashes of all layers are
    /// compared.
    ///
    /// # Errors
    ///
    /// Documents and layers that cannot be read; images with more names than `limits` allow.
    pub(crate) fn read(
        (name, source): (&str, &ImageSource),
        limits: &Limits,
        threads: Threads,
        verifies: bool,
    ) -> io::Result<Option<Self>> {
        let most = limits.held_of(source.bytes());
        let Some(images) = Images::read(source, most)? else { return Ok(None) };
        if images.images().len() == 0 {
            let unread = images.unread().iter().map(ToString::to_string);
            let why: Vec<_> = unread.chain(images.notes().iter().cloned()).collect();
            if why.is_empty() {
                return Ok(None);
            }
            return Err(io::Error::new(io::ErrorKind::InvalidData, why.join("; ")));
        }
        let (members, kept) = read_layers(&images, source, limits, threads, verifies)?;
        let merged = Merged::of(name, &images, most);
        let mut merging = Merging { merged, members: &members, kept: &kept };
        if verifies {
            merging.add_findings();
        }
        merging.merged.visible.hold(members.iter().map(LayerMembers::held).sum())?;
        for (image, view) in images.views(&members)?.enumerate() {
            for (path, file) in view.files() {
                merging.add_variant(&view, image, (path, file), verifies)?;
            }
            merging.merged.visible.add(image, &view, (&images, &members))?;
        }
        Ok(Some(merging.merged))
    }

    /// Returns images whose files are not known yet.
    fn of(name: &str, images: &Images, most: u64) -> Self {
        Merged {
            names: names_of(name, images),
            visible: VisibleMembers::new(images, most),
            findings: images.findings().iter().chain(images.unread()).map(copy).collect(),
            notes: images.notes().to_vec(),
            variants: Vec::new(),
            files: HashMap::new(),
        }
    }

    /// Returns the places of a member in the images: `None` if it is not visible in one, none for a member that does not lie in a
    /// layer. `file` is the name of the file that the path of the member counts from; `None` for an archive.
    pub(crate) fn places(&self, file: Option<&str>, member: &Member) -> Option<Vec<Place>> {
        let seen = self.visible.places(file, member)?;
        let names = member.path().names().skip(if file.is_some() { 1 } else { 2 });
        let inner: String = names.map(|it| format!(":{}", String::from_utf8_lossy(it))).collect();
        let is_inner = !inner.is_empty();
        let place = |(number, path): (usize, &[u8])| {
            let name = format!("{}{inner}", String::from_utf8_lossy(path));
            let of_file = || self.files.get(&(number, path.to_vec())).filter(|_| !is_inner);
            let variants = of_file().into_iter().flatten().cloned().collect();
            let path = if is_inner { member.path().installed() } else { path };
            let image = Arc::clone(self.names.get(number)?);
            Some(Place { image, name, path: input::path(path), variants })
        };
        Some(seen.into_iter().filter_map(place).collect())
    }

    /// Returns whether a member of an archive lies beside its images.
    pub(crate) fn is_beside(&self, file: Option<&str>, member: &Member) -> bool {
        file.is_none() && self.visible.is_beside(member)
    }

    /// Returns whether a file is a layer of an image.
    pub(crate) fn is_layer(&self, file: &str) -> bool {
        self.visible.is_layer(file)
    }
}

/// Returns the names of the images, each different. The only one has the name of the file.
fn names_of(name: &str, images: &Images) -> Arc<[Arc<str>]> {
    let names = images.names();
    if names.len() == 1 && images.unread().is_empty() {
        return Arc::new([Arc::from(name)]);
    }
    names.iter().map(|it| Arc::from(format!("{name} ({it})"))).collect()
}

/// Images whose files are collected.
struct Merging<'a> {
    merged: Merged,
    members: &'a [LayerMembers],
    kept: &'a Kept,
}

impl Merging<'_> {
    /// Adds the differences of layers from their hashes. A walk finds the other faults.
    fn add_findings(&mut self) {
        let of_layers = self.members.iter().flat_map(LayerMembers::findings);
        let differ = of_layers.filter(|it| it.kind == FindingKind::Record);
        self.merged.findings.extend(differ.map(copy));
    }

    /// Adds the installed variant that has this file as its `variant.json`, if there is one. With `verifies`, its files are known.
    fn add_variant(
        &mut self,
        view: &ImageView,
        image: usize,
        (path, file): (&[u8], LayerFile),
        verifies: bool,
    ) -> io::Result<()> {
        let Some(json) = self.kept.get(&(file.layer, file.member)) else { return Ok(()) };
        let name = self.merged.names.get(image).cloned();
        let Some((name, info)) = name.zip(path.strip_suffix(VARIANT_JSON)) else { return Ok(()) };
        let mut variant = ImageVariant::new(&name, info, json);
        if verifies {
            let list = [info, b".dist-info/RECORD"].concat();
            let (of_variant, members) = (Arc::clone(&variant.name), self.members);
            let text = view.file(&list).and_then(|it| members.get(it.layer)?.list(it.member));
            let files = listed(info, text, |path, row| {
                self.merged.visible.hold(FILE + (path.len() + row.len()) as u64)?;
                let of_file = self.merged.files.entry((image, path)).or_default();
                of_file.push((Arc::clone(&of_variant), row));
                Ok(())
            })?;
            if let Err(text) = files {
                let list = String::from_utf8_lossy(&list);
                variant.fault = Some(format!("{name}:{list}: {text}"));
            }
        }
        self.merged.variants.push(variant);
        Ok(())
    }
}

fn copy(finding: &Finding) -> Finding {
    Finding::new(finding.path.clone(), finding.kind, finding.error.to_string())
}

impl fmt::Debug for ImageVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImageVariant")
            .field("name", &self.name)
            .field("json", &self.json.len())
            .field("fault", &self.fault)
            .finish()
    }
}

impl ImageVariant {
    /// An image may have several environments, so the path of the directory is in the name.
    fn new(image: &str, info: &[u8], json: &[u8]) -> Self {
        let directory = String::from_utf8_lossy(info);
        let end = directory.rfind('/').map_or(0, |at| at + 1);
        let (site, name) = directory.split_at(end);
        let name = name.split('-').next().unwrap_or(name);
        let name = Arc::from(format!("{image}:{site}{name}"));
        ImageVariant { name, json: json.to_vec(), fault: None }
    }
}

/// Hands the paths of the files of a distribution in an image to `take`, with those in its list. `info` is the path of its directory,
/// without the extension.
fn listed(
    info: &[u8],
    list: Option<&[u8]>,
    mut take: impl FnMut(Vec<u8>, String) -> io::Result<()>,
) -> io::Result<Result<(), String>> {
    let Some(list) = list else { return Ok(Err("is not there".to_owned())) };
    let record = match Record::parse(list) {
        Ok(record) => record,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let site: Vec<&[u8]> = info.split(|&byte| byte == b'/').collect();
    for row in record.rows() {
        let mut names = site.split_last().map_or(&[][..], |(_, site)| site).to_vec();
        for name in row.path().split(|&byte| byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => _ = names.pop(),
                name => names.push(name),
            }
        }
        take(names.join(&b'/'), String::from_utf8_lossy(row.path()).into())?;
    }
    Ok(Ok(()))
}

fn too_many(most: u64) -> io::Error {
    let text =
        format!("the names of the files in all images exceed the limit of {most} bytes held");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Reads the names of the members of all layers, several layers at the same time.
fn read_layers(
    images: &Images,
    source: &ImageSource,
    limits: &Limits,
    threads: Threads,
    verifies: bool,
) -> io::Result<(Vec<LayerMembers>, Kept)> {
    let read = |layer: &ImageLayer| -> io::Result<(LayerMembers, KeptInLayer)> {
        let file = source.open(layer.file())?;
        let options: Options = limits.for_package(file.size());
        let reader = BufReader::with_capacity(1 << 16, file.reader());
        let most = limits.held_of(file.size());
        let (mut kept, mut held) = (Vec::new(), most);
        let mut keep = |member: usize, path: &[u8], contents: &mut dyn Read| {
            if path.ends_with(VARIANT_JSON) {
                let mut json = Vec::new();
                // A larger one is refused by who reads it.
                contents.take(MAX_VARIANT_JSON + 1).read_to_end(&mut json)?;
                held = held.checked_sub(json.len() as u64).ok_or_else(|| too_many(most))?;
                kept.push((member, json));
            }
            Ok(())
        };
        let members = if verifies {
            layer.read(reader, file.size(), &options, |member, path, it| keep(member, path, it))
        } else {
            layer.names(reader, file.size(), &options, keep)
        };
        file.opened.check()?;
        let members = members.map_err(|error: Error| match error.kind() {
            ErrorKind::Io => error.into(),
            _ => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
        })?;
        Ok((members, kept))
    };
    let (mut all, mut all_kept, mut room) =
        (Vec::new(), Kept::new(), limits.held_of(source.bytes()));
    let most = room;
    parallel::in_order(threads.count(), images.layers(), read, |_, read| {
        let (members, kept) = read?;
        let held = members.held() + kept.iter().map(|(_, json)| json.len() as u64).sum::<u64>();
        room = room.checked_sub(held).ok_or_else(|| too_many(most))?;
        all_kept.extend(kept.into_iter().map(|(member, json)| ((all.len(), member), json)));
        all.push(members);
        io::Result::Ok(())
    })?;
    Ok((all, all_kept))
}
