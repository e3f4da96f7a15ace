//! The walk over real files, files built here, and damaged ones.

use std::borrow::Cow;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;

use byte_parts::ReadSeek;
use fat_object::{
    Container, ContainerKind, Enter, FileFormat, Finding, Image, Location, Options, Severity,
    Summary, Visitor, list_slice, walk, walk_slice,
};
use samples::ar::{archive, raw};
use samples::fatbin::{Made, fatbin};
use samples::{example, example_path, put, with};

#[derive(Debug, PartialEq)]
struct Seen {
    path: String,
    id: String,
    container: ContainerKind,
    location: Location,
    size: u64,
    format: FileFormat,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Collect {
    images: Vec<Seen>,
    findings: Vec<(String, Severity)>,
    depth: usize,
    deepest: usize,
    thin: Option<PathBuf>,
    /// Images are wanted before their hash is known.
    early: bool,
}

impl Visitor for Collect {
    fn opens(&mut self, _: &Container) -> Enter {
        if self.early { Enter::OpenEarly } else { Enter::Open }
    }

    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        assert_eq!(container.path().len(), self.depth);
        assert_eq!(container.path().last().unwrap().kind(), container.kind());
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        assert_eq!(image.index(), self.images.len());
        assert_eq!(image.path().len(), self.depth);
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        self.images.push(Seen {
            path: image.path().iter().map(ToString::to_string).collect::<Vec<_>>().join("/"),
            id: image.id().map_or_else(|| image.target().to_string(), str::to_owned),
            container: image.container(),
            location: image.location(),
            size: image.size(),
            format: image.format(),
            bytes,
        });
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.findings.push((finding.to_string(), finding.severity()));
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        self.depth -= 1;
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        let directory = self.thin.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(std::fs::File::open(directory.join(std::str::from_utf8(name).unwrap()))?))
    }
}

fn collect_with(bytes: &[u8], options: &Options) -> (Collect, Summary) {
    let mut collect = Collect::default();
    let summary = walk(&mut Cursor::new(bytes), options, &mut collect).unwrap();
    assert_eq!(collect.depth, 0, "every container entered is left");
    assert_eq!(summary.images, collect.images.len());
    assert_eq!(summary.findings, collect.findings.len());
    (collect, summary)
}

fn collect(bytes: &[u8]) -> Collect {
    collect_with(bytes, &Options::default()).0
}

#[test]
fn places_in_the_file_hold_the_bytes_of_the_image() {
    for name in [
        "hip.o",
        "hip-two-units.so",
        "hip-packager.o",
        "merged-packager.o",
        "libhip.a",
        "libbundles.a",
        "bundle.o",
        "bundle.s",
        "packages.offload",
        "cuda-fatbin.o",
        "hip.hipfb",
    ] {
        let bytes = example(name);
        let seen = collect(&bytes);
        assert_eq!(seen.findings, [], "{name}");
        assert!(!seen.images.is_empty(), "{name}");
        for image in &seen.images {
            let Location::File(offset) = image.location else { panic!("{name}: {image:?}") };
            let offset = usize::try_from(offset).unwrap();
            assert_eq!(image.bytes, bytes[offset..offset + image.bytes.len()], "{name}");
        }
    }
}

#[test]
fn compressed_bundles_are_read_one_after_the_other() {
    let seen = collect(&example("hip-two-units-ccob.so"));
    let paths: Vec<_> = seen.images.iter().map(|image| image.path.as_str()).collect();
    let (first, second) =
        ("section:.hip_fatbin/ccob:0/bundle:0", "section:.hip_fatbin/ccob:1/bundle:0");
    assert_eq!(paths, [first, first, first, second, second, second]);
    assert!(seen.images.iter().all(|image| image.container == ContainerKind::Ccob));
    assert_eq!(seen.images[1].location, Location::Decompressed(4096));
    assert_eq!(seen.images[1].format, FileFormat::Elf { machine: 224 });
}

