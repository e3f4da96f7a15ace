//! Archives of container images: the files that each image sees, its layers on top of each other.

use std::io::{BufReader, Read, Seek};
use std::ops::Range;

use byte_parts::ReadSeek;
use gpu_packages::{
    Codec, Error, Finding, ImageArchive, ImageFiles, Images, Member, PackageKind, VisibleMembers,
    sniff,
};

use crate::chunks::Chunks;
use crate::fault::Fault;
use crate::options::Options;
use crate::part::Part;

/// The images of an archive.
pub(crate) struct ContainerImages {
    /// Names of the images, each different; none if the file has one image only.
    pub(crate) names: Vec<String>,
    /// Images that are not read, and what is not looked into beside others or differs from its hash.
    pub(crate) findings: Vec<Fault>,
    visible: VisibleMembers,
}

impl ContainerImages {
    /// Reads the images of a file that starts with `head`; `None` if it is not an archive of images.
    ///
    /// # Errors
    ///
    /// An archive, documents and layers that cannot be read; more names than `options` allow, or a larger archive that is compressed as a whole.
    pub(crate) fn read<R: Read + Seek + Clone>(
        reader: R,
        (head, len): (&[u8], u64),
        options: &Options,
    ) -> Result<Option<Self>, Error> {
        if Codec::sniff(head) == Codec::None {
            let is_tar = sniff(head) == Some(PackageKind::Tar);
            return if is_tar { Self::of(reader, options.held_of(len), options) } else { Ok(None) };
        }
        if !ImageArchive::is_likely(BufReader::new(reader.clone())) {
            return Ok(None);
        }
        let (mut plain, most) = (Chunks::default(), options.held_of(len));
        ImageArchive::unpack(BufReader::with_capacity(1 << 16, reader), most, &mut plain)?;
        Self::of(plain.reader(), most - plain.len(), options)
    }

    fn of<R: Read + Seek + Clone>(
        reader: R,
        most: u64,
        options: &Options,
    ) -> Result<Option<Self>, Error> {
        let archive = ImageArchive::read(BufReader::with_capacity(4 << 10, reader.clone()))?;
        let Some(archive) = archive else { return Ok(None) };
        let files = Files { reader, archive };
        let Some(images) = Images::read(&files, most)? else { return Ok(None) };
        let mut visible = VisibleMembers::new(&images, most);
        let mut members = Vec::new();
        for layer in images.layers() {
            let (reader, len) = files.open(layer.file())?;
            let reader = BufReader::with_capacity(1 << 16, reader);
            let read = layer.names(reader, len, &options.of_package(len), |_, _, _| Ok(()))?;
            visible.hold(read.held())?;
            members.push(read);
        }
        for (number, view) in images.views(&members)?.enumerate() {
            visible.add(number, &view, (&images, &members))?;
        }
        let (mut names, findings) = (images.names(), findings_of(&images));
        if names.len() == 1 && images.unread().is_empty() {
            names.clear();
        }
        Ok(Some(ContainerImages { names, findings, visible }))
    }

    /// Returns the numbers of the images that see a member, and its path in these. `None` if no image sees it; none if it lies
    /// beside the images.
    pub(crate) fn places(&self, member: &Member) -> Option<Vec<(usize, String)>> {
        let layered = self.visible.places(None, member)?;
        if layered.is_empty() && !self.visible.is_beside(member) {
            // No image has the files of a layer that none names.
            return None;
        }
        let inner: String = member.path().names().skip(2).map(inner).collect();
        let text = |path| format!("{}{inner}", String::from_utf8_lossy(path));
        Some(layered.into_iter().map(|(image, path)| (image, text(path))).collect())
    }
}

fn findings_of(images: &Images) -> Vec<Fault> {
    let text = |it: &Finding| (it.path.to_string_lossy(), it.error.to_string());
    let error = |(member, text): (String, String)| Fault::error(&member, "file/error", text);
    let warning = |(member, text): (String, String)| Fault::warning(&member, "file/unknown", text);
    // With no image at all, it is not known what these hide.
    let is_alone = images.images().len() == 0;
    let unread = images.unread().iter().map(text).map(error);
    let unread = unread.map(|it| Fault { is_apart: !is_alone, ..it });
    let faults = unread.chain(images.findings().iter().map(text).map(error));
    let notes = images.notes().iter().map(|note| (String::new(), note.clone()));
    let notes = notes.map(|it| if is_alone { error(it) } else { warning(it) });
    faults.chain(notes).collect()
}

fn inner(name: &[u8]) -> String {
    format!(":{}", String::from_utf8_lossy(name))
}

/// The members of an archive.
struct Files<R> {
    reader: R,
    archive: ImageArchive,
}

impl<R: Read + Seek + Clone> Files<R> {
    /// Returns a reader of a file, and its size.
    fn open(&self, name: &str) -> Result<(impl ReadSeek + use<R>, u64), Error> {
        let not_there = || Error::refused(format!("{name} is not there"));
        let Range { start, end } = self.archive.place(name).ok_or_else(not_there)?;
        Ok((Part::new(self.reader.clone(), start..end), end - start))
    }
}

impl<R: Read + Seek + Clone> ImageFiles for Files<R> {
    fn size(&self, name: &str) -> Option<u64> {
        self.archive.place(name).map(|place| place.end - place.start)
    }

    fn read(&self, name: &str, most: u64) -> Result<Vec<u8>, Error> {
        let (reader, size) = self.open(name)?;
        if size > most {
            return Err(Error::refused(format!("a document exceeds the limit of {most} bytes")));
        }
        let mut bytes = Vec::new();
        reader.take(size).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn has(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        self.archive.names().any(is_wanted)
    }

    fn resolve(&self, name: &str) -> String {
        self.archive.resolve(name)
    }
}
