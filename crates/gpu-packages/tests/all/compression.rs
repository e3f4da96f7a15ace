//! Streams that are compressed again: at the level they had, with the same bytes for any number of threads.

use std::io::{Read, Write};
use std::num::NonZeroUsize;

use gpu_packages::{Codec, Compression, ErrorKind};

const CODECS: [Codec; 5] = [Codec::None, Codec::Gzip, Codec::Xz, Codec::Zstd, Codec::Bzip2];

/// Returns contents that each level makes smaller than the one before: words of some hundred, in any order.
fn contents(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let words: Vec<Vec<u8>> = (0..400)
        .map(|_| (0..3 + next() % 9).map(|_| b'a' + (next() % 17) as u8).collect())
        .collect();
    let mut text = Vec::new();
    while text.len() < len {
        let word = next() % 400;
        text.extend_from_slice(&words[(word * word / 400) as usize]);
        text.push(b' ');
    }
    text.truncate(len);
    text
}

fn compress(compression: &Compression, threads: usize, contents: &[u8]) -> Vec<u8> {
    let compression = compression.clone().with_threads(NonZeroUsize::new(threads).unwrap());
    let mut encoder = compression.encoder(Vec::new()).unwrap();
    // Pieces of any size give the same.
    for piece in contents.chunks(100_000 + threads) {
        encoder.write_all(piece).unwrap();
    }
    encoder.flush().unwrap();
    encoder.finish().unwrap()
}

fn decompress(codec: Codec, stream: &[u8]) -> Vec<u8> {
    let mut contents = Vec::new();
    codec.decoder(stream).unwrap().read_to_end(&mut contents).unwrap();
    contents
}

#[test]
fn output_does_not_depend_on_threads() {
    for codec in CODECS {
        // Blocks have 512 KiB or, of level 0 of xz, 1 MiB.
        let compression = Compression::new(codec).with_level(*codec.levels().start()).unwrap();
        // As many blocks of gzip as one thread, or two, compress at a time.
        let many: &[usize] = if codec == Codec::Gzip { &[16 << 19, 32 << 19] } else { &[] };
        for &len in [0, 1, 512 << 10, (1 << 20) + 1].iter().chain(many) {
            let contents = vec![7; len];
            let one = compress(&compression, 1, &contents);
            assert!(decompress(codec, &one) == contents, "{codec} {len}");
            for threads in [2, 3] {
                assert!(
                    compress(&compression, threads, &contents) == one,
                    "{codec} {len} {threads}"
                );
            }
        }
    }
}

#[test]
fn the_level_is_the_one_that_a_stream_has() {
    let contents = contents(200_000);
    let found = |codec: Codec, level| {
        let stream = compress(&Compression::new(codec).with_level(level).unwrap(), 2, &contents);
        let like = Compression::of(&stream);
        assert_eq!(like.codec(), codec);
        like.level()
    };
    assert_eq!([1, 2, 6, 9].map(|level| found(Codec::Gzip, level)), [1, 6, 6, 9]);
    assert_eq!([1, 5, 9].map(|level| found(Codec::Bzip2, level)), [1, 5, 9]);
    assert_eq!([0, 3, 4, 5, 7].map(|level| found(Codec::Xz, level)), [0, 4, 4, 6, 7]);
    if cfg!(feature = "zstd") {
        // A lower level may do as well for these contents.
        for level in [1, 3, 9] {
            assert!(found(Codec::Zstd, level) <= level, "{level}");
        }
        assert!(found(Codec::Zstd, 19) > found(Codec::Zstd, 3));
    }
}

#[test]
fn starts_that_say_nothing_have_the_level_of_the_program() {
    let heads: [(&[u8], u32); 6] = [
        (b"", 0),
        (b"\x1f\x8b\x08", 6),
        (b"\x1f\x8b\x08\0\0\0\0\0\x07\xff", 6),
        (b"\xfd7zXZ\0", 6),
        (b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\0\x21\x01\xff", 6),
        (b"\x28\xb5\x2f\xfd\x00\x58", if cfg!(feature = "zstd") { 3 } else { 1 }),
    ];
    for (head, level) in heads {
        assert_eq!(Compression::of(head).level(), level, "{head:x?}");
    }
}

#[test]
fn levels_that_a_codec_lacks_are_refused() {
    for codec in CODECS {
        let levels = codec.levels();
        let error = Compression::new(codec).with_level(levels.end() + 1);
        if codec == Codec::None {
            assert_eq!(error.unwrap().level(), 0);
            continue;
        }
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        let (first, last) = (levels.start(), levels.end());
        let text = format!("level of {codec}: expected {first} to {last}, found {}", last + 1);
        assert_eq!(error.to_string(), text);
    }
}