#[test]
fn a_bundle_has_the_same_images_in_every_container() {
    // Plain and compressed forms of one compilation hold the same images.
    let plain = collect(&example("hip.o"));
    let compressed = collect(&example("hip-ccob-v3.o"));
    let key = |seen: &Collect| {
        seen.images.iter().map(|i| (i.id.clone(), i.bytes.clone())).collect::<Vec<_>>()
    };
    assert_eq!(key(&plain), key(&compressed));
    let v2 = collect(&example("hip-ccob-v2.hipfb"));
    for name in ["hip-ccob-v3.hipfb", "hip-macos.o", "hip.obj", "hip.dll", "hip.lib"] {
        let other = collect(&example(name));
        assert_eq!(other.findings, [], "{name}");
        let ids = |seen: &Collect| {
            seen.images
                .iter()
                .map(|i| i.id.clone())
                .filter(|id| !id.starts_with("host"))
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&other), ids(&v2), "{name}");
    }
}

#[test]
fn slices_of_a_universal_file_are_walked() {
    let seen = collect(&example("hip-macos-universal.o"));
    let slices: Vec<_> =
        seen.images.iter().map(|image| image.path.split('/').next().unwrap()).collect();
    assert_eq!(
        slices,
        [
            "slice:x86_64",
            "slice:x86_64",
            "slice:x86_64",
            "slice:aarch64",
            "slice:aarch64",
            "slice:aarch64"
        ]
    );
}

#[test]
fn thin_archives_open_their_members() {
    let bytes = example("libhip-thin.a");
    let mut seen = Collect { thin: Some(example_path("")), ..Collect::default() };
    walk(&mut Cursor::new(&bytes), &Options::default(), &mut seen).unwrap();
    assert_eq!(seen.findings, []);
    assert_eq!(seen.images.len(), 10);
    let alone = collect(&example("hip.o"));
    for (inside, alone) in seen.images.iter().zip(&alone.images) {
        assert_eq!(inside.bytes, alone.bytes);
        assert_eq!(inside.path, format!("member:hip.o/{}", alone.path));
        let (Location::ThinMember(there), Location::File(here)) = (inside.location, alone.location)
        else {
            panic!()
        };
        assert_eq!(there, here);
    }
    // With another size than the archive says: an error, and the file is still walked.
    let found = example("hip.o").len();
    let field = |size: usize| format!("{size:<10}`\n").into_bytes();
    let at = bytes.windows(12).position(|window| window == field(found)).unwrap();
    let mut other = bytes.clone();
    other[at..at + 12].copy_from_slice(&field(100));
    let mut resized = Collect { thin: seen.thin.clone(), ..Collect::default() };
    walk(&mut Cursor::new(&other), &Options::default(), &mut resized).unwrap();
    assert_eq!(resized.images.len(), 10);
    let [(message, ..)] = &resized.findings[..] else { panic!("{:?}", resized.findings) };
    assert_eq!(
        *message,
        format!("at byte 0x0: thin archive member hip.o: expected 100 bytes, found {found}")
    );
    // Without a way to open members: a finding for each.
    let seen = collect(&bytes);
    assert_eq!(seen.findings.len(), 3);
    assert!(seen.findings[0].0.contains("hip.o"), "{:?}", seen.findings);
}

