//! Images and containers, as typed and as `offload ls` shows them.

use bundle_format::EntryId;
use device_select::{Wanted, few, is_host};
use fat_edit::EditableContainer;
use fat_object::{ContainerKind, ImageInfo};

use super::editor::Subject;
use super::wishes::path_text;
use tool_kit::report;

/// The option that says where in a file, shared by the commands.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Within {
    /// Edit only this container, from column IN of `offload ls`: bundle:1, member:a.o
    ///
    /// Repeatable: the second container lies in the first.
    #[arg(long = "in", value_name = "KIND:NAME")]
    steps: Vec<String>,
}

impl Within {
    fn includes(&self, container: &EditableContainer) -> bool {
        let mut path: Vec<String> = container
            .path()
            .iter()
            .map(|step| format!("{}:{}", step.kind(), step.name()))
            .collect();
        if container.kind() == ContainerKind::Ccob {
            // Its only contents.
            path.push(format!("{}:0", ContainerKind::Bundle));
        }
        self.steps.iter().all(|step| path.contains(step))
    }

    fn words(&self) -> String {
        self.steps.iter().map(|step| format!(" in {step}")).collect()
    }
}

/// The images of a file with the numbers that `offload ls` gives them.
pub(crate) struct Numbered<'c> {
    subject: &'c Subject<'c>,
    within: &'c Within,
    /// By the index of the image. Empty if the index is the number.
    numbers: Vec<usize>,
}

impl<'c> Numbered<'c> {
    pub(crate) fn new(subject: &'c Subject<'c>, within: &'c Within) -> Result<Self, String> {
        let numbers = subject.contents.numbers(subject.file, subject.walk);
        let numbers = numbers.map_err(|error| report::reason(&error))?;
        let numbered = Numbered { subject, within, numbers };
        if !subject.contents.containers().iter().any(|container| within.includes(container)) {
            return Err(format!("nothing{}; there is {}", within.words(), numbered.places()));
        }
        Ok(numbered)
    }

    /// Returns the number in the first column of `offload ls`.
    pub(crate) fn number(&self, image: &ImageInfo) -> usize {
        self.numbers.get(image.index()).copied().unwrap_or(image.index())
    }

    pub(crate) fn container(&self, image: &ImageInfo) -> Option<&'c EditableContainer> {
        self.subject.contents.container_of(image.index())
    }

    fn images(&self) -> impl Iterator<Item = &'c ImageInfo> {
        let images = self.subject.contents.images().iter();
        images.filter(|image| self.container(image).is_some_and(|c| self.within.includes(c)))
    }

    /// Returns all images with exactly this ID.
    pub(crate) fn with_id(&self, id: &str) -> Vec<&'c ImageInfo> {
        self.images().filter(|image| name(image) == id).collect()
    }

    /// Returns the image with this number, in any container.
    pub(crate) fn with_number(&self, number: usize) -> Result<&'c ImageInfo, String> {
        let images = self.subject.contents.images();
        images.iter().find(|image| self.number(image) == number).ok_or_else(|| {
            let what = if self.numbers.is_empty() { "no image" } else { "no such image to edit" };
            format!("{what} {number}; there is {}", self.list(images.iter()))
        })
    }

    /// Returns the one image with this ID, with a target ID that no other image has, or with this number.
    pub(crate) fn only(&self, typed: &str) -> Result<&'c ImageInfo, String> {
        let mut found = self.with_id(typed);
        if found.is_empty()
            && let Ok(number) = typed.strip_prefix('#').unwrap_or(typed).parse()
        {
            return self.with_number(number);
        }
        if found.is_empty()
            && let Ok(wanted) = Wanted::parse(typed)
        {
            let is_meant = |image: &&ImageInfo| wanted.names(image.target());
            found = self.images().filter(|image| !is_host(image)).filter(is_meant).collect();
        }
        match found[..] {
            [image] => Ok(image),
            [] => Err(self.nothing(typed)),
            _ => Err(format!(
                "{} images are '{typed}': {}; choose one by its number, or its container by --in",
                found.len(),
                self.list(found.iter().copied())
            )),
        }
    }

    /// Returns the error for an ID that is not found.
    pub(crate) fn nothing(&self, typed: &str) -> String {
        let within = self.within.words();
        let names: Vec<String> = self.images().map(name).collect();
        let targets =
            self.images().filter(|image| !is_host(image)).map(|image| image.target().id());
        let there = names.iter().map(String::as_str).chain(targets);
        let mut near = EntryId::nearest(typed, there).join(" or ");
        if !near.is_empty() {
            near = format!("; did you mean {near}? There");
        }
        let there = if near.is_empty() { "; there" } else { &near };
        format!("no image is '{typed}'{within}{there} is {}", self.list(self.images()))
    }

    /// Returns the one container to add to: of offload binaries that follow each other the last.
    pub(crate) fn only_container(&self) -> Result<usize, String> {
        let mut found: Vec<(usize, &EditableContainer)> = Vec::new();
        for (index, container) in self.subject.contents.containers().iter().enumerate() {
            if !self.within.includes(container) || container.uneditable().is_some() {
                continue;
            }
            match found.last_mut() {
                Some(last)
                    if container.kind() == ContainerKind::OffloadBinary
                        && last.1.place() == container.place() =>
                {
                    *last = (index, container);
                }
                _ => found.push((index, container)),
            }
        }
        match found[..] {
            [(index, _)] => Ok(index),
            [] => Err("no bundle or package to add to".to_owned()),
            _ => Err(format!(
                "{} places to add to: {}; choose one by --in",
                found.len(),
                few(found.iter().map(|(_, container)| path_text(container.path())))
            )),
        }
    }

    fn list<'i>(&self, images: impl Iterator<Item = &'i ImageInfo>) -> String {
        few(images.map(|image| {
            let path = self.container(image).map(|c| path_text(c.path())).unwrap_or_default();
            format!("#{} {} in {path}", self.number(image), name(image))
        }))
    }

    fn places(&self) -> String {
        few(self.subject.contents.containers().iter().map(|c| path_text(c.path())))
    }
}

/// Returns the ID of the entry, or the target of an image in an offload binary.
pub(crate) fn name(image: &ImageInfo) -> String {
    match image.id() {
        Some(id) => id.to_owned(),
        None if image.target().kind().is_some() => image.target().to_string(),
        None => image.target().label().unwrap_or("(unnamed)").to_owned(),
    }
}
