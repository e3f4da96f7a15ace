//! Images and containers of a file, as people name them.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek};

use bundle_format::EntryId;
use device_select::{Wanted, few, is_host};
use fat_object::{ContainerKind, FileFormat, Finding, Image, ImageInfo, Options, Visitor, walk};

use crate::error::{Error, ErrorKind, Problem, text_of};
use crate::survey::{EditableContainer, EditableFile};

/// The images of a file by their IDs and by the numbers that a [listing](fat_object::list()) gives them.
///
/// ```
/// use std::io::Cursor;
/// use fat_edit::{ErrorKind, survey};
/// use fat_object::Options;
///
/// let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 1)], 1)?;
/// let mut file = Cursor::new(layout.to_vec(&[b"x"])?);
/// let surveyed = survey(&mut file, &Options::default())?;
/// let named = surveyed.named(&mut file, &Options::default(), &[])?;
/// assert_eq!(named.only("gfx906")?.index(), 0);
/// assert_eq!(named.only("gfx90a").unwrap_err().kind(), ErrorKind::Missing);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NamedImages<'f> {
    file: &'f EditableFile,
    within: &'f [String],
    /// By the index of the image. Empty if the index is the number.
    numbers: Vec<usize>,
}

impl EditableFile {
    /// Returns the names of the images in containers whose paths have all of the steps `within`, each as `bundle:1`. `input` is the
    /// file, and `options` are those of a walk.
    ///
    /// # Errors
    ///
    /// [`Read`](ErrorKind::Read) if the file cannot be read, [`Missing`](ErrorKind::Missing) if no container has these steps.
    pub fn named<'f, R: Read + Seek>(
        &'f self,
        input: R,
        options: &Options,
        within: &'f [String],
    ) -> Result<NamedImages<'f>, Error> {
        let numbers = self.numbers(input, options).map_err(Problem::from)?;
        let named = NamedImages { file: self, within, numbers };
        if !self.containers().iter().any(|container| named.includes(container)) {
            let places = few(self.containers().iter().map(|one| text_of(one.path(), "")));
            let text = format!("nothing{}; there is {places}", named.within());
            return Err(Problem::missing(text).into());
        }
        Ok(named)
    }

    /// Returns the numbers that a listing gives the images, by their index: it also counts images in images. Empty if there are none
    /// of these.
    fn numbers<R: Read + Seek>(&self, mut input: R, options: &Options) -> io::Result<Vec<usize>> {
        struct Numbers(Vec<usize>);
        impl Visitor for Numbers {
            fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
                if image.path().iter().all(|step| step.kind() != ContainerKind::Image) {
                    self.0.push(image.index());
                }
                Ok(())
            }

            fn finding(&mut self, _finding: &Finding) -> io::Result<()> {
                Ok(())
            }
        }
        let may_hold = |image: &ImageInfo| {
            image.format().may_hold_images() || image.format() == FileFormat::Bitcode
        };
        let mut numbers = Numbers(Vec::new());
        if self.images().iter().any(may_hold) {
            // The survey compared the hashes, unless that was not wanted.
            walk(&mut input, &options.clone().with_verify_hash(false), &mut numbers)?;
        }
        Ok(numbers.0)
    }
}

impl<'f> NamedImages<'f> {
    /// Returns the number of an image in a listing.
    #[must_use]
    pub fn number(&self, image: &ImageInfo) -> usize {
        self.numbers.get(image.index()).copied().unwrap_or(image.index())
    }