/// The `ar` crate as a second opinion on names and contents of members.
#[test]
fn archives_agree_with_a_second_reader() {
    struct Members(Vec<(String, u64, u64)>);
    impl Visitor for Members {
        fn enter(&mut self, container: &Container) -> io::Result<()> {
            if container.kind() == ContainerKind::Member {
                let name = container.path().last().unwrap().name().to_owned();
                self.0.push((name, container.location().file_offset().unwrap(), container.size()));
            }
            Ok(())
        }
        fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
            Ok(())
        }
    }
    // Names of all lengths around the 16 bytes of a header field, sizes odd and even.
    let names: Vec<Vec<u8>> = (1..40).map(|n| vec![b'a' + n % 26; usize::from(n)]).collect();
    let contents: Vec<Vec<u8>> = (0..39u8).map(|n| vec![n; usize::from(n) * 7]).collect();
    let mut gnu = ar::GnuBuilder::new(Vec::new(), names.clone());
    let mut bsd = ar::Builder::new(Vec::new());
    for (name, content) in names.iter().zip(&contents) {
        let header = ar::Header::new(name.clone(), content.len() as u64);
        gnu.append(&header, &content[..]).unwrap();
        bsd.append(&header, &content[..]).unwrap();
    }
    for (what, bytes) in [
        ("gnu", gnu.into_inner().unwrap()),
        ("bsd", bsd.into_inner().unwrap()),
        ("libhip.a", example("libhip.a")),
        ("darwin", example("libhip-darwin.a")),
    ] {
        let mut ours = Members(Vec::new());
        walk(&mut Cursor::new(&bytes), &Options::default(), &mut ours).unwrap();
        let mut theirs = ar::Archive::new(&bytes[..]);
        let mut count = 0;
        while let Some(entry) = theirs.next_entry() {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let (name, offset, size) = &ours.0[count];
            assert_eq!(name.as_bytes(), entry.header().identifier(), "{what}");
            let (start, end) =
                (usize::try_from(*offset).unwrap(), usize::try_from(offset + size).unwrap());
            assert_eq!(bytes[start..end], content, "{what} {name}");
            count += 1;
        }
        assert_eq!(count, ours.0.len(), "{what}");
        assert!(count > 1, "{what}");
    }
}

#[test]
fn nesting_has_a_limit() {
    let mut nested = example("hip.hipfb");
    for _ in 0..20 {
        nested = archive(&[("inner.a", &nested)]);
    }
    let seen = collect(&nested);
    assert_eq!(seen.images.len(), 2);
    assert_eq!(seen.deepest, 21);
    let options = Options::default().with_max_depth(10);
    let (seen, _) = collect_with(&nested, &options);
    assert_eq!(seen.images, []);
    assert_eq!(seen.findings.len(), 1);
    assert!(seen.findings[0].0.contains("nested more than 10 deep"), "{:?}", seen.findings);
}

#[test]
fn truncated_and_malformed_archives_are_reported() {
    let whole = archive(&[("a.hipfb", &example("hip.hipfb"))]);
    let seen = collect(&whole[..whole.len() - 100]);
    assert!(
        seen.findings[0].0.contains("archive is cut short: member a.hipfb needs bytes 0x44.."),
        "{:?}",
        seen.findings
    );
    let mut odd_name = whole.clone();
    odd_name[8..24].copy_from_slice(b"/999999999      ");
    let seen = collect(&odd_name);
    assert!(seen.findings[0].0.contains("malformed archive"), "{:?}", seen.findings);
    let seen = collect(&whole[..40]);
    assert!(seen.findings[0].0.contains("malformed archive"), "{:?}", seen.findings);
}

fn patch_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Offset of the header of the section with this file offset, in a 64-bit little-endian ELF file.
fn section_header(bytes: &[u8], sh_offset: u64) -> usize {
    let number = |at: usize, len: usize| {
        let mut wide = [0; 8];
        wide[..len].copy_from_slice(&bytes[at..at + len]);
        usize::try_from(u64::from_le_bytes(wide)).unwrap()
    };
    let (table, count) = (number(40, 8), number(60, 2));
    (0..count)
        .map(|i| table + 64 * i)
        .find(|&header| number(header + 24, 8) as u64 == sh_offset && number(header + 32, 8) > 0)
        .unwrap()
}

