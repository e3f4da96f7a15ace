//! Properties of edits of any file made of containers, by a model of such files.

use std::io::{self, Cursor, Read as _};

use crate::editing::*;
use ccob::{Method, Version, WriteOptions};
use fat_edit::{CompressOptions, Edit, EditOptions, EditableFile, ErrorKind, survey_closed};
use fat_object::{Finding, Image, Options, Visitor, walk};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, OffloadKind};
use proptest::prelude::*;
use samples::bundle::{HOST, bundle};

const PROCESSORS: [&str; 6] = ["gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100"];

/// A container of images for some of the processors.
#[derive(Clone, Debug)]
struct Container {
    form: Form,
    /// The position of the processor, and the image.
    images: Vec<(usize, Vec<u8>)>,
    /// An empty entry for the host is first.
    host: bool,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Plain { align: usize },
    Compressed { version: Version, method: Method },
    Package { version: FormatVersion },
}

impl Container {
    fn bytes(&self) -> Vec<u8> {
        match self.form {
            Form::Plain { align } => self.bundle(align),
            Form::Compressed { version, method } => {
                let options = WriteOptions::default().with_version(version).with_method(method);
                ccob::compress(&self.bundle(4096), &options).unwrap()
            }
            Form::Package { version } => {
                let entry = |(processor, image): &(usize, Vec<u8>)| {
                    ImageEntry::new(image.len() as u64)
                        .with_image_kind(ImageKind::NONE)
                        .with_offload_kind(OffloadKind::HIP)
                        .with_string("triple", "amdgcn-amd-amdhsa")
                        .with_string("arch", PROCESSORS[*processor])
                };
                let entries: Vec<_> = self.images.iter().map(entry).collect();
                let images: Vec<&[u8]> = self.images.iter().map(|(_, image)| &image[..]).collect();
                offload_binary::layout(version, &entries).unwrap().to_vec(&images).unwrap()
            }
        }
    }

    fn bundle(&self, align: usize) -> Vec<u8> {
        let ids: Vec<String> = self.images.iter().map(|(processor, _)| id(*processor)).collect();
        let mut entries: Vec<(&str, &[u8])> = Vec::new();
        if self.host {
            entries.push((HOST, b""));
        }
        entries.extend(ids.iter().map(String::as_str).zip(self.images.iter().map(|i| &i.1[..])));
        bundle(&entries, align)
    }

    /// Returns the images that a walk finds in it.
    fn walked(&self) -> Vec<(String, Vec<u8>)> {
        let is_package = matches!(self.form, Form::Package { .. });
        let host = (HOST.to_owned(), Vec::new());
        let name = |processor: &usize| {
            if is_package { PROCESSORS[*processor].to_owned() } else { id(*processor) }
        };
        let images = self.images.iter().map(|(p, image)| (name(p), image.clone()));
        Some(host).filter(|_| self.host && !is_package).into_iter().chain(images).collect()
    }

    /// It with the images for these processors only; nothing if it is gone.
    fn thinned(&self, keep: &[usize]) -> Option<Self> {
        let mut thin = self.clone();
        thin.images.retain(|(processor, _)| keep.contains(processor));
        let is_gone = matches!(self.form, Form::Package { version: FormatVersion::V1 })
            && thin.images.is_empty();
        if let (Form::Compressed { version: version @ Version::V1, .. }, true) =
            (&mut thin.form, thin.images.len() < self.images.len())
        {
            *version = Version::V2;
        }
        (!is_gone).then_some(thin)
    }
}

/// Returns whether less, compressed as usual, takes more bytes than all did: then it is compressed harder, to fit.
fn grows(containers: &[Container], keep: &[usize]) -> bool {
    containers.iter().any(|container| {
        matches!(container.form, Form::Compressed { .. })
            && container.thinned(keep).is_some_and(|thin| {
                thin.images.len() < container.images.len()
                    && thin.bytes().len() > container.bytes().len()
            })
    })
}

fn id(processor: usize) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{}", PROCESSORS[processor])
}

/// The containers one after the other: at pages, or without anything between them.
fn file(containers: &[Container], at_pages: bool) -> Vec<u8> {
    let containers = containers.iter().map(Container::bytes);
    if at_pages { paged(&containers.collect::<Vec<_>>()) } else { containers.flatten().collect() }
}

/// Returns whether a container after another starts at a page by chance: then it does so again.
fn at_pages_by_chance(containers: &[Container]) -> bool {
    let mut end = 0;
    containers.iter().any(|container| {
        let start = end;
        end += container.bytes().len();
        start > 0 && start % 4096 == 0
    })
}

