//! The cost of files that are made to cost much: bytes read, bytes made, files opened.

mod inputs;

use std::cell::Cell;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

use byte_parts::ReadSeek;
use fat_object::{
    Container, ContainerKind, ErrorKind, FileFormat, Finding, Image, Options, Severity, Visitor,
    walk,
};
use samples::elf::names;
use samples::{ar, bundle};

/// Counts the bytes that are read.
struct Counting {
    data: Cursor<Rc<[u8]>>,
    read: Rc<Cell<u64>>,
}

impl Read for Counting {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.data.read(buf)?;
        self.read.set(self.read.get() + n as u64);
        Ok(n)
    }
}

impl Seek for Counting {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.data.seek(to)
    }
}

/// The cost of a walk.
#[derive(Default)]
struct Cost {
    /// The file that thin archives name.
    named: Rc<[u8]>,
    /// Bytes read of the files, however often.
    read: Rc<Cell<u64>>,
    /// Bytes decompressed.
    decompressed: u64,
    /// Bytes of the names of what was entered.
    names: u64,
    /// Bytes of packages' strings.
    strings: u64,
    opened: u64,
    images: u64,
    entered: u64,
    findings: u64,
    last_finding: String,
}

impl Visitor for Cost {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.entered += 1;
        self.names += container.path().last().unwrap().name().len() as u64;
        if container.kind() == ContainerKind::Ccob {
            self.decompressed += container.compression().unwrap().uncompressed_size();
        }
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.images += 1;
        if let Some(entry) = image.offload_binary_entry() {
            self.strings += entry.strings().map(|(k, v)| (k.len() + v.len()) as u64).sum::<u64>();
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        // Strings that share bytes have equal keys.
        if finding.error().kind() == ErrorKind::RepeatedKey {
            return Ok(());
        }
        assert_eq!(finding.severity(), Severity::Error);
        self.findings += 1;
        self.last_finding = finding.to_string();
        Ok(())
    }

    fn open_thin_member(&mut self, _: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        self.opened += 1;
        Ok(Box::new(self.reader(&self.named)))
    }
}

impl Cost {
    fn reader(&self, file: &Rc<[u8]>) -> Counting {
        Counting { data: Cursor::new(file.clone()), read: self.read.clone() }
    }
}

/// Returns the cost of a walk of `bytes`, where thin archives name the file `named`.
fn cost_of(bytes: &Rc<[u8]>, named: Rc<[u8]>, options: &Options) -> Cost {
    let mut cost = Cost { named, ..Cost::default() };
    let mut reader = cost.reader(bytes);
    walk(&mut reader, options, &mut cost).unwrap();
    cost
}

/// Returns the cost of a walk of `bytes`, where thin archives name the file itself.
fn cost_with(bytes: Vec<u8>, options: &Options) -> Cost {
    let bytes = Rc::from(bytes);
    cost_of(&bytes, Rc::clone(&bytes), options)
}

fn cost(bytes: Vec<u8>) -> Cost {
    cost_with(bytes, &Options::default())
}

#[test]
fn a_thin_archive_in_a_thin_member_is_not_opened() {
    let thin = inputs::thin_archive(200 * 60);
    let len = thin.len() as u64;
    let seen = cost(thin.clone());
    assert_eq!((seen.opened, seen.findings), (200, 200));
    assert!(seen.last_finding.ends_with(
        "member:a at byte 0x0 of the member's file: nested thin archive: members not opened"
    ));
    // Their headers are not even read.
    assert!(seen.read.get() <= len + 201 * 16384);

    // Nor when a compressed bundle is around it.
    let mut bundle = bundle::bundle(&[("hip-amdgcn-amd-amdhsa--gfx1", &thin)], 1);
    for _ in 0..2 {
        bundle = ccob::compress(&bundle, &ccob::WriteOptions::default()).unwrap();
    }
    let thin = ar::thin("a/", bundle.len(), 200);
    let seen = cost_of(&thin.into(), bundle.into(), &Options::default());
    assert_eq!((seen.opened, seen.findings), (200, 200));
    assert!(seen.last_finding.contains("members not opened"), "{}", seen.last_finding);
}