#[test]
fn sections_beyond_the_end_and_overlapping_ones_are_reported() {
    let bytes = example("hip-two-units.so");
    let fatbin = section_header(&bytes, 4096);
    let mut long = bytes.clone();
    patch_u64(&mut long, fatbin + 32, 1 << 40);
    let no_scan = Options::default().with_scan(false);
    let seen = collect_with(&long, &no_scan).0;
    assert_eq!(seen.images, []);
    assert!(
        seen.findings[0]
            .0
            .contains("section .hip_fatbin lies at 0x1000..0x10000001000, beyond the end"),
        "{:?}",
        seen.findings
    );

    // Another section header that names the same bytes.
    let mut twice = bytes.clone();
    let other = fatbin + 64;
    patch_u64(&mut twice, other + 24, 4096);
    patch_u64(&mut twice, other + 32, 8192);
    let seen = collect(&twice);
    assert_eq!(seen.images.len(), 4);
    assert!(seen.findings[0].0.contains("overlaps another section"), "{:?}", seen.findings);

    // A section table that lies outside the file.
    let mut outside = bytes.clone();
    patch_u64(&mut outside, 40, u64::MAX - 3);
    let seen = collect(&outside);
    assert!(seen.findings[0].0.contains("malformed ELF file"), "{:?}", seen.findings);

    // No section table at all: only a scan finds something, and that is said.
    let mut none = bytes;
    patch_u64(&mut none, 40, 0);
    none[60..62].fill(0);
    let seen = collect_with(&none, &no_scan).0;
    assert_eq!(seen.images, []);
    assert_eq!(seen.findings[0].1, Severity::Warning);
}

/// Programs that deal with these formats have the magics in their string constants.
#[test]
fn a_magic_alone_makes_no_container_of_an_unnamed_section() {
    let bytes = example("hip-two-units.so");
    let name = bytes.windows(11).position(|w| w == b".hip_fatbin").unwrap();
    let mut renamed = bytes.clone();
    renamed[name..name + 11].copy_from_slice(b".rodata.str");
    assert_eq!(collect(&renamed).images.len(), 4);
    // the number of entries of the first bundle
    renamed[4096 + 24..4096 + 32].fill(b'x');
    let seen = collect_with(&renamed, &Options::default().with_scan(false)).0;
    assert_eq!((seen.images.len(), seen.findings.len()), (0, 0));
    // In a section whose name promises device code the same is a fault.
    let mut damaged = bytes;
    damaged[4096 + 24..4096 + 32].fill(b'x');
    assert_eq!(collect(&damaged).findings.len(), 1);
}

#[test]
fn bytes_between_containers_are_reported() {
    let bundle = example("hip.hipfb");
    let mut bytes = bundle.clone();
    bytes.extend([0; 100]);
    bytes.extend(&bundle);
    bytes.extend([0; 3]);
    assert_eq!(collect(&bytes).images.len(), 4);
    assert_eq!(collect(&bytes).findings, []);
    bytes.extend(b"junk");
    let seen = collect(&bytes);
    assert_eq!(seen.images.len(), 4);
    assert!(
        seen.findings[0].0.contains("of the section or file (first bytes [6a, 75, 6e, 6b])"),
        "{:?}",
        seen.findings
    );
}

/// A compressed bundle, a package and a fatbinary, one after the other: all containers may follow each other.
#[test]
fn containers_of_different_kinds_may_follow_each_other() {
    let mut bytes = example("hip-ccob-v3.hipfb");
    bytes.extend(example("packages.offload"));
    bytes.extend([0; 16]);
    bytes.extend(example("hip.hipfb"));
    let seen = collect(&bytes);
    assert_eq!(seen.findings, []);
    assert_eq!(seen.images.len(), 3 + 5 + 2);
    assert_eq!(seen.images.last().unwrap().path, "bundle:6");
}

