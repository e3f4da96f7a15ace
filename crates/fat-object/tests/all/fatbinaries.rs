//! Entries of NVIDIA fatbinaries that hold several images.

use std::io::{Cursor, Read};

use fat_object::{ContainerKind, ErrorKind, Location, Options, list_slice};
use nv_fatbin::{Architecture, Compression, Kind, NewEntry, NewFatbin};

const CODE: [(&str, &str); 3] =
    [("sm_75", "seven"), ("sm_90a", "the cubin of ninety"), ("sm_86", "8")];

/// A fatbinary of PTX, several cubins in one entry, and LTO-IR.
fn sample(compression: Compression) -> Vec<u8> {
    let entry = |kind, name: &str, code: &'static str| {
        NewEntry::new(kind, Architecture::from_name(name).unwrap(), code.as_bytes())
    };
    let images = CODE.map(|(name, code)| entry(Kind::ELF, name, code));
    let mut fatbin = NewFatbin::new();
    fatbin.add(&entry(Kind::PTX, "sm_80", "text").with_compression(Compression::Lz4(3))).unwrap();
    fatbin.add(&NewEntry::concatenated(&images).unwrap().with_compression(compression)).unwrap();
    fatbin
        .add(&entry(Kind::LTO_IR, "sm_80", "code").with_compression(Compression::Lz4(3)))
        .unwrap();
    fatbin.to_vec().unwrap()
}

/// Bytes of the images that are compressed as one.
const UNCOMPRESSED: u64 = 8 + 24 + 8;

#[test]
fn each_image_is_listed_and_read() {
    for compression in [Compression::None, Compression::Lz4(3)] {
        let file = sample(compression);
        let listing = list_slice(&file, &Options::default()).unwrap();
        assert_eq!(listing.findings().len(), 0);
        let ids: Vec<_> = listing.images().iter().map(|image| image.target().id()).collect();
        assert_eq!(ids, ["sm_80", "sm_75", "sm_90a", "sm_86", "sm_80"]);
        let mut at = 0;
        for (image, (_, code)) in listing.images()[1..].iter().zip(CODE) {
            assert_eq!(image.container(), ContainerKind::NvFatbin);
            assert_eq!(image.path().last().unwrap().to_string(), "concatenated:1");
            assert_eq!(image.size(), code.len().next_multiple_of(8) as u64);
            assert_eq!((image.offset_in_container(), image.compression()), (at, None));
            let around = image.compression_around().map(|around| around.uncompressed_size());
            let is_compressed = compression != Compression::None;
            assert_eq!(around, is_compressed.then_some(UNCOMPRESSED));
            match image.location() {
                Location::Decompressed(place) if is_compressed => assert_eq!(place, at),
                Location::File(_) if !is_compressed => {}
                other => panic!("{other:?}"),
            }
            at += image.size();
        }
        let mut codes = Vec::new();
        fat_object::images(Cursor::new(&file), &Options::default(), |image| {
            let mut code = Vec::new();
            image.reader().read_to_end(&mut code)?;
            codes.push(String::from_utf8_lossy(&code).trim_end_matches('\0').to_owned());
            Ok(())
        })
        .unwrap();
        assert_eq!(codes[1..4], CODE.map(|(_, code)| code));
    }
}

#[test]
fn what_cannot_be_decompressed_is_a_finding() {
    let findings = |file: &[u8], options: &Options| {
        let listing = list_slice(file, options).unwrap();
        let kinds = listing.findings().iter().map(|finding| finding.error().kind());
        (listing.images().len(), kinds.collect::<Vec<_>>())
    };
    let file = sample(Compression::Lz4(3));
    let options = Options::default();
    let at = file.windows(5).position(|code| code == b"seven").unwrap();
    let mut damaged = file.clone();
    damaged[at - 1..at + 8].fill(0xff);
    assert_eq!(findings(&damaged, &options), (2, vec![ErrorKind::Malformed]));
    let few = options.clone().with_max_decompressed(UNCOMPRESSED - 1);
    assert_eq!(findings(&file, &few), (2, vec![ErrorKind::Limit]));
    assert_eq!(findings(&file, &options.with_max_decompressed(UNCOMPRESSED)), (5, vec![]));
}

#[test]
fn long_tables_are_not_read() {
    let mut file = sample(Compression::None);
    let header = 16 + file[24..].windows(4).position(|bytes| bytes == [0, 1, 1, 1]).unwrap() + 8;
    let size = u32::from_le_bytes(file[header + 4..header + 8].try_into().unwrap());
    let more = 1 << 20;
    file.splice(header + size as usize..header + size as usize, vec![0; more]);
    file[header + 4..header + 8].copy_from_slice(&(size + more as u32).to_le_bytes());
    let whole = file.len() as u64 - 16;
    file[8..16].copy_from_slice(&whole.to_le_bytes());
    let listing = list_slice(&file, &Options::default()).unwrap();
    let errors: Vec<_> = listing.findings().iter().map(|one| one.error().to_string()).collect();
    let size = size as usize + more;
    let expected = format!("a table has {size} bytes: at most 1048576 are read");
    assert_eq!(errors, [expected]);
    assert_eq!(listing.images().len(), 2);
}
