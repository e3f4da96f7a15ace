//! Properties of all data, methods, versions and levels, at any place in memory.

use ccob::{
    Error, ErrorKind, Header, Method, ReadOptions, Version, WriteOptions, compress, decompress,
    decompress_growing, decompress_into, decompress_prefix, hash,
};
use proptest::prelude::*;
use samples::faulty::at_each_address;
#[cfg(feature = "std")]
use std::io::Read;

/// Miri is a thousand times slower.
const CASES: u32 = if cfg!(miri) { 1 } else { 256 };
const LARGEST: usize = if cfg!(miri) { 40 } else { 5000 };

/// Runs, repetitions and noise.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        (any::<u8>(), 0..LARGEST).prop_map(|(byte, len)| vec![byte; len]),
        (prop::collection::vec(any::<u8>(), 1..20), 0..LARGEST / 20)
            .prop_map(|(word, times)| word.repeat(times)),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn options() -> impl Strategy<Value = (WriteOptions, Version)> {
    let codecs: Vec<Method> = [Method::ZLIB, Method::ZSTD]
        .into_iter()
        .filter(|method| method.codec().is_some())
        .collect();
    // Without codecs the tests that need one are told so by `compress`.
    let codecs = if codecs.is_empty() { vec![Method::ZLIB] } else { codecs };
    (
        prop::sample::select(codecs),
        prop::sample::select(vec![Version::V1, Version::V2, Version::V3]),
        prop::option::of(-5..13),
        0..3_u32,
    )
        .prop_map(|(method, version, level, threads)| {
            let options = WriteOptions::default().with_method(method).with_version(version);
            (options.with_threads(threads).with_level(level), version)
        })
}

/// To be compared.
fn text<T: std::fmt::Debug>(result: &Result<T, Error>) -> String {
    format!("{result:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn written_containers_are_read_back(
        data in data(),
        (options, version) in options(),
        behind in prop::collection::vec(any::<u8>(), 0..40),
        prefix in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let container = match compress(&data, &options) {
            Err(error) => {
                prop_assert_eq!(error.kind(), ErrorKind::Codec);
                prop_assert_eq!(options.method().codec(), None);
                return Ok(());
            }
            Ok(container) => container,
        };
        let header = Header::parse(&container, container.len() as u64).unwrap();
        prop_assert_eq!((header.version(), header.method()), (version, options.method()));
        prop_assert_eq!((header.uncompressed_size(), header.hash()), (data.len() as u64, hash(&data)));
        let has_total = version != Version::V1;
        prop_assert_eq!(header.total_size(), has_total.then_some(container.len() as u64));

        // Trailing bytes are ignored.
        let file = [&container[..], &behind].concat();
        let limits = &ReadOptions::default().with_max_decompressed(data.len() as u64);
        let unverified = &limits.clone().with_verify_hash(false);
        let found = decompress(&file, limits).unwrap();
        prop_assert!(found.data == data);
        prop_assert_eq!(found.consumed, container.len() as u64);
        prop_assert_eq!(found.header.hash(), header.hash());
        prop_assert!(decompress(&file, unverified).unwrap().data == data);
        let mut grown = |part: &[u8]| assert!(data.starts_with(part));
        prop_assert!(decompress_growing(&file, limits, &mut grown).unwrap().data == data);

        // As much as is asked for.
        let mut into = vec![1; data.len()];
        prop_assert_eq!(decompress_into(&file, &mut into).unwrap().hash(), header.hash());
        prop_assert!(into == data);
        let len = prefix.index(data.len() + 1);
        prop_assert!(decompress_prefix(&file, len, limits).unwrap() == data[..len]);
        let some = decompress_prefix(&container[..cut.index(container.len())], len, limits);
        match some {
            Ok(some) => prop_assert!(data[..len].starts_with(&some)),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Truncated),
        }
        #[cfg(feature = "std")]
        {
            let mut decoder = ccob::Decoder::new(&file[..], limits).unwrap();
            prop_assert_eq!(decoder.header().hash(), header.hash());
            let mut read = vec![1; len];
            decoder.read_exact(&mut read).unwrap();
            prop_assert!(read == data[..len]);
            decoder.read_to_end(&mut read).unwrap();
            prop_assert!(read == data);
            prop_assert_eq!(decoder.consumed(), container.len() as u64);
        }

        // The data that was read, compressed again, gives the same file.
        let again = options.clone().with_version(header.version()).with_method(header.method());
        prop_assert!(compress(&found.data, &again).unwrap() == container);

        // One byte less is one too many.
        if let Some(max) = (data.len() as u64).checked_sub(1) {
            let error = decompress(&file, &ReadOptions::default().with_max_decompressed(max)).unwrap_err();
            prop_assert_eq!(error.to_string(), Error::too_large(max + 1, max).to_string());
        }
    }

    #[test]
    fn the_place_in_memory_does_not_matter(
        data in data(),
        (options, _) in options(),
        behind in prop::collection::vec(any::<u8>(), 0..20),
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let Ok(mut file) = compress(&data, &options) else { return Ok(()) };
        file.extend(behind);
        if let Some((at, byte)) = damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        let limits = &ReadOptions::default().with_max_decompressed(1 << 20);
        let _ = at_each_address(&file, b'C', |file| text(&decompress(file, limits).map(|found| found.data)));
        let _ = at_each_address(&file, b'C', |file| text(&Header::parse(file, file.len() as u64)));
        let _ = at_each_address(&data, b'C', |data| (hash(data), text(&compress(data, &options))));
    }
}