#[test]
fn thin_members_have_a_total_limit() {
    let thin = inputs::thin_archive(1000 * 60);
    let mut options = Options::default().with_max_thin_bytes(10 * thin.len() as u64 + 1);
    let seen = cost_with(thin, &options);
    assert_eq!((seen.opened, seen.entered, seen.findings), (11, 10, 11));
    assert!(
        seen.last_finding.ends_with(
            "thin archive member a: opening it (60008 bytes) would exceed the limit of 600081 bytes in total"
        ),
        "{}",
        seen.last_finding
    );
    // Small files are not opened without end, either.
    let thin = ar::thin("a/", 0, 100);
    options = options.with_max_thin_bytes(10 * 4096);
    let seen = cost_of(&thin.into(), Rc::default(), &options);
    assert_eq!((seen.opened, seen.entered, seen.findings), (11, 10, 1));
}

#[test]
fn decompressed_bytes_have_a_total_limit() {
    let size = 1 << 16;
    let bytes = inputs::nested_compressed_bundles(size);
    let options = Options::default().with_max_decompressed(1 << 20).with_max_expansion(16);
    let limit = (1 << 20) + 16 * bytes.len() as u64;
    let seen = cost_with(bytes.clone(), &options);
    assert!(seen.decompressed <= limit && seen.decompressed + size as u64 > limit);
    assert_eq!(
        seen.last_finding,
        format!(
            "ccob:0 at byte {:#x} of the decompressed data: decompressing 65536 bytes here \
             would exceed the limit of {limit} bytes in total",
            inner_len(size) * 999
        )
    );
    // The same with an honest limit.
    let seen = cost(bytes);
    assert_eq!((seen.findings, seen.entered), (0, 2001));
}

fn inner_len(size: usize) -> usize {
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.resize(size, 0);
    ccob::compress(&bundle, &ccob::WriteOptions::default()).unwrap().len()
}

/// Also what fails its hash was decompressed.
#[test]
fn failures_count_as_decompressed() {
    let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bundle.resize(1 << 20, 0);
    let mut one = ccob::compress(&bundle, &ccob::WriteOptions::default()).unwrap();
    one[24] ^= 1;
    let options = Options::default().with_max_decompressed(4 << 20).with_max_expansion(0);
    let seen = cost_with(one.repeat(100), &options);
    assert_eq!(seen.findings, 100);
    assert!(seen.last_finding.contains("bytes in total"), "{}", seen.last_finding);
    let four = cost_with(one.repeat(4), &options);
    assert!(four.last_finding.contains("hash"), "{}", four.last_finding);
}

#[test]
fn version_1_is_read_as_far_as_its_stream_goes() {
    for method in [ccob::Method::ZLIB, ccob::Method::ZSTD] {
        let bytes = inputs::version_1_in_a_row(200_000, method);
        let len = bytes.len() as u64;
        let seen = cost(bytes);
        assert_eq!(seen.findings, 0);
        assert!(seen.entered > 5000);
        assert!(seen.read.get() < 3 * len, "{} of {len}", seen.read.get());
    }
    // Streams of any length around the steps, with something after them.
    let mut state = 1u32;
    for len in [200, 480, 512, 513, 1000, 1024, 5000, 100_000] {
        let mut bundle = b"__CLANG_OFFLOAD_BUNDLE__\0\0\0\0\0\0\0\0".to_vec();
        bundle.extend((0..len).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        }));
        for method in [ccob::Method::ZLIB, ccob::Method::ZSTD] {
            let options =
                ccob::WriteOptions::default().with_version(ccob::Version::V1).with_method(method);
            let one = ccob::compress(&bundle, &options).unwrap();
            let seen = cost(one.repeat(3));
            // The noise is not a container.
            assert_eq!((seen.entered, seen.findings), (6, 3), "{len}");
            let seen = cost(one[..one.len() - 1].to_vec());
            assert!(seen.last_finding.contains("ends"), "{}", seen.last_finding);
        }
    }
}