    /// Returns all images with exactly this ID, or with this target ID if that is all of `id`.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if no image fits, [`Ambiguous`](ErrorKind::Ambiguous) if entries of several IDs have the target
    /// ID.
    pub fn with_id(&self, id: &str) -> Result<Vec<&'f ImageInfo>, Error> {
        let mut found = self.identified(id);
        if found.is_empty()
            && let Ok(wanted) = Wanted::parse(id)
            && wanted.target().kind().is_none()
        {
            found = self.devices().filter(|image| wanted.names(image.target())).collect();
        }
        let Some((first, others)) = found.split_first() else { return Err(self.missing(id)) };
        if others.iter().any(|other| name(other) != name(first)) {
            Err(self.several(id, &found))
        } else {
            Ok(found)
        }
    }

    /// Returns the ID of a new entry for a target ID: of the kind and triple of the entries that are there. `None` if `typed` is not a
    /// target ID.
    ///
    /// # Errors
    ///
    /// [`Ambiguous`](ErrorKind::Ambiguous) if the entries have several kinds or triples.
    pub fn new_id(&self, typed: &str) -> Result<Option<String>, Error> {
        let Some(usual) = EntryId::of_code_for(typed) else { return Ok(None) };
        let of = |id: &str| Some(EntryId::parse(id).ok()?.triple().split('-').next()?.to_owned());
        let names: Vec<String> = self.devices().map(name).collect();
        let start = |id: &String| {
            let target = EntryId::parse(id).ok()?.target_id().len();
            let start = id.get(..id.len() - target).filter(|_| target > 0)?;
            (of(id) == of(&usual)).then(|| format!("{start}{typed}"))
        };
        let ids: BTreeSet<String> = names.iter().filter_map(start).collect();
        let mut all = ids.iter();
        match (all.next(), all.next()) {
            (None, _) => Ok(Some(usual)),
            (Some(id), None) => Ok(Some(id.clone())),
            _ => {
                let text = format!("'{typed}' may be {}", few(&ids));
                Err(Problem::new(ErrorKind::Ambiguous, text).into())
            }
        }
    }

    /// Returns the image with this number, in any container.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if no image fits.
    pub fn with_number(&self, number: usize) -> Result<&'f ImageInfo, Error> {
        let images = self.file.images();
        images.iter().find(|image| self.number(image) == number).ok_or_else(|| {
            let what = if self.numbers.is_empty() { "no image" } else { "no such image to edit" };
            Problem::missing(format!("{what} {number}; there is {}", self.list(images.iter())))
                .into()
        })
    }

    /// Returns the one image with this ID, with a target ID that no other image has, or with this number.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if nothing fits, [`Ambiguous`](ErrorKind::Ambiguous) if there are several.
    pub fn only(&self, typed: &str) -> Result<&'f ImageInfo, Error> {
        let mut found = self.identified(typed);
        if found.is_empty()
            && let Ok(number) = typed.strip_prefix('#').unwrap_or(typed).parse()
        {
            return self.with_number(number);
        }
        if found.is_empty()
            && let Ok(wanted) = Wanted::parse(typed)
        {
            found = self.devices().filter(|image| wanted.names(image.target())).collect();
        }
        match found[..] {
            [image] => Ok(image),
            [] => Err(self.missing(typed)),
            _ => Err(self.several(typed, &found)),
        }
    }

    /// Returns the index of the one container that images can be added to: of offload binaries that follow each other the last.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if nothing fits, [`Ambiguous`](ErrorKind::Ambiguous) if there are several.
    pub fn only_container(&self) -> Result<usize, Error> {
        let mut found: Vec<&EditableContainer> = Vec::new();
        let containers = self.file.containers().iter();
        for container in containers.filter(|one| self.includes(one) && one.uneditable().is_none()) {
            let is_binary = container.kind() == ContainerKind::OffloadBinary;
            found.pop_if(|last| is_binary && last.place() == container.place());
            found.push(container);
        }
        match found[..] {
            [container] => Ok(container.index()),
            [] => Err(Problem::missing("no bundle or package to add to".to_owned()).into()),
            _ => {
                let places = few(found.iter().map(|one| text_of(one.path(), "")));
                let text = format!("{} places to add to: {places}", found.len());
                Err(Problem::new(ErrorKind::Ambiguous, text).into())
            }
        }
    }

    fn includes(&self, container: &EditableContainer) -> bool {
        let steps = container.path().iter().map(|step| format!("{}:{}", step.kind(), step.name()));
        // The only contents of a compressed bundle.
        let inner = (container.kind() == ContainerKind::Ccob).then(|| "bundle:0".to_owned());
        let path: Vec<String> = steps.chain(inner).collect();
        self.within.iter().all(|step| path.contains(step))
    }

    fn within(&self) -> String {
        self.within.iter().map(|step| format!(" in {step}")).collect()
    }

    fn images(&self) -> impl Iterator<Item = &'f ImageInfo> {
        let container = |image: &ImageInfo| self.file.container_of(image.index());
        let images = self.file.images().iter();
        images.filter(move |image| container(image).is_some_and(|one| self.includes(one)))
    }

    fn identified(&self, id: &str) -> Vec<&'f ImageInfo> {
        self.images().filter(|image| name(image) == id).collect()
    }

    fn devices(&self) -> impl Iterator<Item = &'f ImageInfo> {
        self.images().filter(|image| !is_host(image))
    }

    fn several(&self, typed: &str, found: &[&ImageInfo]) -> Error {
        let (n, list) = (found.len(), self.list(found.iter().copied()));
        Problem::new(ErrorKind::Ambiguous, format!("{n} images are '{typed}': {list}")).into()
    }

    fn missing(&self, typed: &str) -> Error {
        let within = self.within();
        let names: Vec<String> = self.images().map(name).collect();
        let targets = self.devices().map(|image| image.target().id());
        let near = EntryId::nearest(typed, names.iter().map(String::as_str).chain(targets));
        let there = match near.join(" or ") {
            near if near.is_empty() => "; there".to_owned(),
            near => format!("; did you mean {near}? There"),
        };
        let list = self.list(self.images());
        Problem::missing(format!("no image is '{typed}'{within}{there} is {list}")).into()
    }

    fn list<'i>(&self, images: impl Iterator<Item = &'i ImageInfo>) -> String {
        few(images.map(|image| {
            let (number, name) = (self.number(image), name(image));
            match self.file.container_of(image.index()) {
                Some(container) => format!("#{number} {name} in {}", text_of(container.path(), "")),
                None => format!("#{number} {name}"),
            }
        }))
    }
}

/// Returns the ID of the entry, or the target of an image in an offload binary.
fn name(image: &ImageInfo) -> String {
    match image.id() {
        Some(id) => id.to_owned(),
        None if image.target().kind().is_some() => image.target().to_string(),
        None => image.target().label().unwrap_or("(unnamed)").to_owned(),
    }
}
