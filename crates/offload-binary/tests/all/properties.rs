//! Properties of binaries at any place in memory, and one after the other. `write.rs` has the properties of written
//! binaries.

use std::fmt::Write;

use offload_binary::{
    CompressedBinary, Flags, FormatVersion, ImageEntry, ImageKind, OffloadBinary, OffloadKind,
    binaries, convert,
};
use proptest::prelude::*;
use samples::faulty::at_each_address;

use FormatVersion::{V1, V2, V3};

/// Miri is a thousand times slower.
const CASES: u32 = if cfg!(miri) { 1 } else { 256 };

/// Kinds, flags, strings, image.
type Owned = (u16, u16, u32, Vec<(String, String)>, Vec<u8>);

fn image() -> impl Strategy<Value = Owned> {
    let strings = prop::collection::vec(("[ab]{0,4}", "[a-c-]{0,9}"), 0..4);
    let image = prop::collection::vec(any::<u8>(), 0..30);
    (any::<u16>(), any::<u16>(), any::<u32>(), strings, image)
}

fn write(version: FormatVersion, images: &[Owned]) -> Vec<u8> {
    let entries: Vec<ImageEntry<'_>> = images
        .iter()
        .map(|(image_kind, offload_kind, flags, strings, image)| {
            let mut entry = ImageEntry::new(image.len() as u64)
                .with_image_kind(ImageKind(*image_kind))
                .with_offload_kind(OffloadKind(*offload_kind))
                .with_flags(Flags::from_bits_retain(*flags));
            let strings =
                strings.iter().map(|(key, value)| (key.as_bytes().into(), value.as_bytes().into()));
            entry.strings.extend(strings);
            entry
        })
        .collect();
    let images: Vec<&[u8]> = images.iter().map(|image| &image.4[..]).collect();
    offload_binary::layout(version, &entries).unwrap().to_vec(&images).unwrap()
}

fn read(binary: &OffloadBinary<'_>) -> Vec<Owned> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    binary
        .entries()
        .map(|entry| {
            let strings = entry.strings().map(|(key, value)| (text(key), text(value))).collect();
            let image = entry.image().unwrap().to_vec();
            (entry.image_kind().0, entry.offload_kind().0, entry.flags().bits(), strings, image)
        })
        .collect()
}

/// Everything that the readers say.
fn answers(data: &[u8]) -> String {
    let mut text = String::new();
    for found in binaries(data) {
        match found {
            Ok((at, binary)) => {
                write!(text, "{at} {} {} ", binary.version(), binary.size()).unwrap();
                for entry in binary.entries() {
                    let strings: Vec<_> = entry.strings().collect();
                    let named = (entry.triple(), entry.arch(), entry.get("a"));
                    let place = (entry.image_offset(), entry.image_size(), entry.image());
                    write!(text, "{entry:?} {strings:?} {named:?} {place:?} ").unwrap();
                }
            }
            Err(error) => write!(text, "{error:?}").unwrap(),
        }
    }
    let prefix = OffloadBinary::parse_prefix(&data[..data.len() / 2], data.len() as u64);
    write!(text, "{prefix:?} {:?} {:?}", convert(data, V1), convert(data, V2)).unwrap();
    write!(text, "{:?} {:?}", convert(data, V3), CompressedBinary::parse_prefix(data, u64::MAX))
        .unwrap();
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    /// Binaries of all versions, with zeros between them.
    #[test]
    fn concatenated_binaries_are_read_and_written(
        files in prop::collection::vec((prop::collection::vec(image(), 1..4), prop::sample::select(vec![V1, V2, V3]), 0..20_usize), 0..4),
    ) {
        let mut data = Vec::new();
        let mut places = Vec::new();
        let mut expected = Vec::new();
        for (images, version, zeros) in &files {
            // Version 1 has one binary for each image.
            for images in images.chunks(if *version == V1 { 1 } else { images.len() }) {
                places.push(data.len() as u64);
                expected.push((*version, images.to_vec()));
                data.extend(write(*version, images));
            }
            data.resize(data.len() + zeros, 0);
        }
        let found: Vec<_> = binaries(&data).map(Result::unwrap).collect();
        prop_assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), places);
        for ((at, binary), (version, images)) in found.iter().zip(&expected) {
            prop_assert_eq!(binary.version(), *version);
            let images_found = read(binary);
            prop_assert_eq!(&images_found, images);
            // Read and written again it is the same.
            let again = write(*version, &images_found);
            let at = usize::try_from(*at).unwrap();
            prop_assert_eq!(&again[..], &data[at..at + usize::try_from(binary.size()).unwrap()]);
        }
    }

    #[test]
    fn the_place_in_memory_does_not_matter(
        images in prop::collection::vec(image(), 0..4),
        behind in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..20),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        for version in [V1, V2, V3] {
            let mut bytes = write(version, &images);
            bytes.extend(&behind);
            if let Some((at, byte)) = damage.filter(|_| !bytes.is_empty()) {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            at_each_address(&bytes, b'a', answers);
        }
    }
}