fn form() -> impl Strategy<Value = Form> {
    let compressed = (
        prop_oneof![Just(Version::V1), Just(Version::V2), Just(Version::V3)],
        prop_oneof![Just(Method::ZLIB), Just(Method::ZSTD)],
    );
    prop_oneof![
        3 => prop_oneof![Just(1_usize), Just(4096)].prop_map(|align| Form::Plain { align }),
        2 => compressed.prop_map(|(version, method)| Form::Compressed { version, method }),
        1 => Just(Form::Package { version: FormatVersion::V1 }),
        1 => Just(Form::Package { version: FormatVersion::V2 }),
    ]
}

prop_compose! {
    fn image()(seed in 1_u32..1000, size in prop_oneof![0_u32..50, 4090_u32..4100, 0_u32..6000])
        -> Vec<u8> {
        code(seed, size)
    }
}

prop_compose! {
    /// Not all of them have several images: version 1 of offload binaries has no place for more.
    fn container()(
        form in form(),
        images in prop::collection::btree_map(0..PROCESSORS.len(), image(), 1..PROCESSORS.len()),
        host in any::<bool>(),
    ) -> Container {
        let mut images: Vec<_> = images.into_iter().collect();
        if matches!(form, Form::Package { version: FormatVersion::V1 }) {
            images.truncate(1);
        }
        Container { form, images, host }
    }
}

fn containers() -> impl Strategy<Value = Vec<Container>> {
    prop::collection::vec(container(), 1..5)
}

/// Removes the images for all other processors; `None` if nothing would be left somewhere.
fn thin(file: &[u8], keep: &[usize]) -> Option<Vec<u8>> {
    let result = plan_with(file, EditOptions::default(), &[], |contents, edit| {
        for image in contents.images() {
            let kept = keep.iter().any(|&processor| PROCESSORS[processor] == image.target().id());
            if !kept && image.id() != Some(HOST) {
                edit.remove(image.index());
            }
        }
    });
    match result {
        Ok((_, out)) => Some(out),
        Err(error) if error.kind() == ErrorKind::Refused => None,
        Err(error) => panic!("{error}"),
    }
}

/// All images, with processors for the names of those in offload binaries.
fn walked(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let contents = surveyed(file);
    let names = contents.images().iter().map(|image| match image.id() {
        Some(id) => id.to_owned(),
        None => image.target().id().to_owned(),
    });
    names.zip(images(file)).map(|(name, (_, bytes))| (name, bytes)).collect()
}

/// All images that a walk finds, whatever is wrong elsewhere.
fn found(file: &[u8]) -> Vec<(Option<String>, Vec<u8>)> {
    struct Gather(Vec<(Option<String>, Vec<u8>)>);
    impl Visitor for Gather {
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            let mut bytes = Vec::new();
            image.reader().read_to_end(&mut bytes)?;
            self.0.push((image.id().map(str::to_owned), bytes));
            Ok(())
        }
        fn finding(&mut self, _: &Finding) -> io::Result<()> {
            Ok(())
        }
    }
    let mut gather = Gather(Vec::new());
    walk(&mut Cursor::new(file), &Options::default(), &mut gather).unwrap();
    gather.0
}

fn compressed(file: &[u8]) -> Vec<u8> {
    let mut edit = Edit::default();
    edit.compress(CompressOptions::default());
    run(&outside(file), file, &[], &edit).unwrap().1
}

fn decompressed(file: &[u8]) -> Vec<u8> {
    let mut edit = Edit::default();
    edit.decompress();
    run(&outside(file), file, &[], &edit).unwrap().1
}