#[test]
fn bundles_may_be_in_bundles_and_compressed_ones_in_compressed_ones() {
    let inner = example("hip.hipfb");
    let id = b"hip-amdgcn-amd-amdhsa--gfx1100";
    let mut outer = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    for number in [1, 24 + 8 + 24 + id.len() as u64, inner.len() as u64, id.len() as u64] {
        outer.extend(number.to_le_bytes());
    }
    outer.extend(id);
    outer.extend(&inner);
    let seen = collect(&outer);
    let paths: Vec<_> = seen.images.iter().map(|image| image.path.as_str()).collect();
    let nested = "bundle:0/image:hip-amdgcn-amd-amdhsa--gfx1100/bundle:0";
    assert_eq!(paths, ["bundle:0", nested, nested]);

    let once = ccob::compress(&inner, &ccob::WriteOptions::default()).unwrap();
    let twice = ccob::compress(&once, &ccob::WriteOptions::default()).unwrap();
    let seen = collect(&twice);
    assert_eq!(seen.images[1].path, "ccob:0/ccob:0/bundle:0");
    assert_eq!(seen.images[1].bytes, collect(&inner).images[1].bytes);
    // Both levels are held at one time: the limit is for their sum.
    let both = (once.len() + inner.len()) as u64;
    let options = Options::default().with_max_decompressed(both);
    assert_eq!(collect_with(&twice, &options).0.findings, []);
    let options = Options::default().with_max_decompressed(both - 1);
    assert_eq!(collect_with(&twice, &options).0.images, []);
}

#[test]
fn a_shrinking_file_is_an_error_of_reading() {
    /// Says it is longer than it is, as a file that somebody truncates.
    struct Shrinks(Cursor<Vec<u8>>, u64);
    impl Read for Shrinks {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            self.0.read(buf)
        }
    }
    impl io::Seek for Shrinks {
        fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
            match to {
                io::SeekFrom::End(by) => {
                    self.0.seek(io::SeekFrom::Start(self.1.checked_add_signed(by).unwrap()))
                }
                to => self.0.seek(to),
            }
        }
    }
    let bytes = example("hip.o");
    let len = bytes.len() as u64;
    let mut shrunk = bytes;
    shrunk.truncate(12_000);
    let result =
        walk(&mut Shrinks(Cursor::new(shrunk), len), &Options::default(), &mut Collect::default());
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn errors_of_the_visitor_end_the_walk() {
    struct Stops;
    impl Visitor for Stops {
        fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
            Err(io::Error::other("enough"))
        }
    }
    let result = walk(&mut Cursor::new(example("hip.o")), &Options::default(), &mut Stops);
    assert_eq!(result.unwrap_err().to_string(), "enough");
}

#[test]
fn fatbinary_entries_are_listed_with_their_faults() {
    let entry = |kind, sm, flags, size, payload: &[u8]| Made {
        kind,
        sm,
        flags,
        size,
        payload: payload.to_vec(),
        ..Made::default()
    };
    let good = fatbin(&[
        entry(1, 70, 0x11, 0, b".version 7.0\n\0\0\0"),
        entry(2, 80, 0x2011, 900, b"\xf0abcd"),
        entry(2, 90, 0x8011, 901, b"12345678"),
    ]);
    let seen = collect(&good);
    assert_eq!(seen.findings, []);
    let facts: Vec<_> =
        seen.images.iter().map(|i| (i.id.as_str(), i.size, i.bytes.len(), i.format)).collect();
    assert_eq!((facts[0].1, facts[0].2), (16, 16));
    assert_eq!((facts[1].1, facts[1].2, facts[1].3), (900, 5, FileFormat::Cubin));
    assert_eq!((facts[2].1, facts[2].2, facts[2].3), (901, 8, FileFormat::Cubin));
    assert_eq!(facts[0].3, FileFormat::Ptx);

    let seen = collect(&with(&good, 16 + 4, &[63]));
    assert!(seen.findings[0].0.contains("header size of 63, expected at least 64"));
    let seen = collect(&with(&good, 8, &[0xff; 8]));
    assert!(seen.findings[0].0.contains("promises 18446744073709551615 bytes"));
    let seen = collect(&good[..15]);
    assert!(seen.findings[0].0.contains("needs 16 bytes, 15 are left"), "{:?}", seen.findings);
}

#[test]
fn fatbinary_entries_may_be_for_one_architecture_or_family() {
    // The flags as `fatbinary --image3=kind=elf,sm=90a,...` of CUDA 13.5 writes them.
    let entry = |sm, flags| Made { flags, ..Made::cubin(sm, b"12345678") };
    let entries =
        [entry(90, 0x11), entry(90, 0x10_0011), entry(100, 0x120_0011), entry(100, 0x110_8011)];
    let listing = list_slice(&fatbin(&entries), &Options::default()).unwrap();
    let targets: Vec<_> = listing.images().iter().map(|image| image.target().id()).collect();
    assert_eq!(targets, ["sm_90", "sm_90a", "sm_100f", "sm_100a"]);
}

