//! A walk on several threads sees what one on a single thread sees.

use std::io::{self, Cursor, Read};
use std::num::NonZeroUsize;

use byte_parts::ReadSeek;
use ccob::{Version, WriteOptions};
use fat_object::{
    Container, Enter, Finding, Image, Options, Summary, Visitor, walk, walk_with_threads,
};

/// All that is said of a file.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    /// Stop at this image.
    ends: Option<usize>,
    /// Look into no compressed bundle but every third.
    skips: bool,
    compressed: usize,
}

impl Visitor for Log {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.lines.push(format!("{:?} {:?}", container.path(), container.location()));
        Ok(())
    }

    fn opens(&mut self, container: &Container) -> Enter {
        self.compressed += usize::from(container.compression().is_some());
        let is_skipped =
            self.skips && container.compression().is_some() && !self.compressed.is_multiple_of(3);
        if is_skipped { Enter::Skip } else { Enter::Open }
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        self.lines.push(format!("{:?} {} {:?}", image.id(), bytes.len(), bytes.first()));
        match self.ends {
            Some(index) if index == image.index() => Err(io::ErrorKind::BrokenPipe.into()),
            _ => Ok(()),
        }
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.lines.push(finding.to_string());
        Ok(())
    }

    fn open_thin_member(&mut self, _: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// A compressed bundle with an image of this many bytes, each this one.
fn compressed(size: usize, byte: u8, version: Version) -> Vec<u8> {
    let ids = ["host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx90a"];
    let layout = bundle_format::layout([(ids[0], 0), (ids[1], size as u64)], 1).unwrap();
    let Some((_, byte_parts::Part::Bytes(header))) = layout.parts().at(0) else { panic!() };
    let mut bundle = header.to_vec();
    bundle.resize(layout.size() as usize, byte);
    ccob::compress(&bundle, &WriteOptions::default().with_version(version)).unwrap()
}

/// Compressed bundles of several sizes, with zeros between them.
fn bundles() -> Vec<Vec<u8>> {
    (0_u8..20)
        .map(|n| {
            let mut bundle = compressed(usize::from(n % 7) * 30_000 + 1, n + 1, Version::V3);
            bundle.resize(bundle.len().next_multiple_of(1 << (n % 13)), 0);
            bundle
        })
        .collect()
}

fn compare(bytes: &[u8], options: &Options, log: impl Fn() -> Log) {
    let mut one = log();
    let expected = walk(&mut Cursor::new(bytes), options, &mut one);
    let text = |found: io::Result<Summary>| match found {
        Ok(summary) => format!("{summary:?}"),
        Err(error) => error.to_string(),
    };
    let expected = text(expected);
    for threads in [0, 1, 2, 3, 8, 100] {
        let mut log = log();
        let threads = NonZeroUsize::new(threads);
        let found = walk_with_threads(&Cursor::new(bytes), threads, options, &mut log);
        assert_eq!(text(found), expected, "{threads:?}");
        assert_eq!(log.lines, one.lines, "{threads:?}");
    }
}

#[test]
fn threads_give_the_same_results_in_the_same_order() {
    let all = bundles().concat();
    compare(&all, &Options::default(), Log::default);
    let unverified = Options::default().with_verify_hash(false);
    compare(&all, &unverified, Log::default);
    for ends in [0, 5, 39] {
        compare(&all, &Options::default(), || Log { ends: Some(ends), ..Log::default() });
    }
    compare(&all, &Options::default(), || Log { skips: true, ..Log::default() });
}

#[test]
fn limits_are_the_same() {
    let all = bundles().concat();
    for limit in [100, 100_000, 200_000, 1 << 20] {
        for expansion in [0, 256] {
            let options =
                Options::default().with_max_decompressed(limit).with_max_expansion(expansion);
            compare(&all, &options, Log::default);
        }
    }
}

#[test]
fn damage_is_found_as_before() {
    let sound = bundles();
    for at in if samples::faulty::is_thorough() { &[0, 3, 4, 19][..] } else { &[19] } {
        let at = *at;
        // In the data, in the hash, and in the size that the header records.
        for (offset, what) in [(40, 0x55), (25, 1), (16, 0xff)] {
            let mut bundles = sound.clone();
            bundles[at][offset] ^= what;
            compare(&bundles.concat(), &Options::default(), Log::default);
        }
        // Cut short, and another form between them.
        let mut all = sound[..=at].concat();
        all.truncate(all.len() - sound[at].len() / 2);
        compare(&all, &Options::default(), Log::default);
        let mut bundles = sound.clone();
        bundles[at] = compressed(90_000, 9, Version::V1);
        compare(&bundles.concat(), &Options::default(), Log::default);
    }
}

#[test]
fn bundles_lie_in_archives_and_in_each_other() {
    let mut archive = b"!<arch>\n".to_vec();
    for (n, bundle) in bundles().iter().enumerate() {
        let name = format!("{n}.hipfb/");
        archive.extend(format!("{name:<16}{:<32}{:<10}`\n", "0", bundle.len()).as_bytes());
        archive.extend(bundle);
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    compare(&archive, &Options::default(), Log::default);
    // Compressed twice.
    let options = WriteOptions::default();
    let twice: Vec<u8> =
        bundles().iter().flat_map(|bundle| ccob::compress(bundle, &options).unwrap()).collect();
    compare(&twice, &Options::default(), Log::default);
}