/// The survey of a file that is not looked into.
fn outside(file: &[u8]) -> EditableFile {
    survey_closed(&mut Cursor::new(file), &Options::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_thin_file_is_the_file_made_of_the_kept_entries(
        containers in containers(),
        at_pages in any::<bool>(),
        keep in prop::collection::vec(0..PROCESSORS.len(), 1..5),
    ) {
        let left: Vec<Container> =
            containers.iter().filter_map(|container| container.thinned(&keep)).collect();
        prop_assume!(at_pages || !at_pages_by_chance(&containers));
        let nothing_left = |c: &Container| c.images.is_empty();
        let old = file(&containers, at_pages);
        match thin(&old, &keep) {
            None => prop_assert!(left.is_empty() || left.iter().any(nothing_left)),
            Some(out) => {
                let expected: Vec<_> = left.iter().flat_map(Container::walked).collect();
                prop_assert!(walked(&out) == expected);
                // Untouched containers keep their bytes: they may be compressed in another way.
                let is_gone = left.len() < containers.len();
                if (!is_gone || !at_pages) && !grows(&containers, &keep) {
                    prop_assert!(out == file(&left, at_pages));
                }
                prop_assert!(thin(&out, &keep) == Some(out));
            }
        }
    }

    #[test]
    fn thinning_twice_is_thinning_once(
        containers in containers(),
        at_pages in any::<bool>(),
        first in prop::collection::vec(0..PROCESSORS.len(), 2..6),
        second in prop::collection::vec(0..PROCESSORS.len(), 1..4),
    ) {
        let left: Vec<Container> =
            containers.iter().filter_map(|container| container.thinned(&first)).collect();
        prop_assume!(at_pages || !at_pages_by_chance(&containers) && !at_pages_by_chance(&left));
        let old = file(&containers, at_pages);
        let both: Vec<usize> = first.iter().copied().filter(|p| second.contains(p)).collect();
        if let (Some(once), Some(at_once)) = (thin(&old, &first), thin(&old, &both)) {
            let twice = thin(&once, &both);
            // The zeros after an offload binary that is gone stay where containers are at pages.
            let is_gone = containers.iter().any(|container| container.thinned(&both).is_none());
            let grows = grows(&containers, &first)
                || grows(&containers, &both)
                || grows(&left, &both);
            if is_gone && at_pages || grows {
                prop_assert!(twice.is_some_and(|twice| walked(&twice) == walked(&at_once)));
            } else {
                prop_assert!(twice == Some(at_once));
            }
        }
    }

    #[test]
    fn decompressing_restores_the_compressed_file(
        mut containers in containers(),
        pages in prop::collection::vec(0..3_usize, 5),
        zeros in 0..5000_usize,
    ) {
        containers.retain(|container| matches!(container.form, Form::Plain { .. }));
        let mut old = Vec::new();
        for (container, pages) in containers.iter().zip(pages) {
            if !old.is_empty() {
                old.resize(old.len().next_multiple_of(4096) + pages * 4096, 0);
            }
            old.extend(container.bytes());
        }
        old.resize(old.len() + zeros, 0);
        if !containers.is_empty() {
            let small = compressed(&old);
            prop_assert!(small.len() <= old.len());
            prop_assert!(walked(&small) == walked(&old));
            prop_assert!(compressed(&small) == small);
            prop_assert!(decompressed(&small) == old);
        }
    }

    #[test]
    fn compressing_and_decompressing_never_remove(
        containers in containers(),
        at_pages in any::<bool>(),
        form in 0..3,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        sizes_of_0 in any::<bool>(),
    ) {
        let mut file = file(&containers, at_pages);
        let starts: Vec<usize> = file.windows(4).enumerate().filter(|(_, w)| *w == b"CCOB").map(|(i, _)| i).collect();
        for start in starts.into_iter().filter(|_| sizes_of_0) {
            let size = match file[start + 4] {
                1 => 8..12,
                2 => 12..16,
                _ => 16..24,
            };
            file[start..][size].fill(0);
        }
        for (index, byte) in damage {
            // Most of what is read by itself lies near the start.
            let at = index.index(file.len().min(400));
            file[at] = byte;
        }
        let mut edit = Edit::default();
        match form {
            0 => edit.compress(CompressOptions::default()),
            1 => edit.compress(CompressOptions::default().with_recompress(true)),
            _ => edit.decompress(),
        }
        let mut out = Vec::new();
        let edited = survey_closed(&mut Cursor::new(&file), &Options::default())
            .and_then(|contents| contents.plan(&mut Cursor::new(&file), &edit))
            .and_then(|plan| plan.write(&mut Cursor::new(&file), &mut out));
        if edited.is_ok() {
            prop_assert!(found(&out) == found(&file));
        }
    }

    #[test]
    fn replaced_images_are_the_new_ones(
        containers in containers(),
        at_pages in any::<bool>(),
        new in prop::collection::vec(image(), 3),
        choices in prop::collection::vec(0..6_usize, 40),
        form in 0..3,
    ) {
        let old = file(&containers, at_pages);
        let options = EditOptions::default().with_any_image(true).with_allow_uneditable(true);
        let mut expected = walked(&old);
        let new: Vec<&[u8]> = new.iter().map(Vec::as_slice).collect();
        let (plan, out) = plan_with(&old, options, &new, |contents, edit| {
            for ((image, stored), choice) in contents.images().iter().zip(&mut expected).zip(choices) {
                if let Some(bytes) = new.get(choice) {
                    edit.replace(image.index(), choice);
                    stored.1 = bytes.to_vec();
                }
            }
            match form {
                0 => edit.compress(CompressOptions::default()),
                1 => edit.decompress(),
                _ => {}
            }
        })
        .unwrap();
        prop_assert!(walked(&out) == expected);
        let sizes: Vec<_> = plan.images().iter().map(|image| image.size_after.unwrap()).collect();
        prop_assert!(sizes.iter().eq(expected.iter().map(|(_, bytes)| bytes.len() as u64).collect::<Vec<_>>().iter()));
    }
}