#[test]
fn host_placeholders_are_recognised_by_kind() {
    let seen = collect(&example("bundle.o"));
    let facts: Vec<_> = seen
        .images
        .iter()
        .map(|image| (image.id.as_str(), image.container, image.format))
        .collect();
    assert_eq!(facts[0].0, "hip-amdgcn-amd-amdhsa--gfx906:xnack-");
    assert_eq!(facts[1].0, "host-x86_64-pc-linux-gnu-");
    assert_eq!((facts[1].1, facts[1].2), (ContainerKind::Section, FileFormat::HostPlaceholder));
}

#[test]
fn package_entries_keep_what_they_record() {
    let listing = list_slice(&example("packages.offload"), &Options::default()).unwrap();
    let records = listing.images().iter().map(|image| {
        let entry = image.offload_binary_entry().unwrap();
        assert_eq!(entry.get("arch").unwrap(), image.target().id().as_bytes());
        assert!(entry.strings().len() >= 2 && entry.flags().is_empty());
        let feature = entry.get("feature").map(<[u8]>::to_vec);
        (entry.image_kind().0, entry.offload_kind().0, feature)
    });
    let records: Vec<_> = records.collect();
    let ptx = Some(b"+ptx63".to_vec());
    assert_eq!(records, [(1, 4, None), (2, 4, None), (5, 2, ptx), (3, 2, None), (0, 8, None)]);
}

#[test]
fn errors_can_be_matched() {
    let mut bytes = example("hip-ccob-v3.hipfb");
    bytes[24] ^= 1;
    let listing = list_slice(&bytes, &Options::default()).unwrap();
    let [finding] = listing.findings() else { panic!("{:?}", listing.findings()) };
    assert_eq!(finding.error().container(), Some(ContainerKind::Ccob));
}

/// Archives for Apple's linker fill members up to a multiple of 8, and count the padding.
#[test]
fn padding_of_members_is_not_damage() {
    let bundle = example("bundle.bc");
    for (padding, findings) in
        [(&b""[..], 0), (b"\n", 0), (b"\n\n\n\n\n\n\n", 0), (b"\n\n\n\n\n\n\n\n", 1), (b"\n\nx", 1)]
    {
        let member = [&bundle[..], padding].concat();
        let found = collect(&archive(&[("a.o", &member)]));
        assert_eq!(found.findings.len(), findings, "{padding:?}: {:?}", found.findings);
        // In a file it is not one.
        assert_eq!(collect(&member).findings.len(), usize::from(!padding.is_empty()));
    }
}

/// As `ar rcP` of GNU stores it: only short names that a slash starts are tables.
#[test]
fn members_with_absolute_names_are_not_tables() {
    let bundle = example("hip.hipfb");
    let images = collect(&bundle).images.len();
    let name = b"/usr/lib/a.hipfb/\n";
    for (member, count) in [("/0", images), ("/<XFGHASHMAP>/", 0)] {
        let seen = collect(&raw(&[("//", name), (member, &bundle)]));
        assert_eq!((seen.images.len(), seen.findings.len()), (count, 0));
    }
    // BSD's form, where the name lies before the data.
    let seen = collect(&raw(&[("#1/8", &[b"/a.hipfb", &bundle[..]].concat())]));
    assert_eq!((seen.images.len(), seen.findings.len()), (images, 0));
}