#[test]
fn strings_of_a_package_may_share_bytes_up_to_a_limit() {
    // 16,384 times 256 KiB.
    let seen = cost(inputs::package_with_a_shared_string(512 << 10));
    assert_eq!((seen.images, seen.findings), (0, 1));
    assert!(
        seen.last_finding.ends_with("exceed the limit of 69206304 bytes in total"),
        "{}",
        seen.last_finding
    );
    let seen = cost(inputs::package_with_a_shared_string(16 << 10));
    assert_eq!((seen.images, seen.findings), (1, 0));
    assert!(seen.strings > 8_000_000);
}

#[test]
fn names_of_members_may_share_bytes_up_to_a_limit() {
    let n = 1 << 20;
    let bytes = inputs::archive_with_a_shared_name(n);
    let limit = (64 << 20) + 4 * bytes.len() as u64;
    let seen = cost(bytes);
    assert_eq!(seen.findings, 1);
    assert!(seen.last_finding.contains(&format!("the limit of {limit} bytes")));
    assert!(seen.names <= limit && seen.names > limit - (n as u64));
    let seen = cost(inputs::archive_with_a_shared_name(10_000));
    assert_eq!((seen.findings, seen.entered), (0, 83));
}

/// A long name above many images, or findings.
#[test]
fn paths_of_images_have_a_total_limit() {
    let n = 1 << 20;
    let count = n / 2 / 64;
    let ids = (0..count).map(|entry| (format!("hip-amdgcn-amd-amdhsa--gfy{entry:014}"), b""));
    // The name before the content, as BSD has it.
    let content = [vec![b'a'; n / 2], bundle::bundle_of(&ids.collect::<Vec<_>>(), 1)].concat();
    let bytes = ar::raw(&[(&format!("#1/{}", n / 2), &content)]);
    let limit = (64 << 20) + 4 * bytes.len() as u64;
    let seen = cost(bytes);
    assert_eq!(seen.images + seen.findings, count as u64);
    assert!(seen.images * (n as u64) / 2 <= limit && seen.images > 100, "{}", seen.images);
    assert!(seen.last_finding.contains(&format!("exceed the limit of {limit} bytes in total")));
    assert!(seen.last_finding.len() < 2000);
}

/// A long name above many containers in which there is nothing.
#[test]
fn paths_of_containers_have_a_total_limit() {
    let n = 1 << 20;
    let content = [vec![b'a'; n / 2], bundle::empty().repeat(n / 2 / 32)].concat();
    let bytes = ar::raw(&[(&format!("#1/{}", n / 2), &content)]);
    let limit = (64 << 20) + 4 * bytes.len() as u64;
    let seen = cost(bytes);
    assert_eq!(seen.entered - 1 + seen.findings, (n / 2 / 32) as u64);
    assert!((100..=limit / (n as u64 / 2) + 1).contains(&seen.entered), "{}", seen.entered);
    assert!(seen.last_finding.contains(&format!("exceed the limit of {limit} bytes in total")));
}

#[test]
fn names_of_sections_may_share_bytes_up_to_a_limit() {
    // Four times the bytes of an honest file's headers, and a block of the file for each.
    let n = 1 << 20;
    for bytes in
        [inputs::sections_with_a_shared_name(n), inputs::sections_with_overlapping_names(n)]
    {
        let blocks = (n / 128 * 16384) as u64;
        let seen = cost(bytes);
        assert_eq!((seen.findings, seen.entered), (1, 0));
        assert!(seen.read.get() < 10 * n as u64 + blocks, "{}", seen.read.get());
    }
}

#[test]
fn names_of_sections_may_be_long() {
    for len in [4095, 4096, 4097, 5000, 8192, 8193, 100_000] {
        let mut name = format!("{}hip-amdgcn-amd-amdhsa--gfx1", "__CLANG_OFFLOAD_BUNDLE__");
        name.push_str(&"_".repeat(len - name.len()));
        let (table, [at]) = names([&name]);
        let bytes = inputs::object(b"x", &table, &[(at, 64, 1)]);
        struct Names(Vec<String>);
        impl Visitor for Names {
            fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
                self.0.push(image.path()[0].name().to_owned());
                Ok(())
            }
            fn finding(&mut self, finding: &Finding) -> io::Result<()> {
                assert_eq!(finding.severity(), Severity::Warning);
                Ok(())
            }
        }
        let mut names = Names(Vec::new());
        walk(&mut Cursor::new(bytes), &Options::default(), &mut names).unwrap();
        assert_eq!(names.0, [name], "{len}");
    }
}