#[test]
fn names_of_members_are_reported_as_stored() {
    struct Names(Vec<(String, Vec<u8>)>);
    impl Visitor for Names {
        fn enter(&mut self, container: &Container) -> io::Result<()> {
            let segment = container.path().first().unwrap();
            self.0.push((segment.name().to_owned(), segment.name_bytes().to_owned()));
            Ok(())
        }
        fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
            Ok(())
        }
    }
    for (stored, text) in [(&b"a.o"[..], "a.o"), (b"caf\xe9.o", "caf\u{fffd}.o")] {
        let mut archive = archive(&[("name", b"text")]);
        put(&mut archive, 8, &[stored, b"/ "].concat());
        let mut names = Names(Vec::new());
        walk(&mut Cursor::new(archive), &Options::default(), &mut names).unwrap();
        assert_eq!(names.0, [(text.to_owned(), stored.to_owned())]);
    }
}

#[test]
fn hashes_are_verified_by_default() {
    let mut bytes = ccob::compress(&example("bundle.bc"), &ccob::WriteOptions::default()).unwrap();
    assert!(collect(&bytes).findings.is_empty());
    // The hash in the header.
    bytes[24] ^= 1;
    assert_eq!(collect(&bytes).findings.len(), 1);
    let options = Options::default().with_verify_hash(false);
    let (found, _) = collect_with(&bytes, &options);
    assert!(found.findings.is_empty() && !found.images.is_empty());
}

#[test]
fn images_may_be_seen_before_their_hash_is_known() {
    let mut bytes = ccob::compress(&example("bundle.bc"), &ccob::WriteOptions::default()).unwrap();
    let early = |bytes: &[u8]| {
        let mut early = Collect { early: true, ..Collect::default() };
        walk(&mut Cursor::new(bytes), &Options::default(), &mut early).unwrap();
        early
    };
    let found = early(&bytes);
    assert!(found.findings.is_empty() && !found.images.is_empty());
    assert_eq!(found.images, collect(&bytes).images);
    bytes[24] ^= 1;
    let damaged = early(&bytes);
    assert_eq!(damaged.images, found.images);
    assert_eq!(damaged.findings, collect(&bytes).findings);
    assert_eq!(collect(&bytes).images.len(), 0);
}

#[test]
fn containers_can_be_skipped() {
    struct Shallow(usize, usize);
    impl Visitor for Shallow {
        fn enter(&mut self, _: &Container) -> io::Result<()> {
            self.0 += 1;
            Ok(())
        }
        fn opens(&mut self, container: &Container) -> Enter {
            match container.kind() {
                ContainerKind::Section => Enter::Skip,
                _ => Enter::Open,
            }
        }
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            panic!("{image:?}");
        }
        fn leave(&mut self) -> io::Result<()> {
            self.1 += 1;
            Ok(())
        }
    }
    let mut shallow = Shallow(0, 0);
    walk(&mut Cursor::new(example("libhip.a")), &Options::default(), &mut shallow).unwrap();
    assert!(shallow.0 > 1 && shallow.0 == shallow.1);
}

#[derive(Default)]
struct Lent {
    is_lent: bool,
    count: u32,
}

impl Visitor for Lent {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let bytes = image.bytes()?;
        assert_eq!(matches!(bytes, Cow::Borrowed(_)), self.is_lent);
        assert_eq!(bytes[..], [7; 1000]);
        self.count += 1;
        Ok(())
    }
}

/// An image in memory is not copied. One that is read counts against the limit.
#[test]
fn images_in_memory_are_lent() {
    let layout = bundle_format::layout([("hip-amdgcn-amd-amdhsa--gfx906", 1000)], 1).unwrap();
    let file = layout.to_vec(&[&[7; 1000][..]]).unwrap();
    let options = |limit| Options::default().with_max_decompressed(limit);
    let mut lent = Lent { is_lent: true, count: 0 };
    walk_slice(&file, &options(0), &mut lent).unwrap();
    lent.is_lent = false;
    walk(Cursor::new(&file), &options(1000), &mut lent).unwrap();
    assert_eq!(lent.count, 2);
    let refused = walk(Cursor::new(&file), &options(999), &mut lent).unwrap_err();
    let message = "reading this image (1000 bytes) would exceed the limit of 999 bytes";
    assert_eq!(refused.to_string(), message);
}