#[test]
fn headers_in_many_sections_are_examined_up_to_a_limit() {
    let n = 1 << 20;
    let seen = cost(inputs::sections_at_a_faulty_package(n));
    assert_eq!(seen.entered, 0);
    assert!(seen.findings > 8000, "{}", seen.findings);
    assert!(
        seen.last_finding.ends_with("overlaps another section with device code"),
        "{}",
        seen.last_finding
    );
    // The headers of sections, and packages of half the file until they are as much as the file.
    assert!(seen.read.get() < 5 * n as u64, "{}", seen.read.get());
}

/// The host's entry is the object: once, for any number of sections that claim to be the object.
#[test]
fn an_object_is_its_own_host_once() {
    let (names, [name]) = names(["__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-"]);
    // No two of them share a byte.
    let sections: Vec<_> = (64..64 + 101).map(|offset| (name, offset, 1)).collect();
    let object = |count| inputs::object(&[0; 101], &names, &sections[..count]);
    struct Hosts(usize, Vec<String>);
    impl Visitor for Hosts {
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            self.0 += usize::from(image.format() == FileFormat::HostPlaceholder);
            Ok(())
        }
        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            self.1.push(finding.to_string());
            Ok(())
        }
    }
    let mut hosts = Hosts(0, Vec::new());
    walk(&mut Cursor::new(object(101)), &Options::default(), &mut hosts).unwrap();
    assert_eq!((hosts.0, hosts.1.len()), (1, 100));
    assert!(
        hosts.1[0].ends_with("duplicate host placeholder host-x86_64-unknown-linux-gnu-"),
        "{}",
        hosts.1[0]
    );
    // Each object in an archive has its own.
    let archive = ar::archive(&[("a", &object(1)[..]); 3]);
    let mut hosts = Hosts(0, Vec::new());
    walk(&mut Cursor::new(&archive), &Options::default(), &mut hosts).unwrap();
    assert_eq!((hosts.0, hosts.1.len()), (3, 0));
}

/// Control characters are escaped in texts and kept in names.
#[test]
fn texts_have_no_control_characters() {
    struct Texts(Vec<String>, Vec<String>);
    impl Visitor for Texts {
        fn enter(&mut self, container: &Container) -> io::Result<()> {
            let segment = container.path().last().unwrap();
            self.0.push(segment.to_string());
            self.1.push(segment.name().to_owned());
            Ok(())
        }
        fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
            Ok(())
        }
        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            self.0.push(finding.to_string());
            self.0.push(finding.error().to_string());
            Ok(())
        }
        fn open_thin_member(&mut self, _: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
            Ok(Box::new(Cursor::new(vec![0; 9999])))
        }
    }
    let texts = |bytes: &[u8], options: &Options| {
        let mut texts = Texts(Vec::new(), Vec::new());
        walk(&mut Cursor::new(bytes), options, &mut texts).unwrap();
        assert!(!texts.0.is_empty());
        for text in &texts.0 {
            assert!(!text.contains(char::is_control), "{text:?}");
        }
        assert!(texts.0.iter().any(|text| text.contains(r"\u{1b}[2J")), "{:?}", texts.0);
        texts
    };
    let options = Options::default();
    let mut archive = [&ar::MAGIC[..], &ar::header("\x1b[2J\r\n/", 4)].concat();
    let whole = [&archive[..], b"CCOB"].concat();
    let seen = texts(&whole, &options);
    assert_eq!(seen.0[0], r"member:\u{1b}[2J\r\n");
    assert_eq!(seen.1, ["\x1b[2J\r\n"]);
    texts(&archive, &options);
    archive[..8].copy_from_slice(ar::THIN);
    let none = Options::default().with_max_thin_bytes(0);
    texts(&archive, &none);
    texts(&archive, &options);

    let (names, [name]) = names([".llvm.offloading.\x1b[2J"]);
    texts(&inputs::object(&[b'.'; 32], &names, &[(name, 64, 9), (name, 65, 9)]), &options);
    texts(&inputs::object(&[b'.'; 32], &names, &[(name, 64, 9999)]), &options);
}
