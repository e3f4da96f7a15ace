//! Texts that only their last line gives away as bundles.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use bundle_format::text::Leader;
use fat_object::{
    BundleForm, ContainerKind, Error, FileFormat, Finding, Image, Options, Severity, Visitor, walk,
};

const OLD: &str = "\
nop
# __CLANG_OFFLOAD_BUNDLE____END__ host
.version 7.0
# __CLANG_OFFLOAD_BUNDLE____END__ my gpu
";
const NEW: &str = "
# __CLANG_OFFLOAD_BUNDLE____START__ host-x86_64-unknown-linux-gnu-
nop
# __CLANG_OFFLOAD_BUNDLE____END__ host-x86_64-unknown-linux-gnu-
";

#[derive(Default)]
struct Seen {
    images: Vec<(Option<BundleForm>, String, String)>,
    findings: Vec<(Severity, String)>,
}

impl Visitor for Seen {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut content = String::new();
        image.reader().read_to_string(&mut content)?;
        let path: Vec<_> = image.path().iter().map(ToString::to_string).collect();
        assert!(path.last().is_some_and(|segment| segment.starts_with("bundle:")), "{path:?}");
        self.images.push((image.bundle_form(), image.id().unwrap().to_owned(), content));
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.findings.push((finding.severity(), finding.to_string()));
        Ok(())
    }
}

fn seen(bytes: &[u8]) -> (Seen, FileFormat) {
    let mut seen = Seen::default();
    let summary = walk(&mut Cursor::new(bytes), &Options::default(), &mut seen).unwrap();
    assert_eq!(summary.images, seen.images.len());
    (seen, summary.format)
}

/// Nothing is found, and nothing found wrong.
fn is_text(text: &str) -> bool {
    let (seen, format) = seen(text.as_bytes());
    seen.images.is_empty() && seen.findings.is_empty() && format == FileFormat::Unknown
}

fn old_images() -> Vec<(Option<BundleForm>, String, String)> {
    let form = Some(BundleForm::EndMarkers(Leader::Hash));
    vec![
        (form, "host".to_owned(), "nop\n".to_owned()),
        (form, "my gpu".to_owned(), ".version 7.0\n".to_owned()),
    ]
}

#[test]
fn the_form_of_the_first_proposal_is_read() {
    let (found, format) = seen(OLD.as_bytes());
    assert_eq!((found.images, found.findings), (old_images(), Vec::new()));
    assert_eq!(format, FileFormat::Bundle);
    // The first content may look like code for a GPU.
    let ptx_first = &OLD[OLD.find(".version").unwrap()..];
    assert_eq!(FileFormat::sniff(ptx_first.as_bytes()), FileFormat::Ptx);
    assert_eq!(seen(ptx_first.as_bytes()).0.images[..], old_images()[1..]);
}

#[test]
fn archives_of_such_texts_are_read() {
    let mut archive = b"!<arch>\n".to_vec();
    for name in ["a.s/", "b.s/"] {
        archive.extend(format!("{name:16}{:32}{:<10}`\n", "", OLD.len()).bytes());
        archive.extend(OLD.bytes());
        archive.resize(archive.len().next_multiple_of(2), b'\n');
    }
    let (found, _) = seen(&archive);
    assert_eq!(found.images, [old_images(), old_images()].concat());
    assert!(found.findings.is_empty());
}

#[test]
fn a_start_marker_anywhere_makes_it_a_text_bundle() {
    let (found, format) = seen(format!("# licence\n{NEW}").as_bytes());
    let form = Some(BundleForm::Text(Leader::Hash));
    let id = "host-x86_64-unknown-linux-gnu-".to_owned();
    assert_eq!(found.images, [(form, id, "nop".to_owned())]);
    assert!(found.findings.is_empty());
    assert_eq!(format, FileFormat::Bundle);

    // Damaged, and not mixed up with the older form.
    let (found, format) = seen(format!("{OLD}{NEW}").as_bytes());
    assert!(found.images.is_empty());
    assert_eq!(found.findings.len(), 1);
    assert_eq!(found.findings[0].0, Severity::Error);
    assert!(found.findings[0].1.contains("without a start marker"), "{:?}", found.findings);
    assert_eq!(format, FileFormat::Bundle);
}

#[test]
fn malformed_texts_are_errors() {
    let (found, _) = seen(b"nop\n# __CLANG_OFFLOAD_BUNDLE____END__ \n");
    assert!(found.images.is_empty());
    let [(Severity::Error, message)] = &found.findings[..] else { panic!("{:?}", found.findings) };
    assert_eq!(message, "at byte 0x0: bundle entry 0 at 0x4 has an empty ID");

    // Any text is an ID; only one that is there twice is worth a warning.
    let (found, _) = seen(OLD.replace("my gpu", "host").as_bytes());
    assert_eq!(found.images.len(), 2);
    let [(Severity::Warning, message)] = &found.findings[..] else {
        panic!("{:?}", found.findings)
    };
    assert!(message.contains("entries 0 and 1 both have the ID \"host\""), "{message}");
}

#[test]
fn other_texts_are_ignored() {
    for text in [
        "text\n",
        // A marker that is not in the last line is quoted, or the rest is: nobody can tell.
        &format!("{OLD}nop\n"),
        &OLD.replace("# _", "  # _"),
        &format!("{OLD}```\n"),
        &format!("```\n{NEW}```\n"),
    ] {
        assert!(is_text(text), "{text}");
    }
    assert!(is_text(&OLD.replacen("nop", "\0", 1)));
    assert!(is_text(&OLD.replacen(".version", "\0", 1)));
}

/// A large file, of which it counts how much is read.
struct Counting {
    inner: Cursor<Vec<u8>>,
    read: usize,
}

impl Read for Counting {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.read += n;
        Ok(n)
    }
}

impl Seek for Counting {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        self.inner.seek(pos)
    }
}

#[test]
fn unknown_files_cost_two_small_reads() {
    // A scan reads what is not text.
    for (byte, scans) in [(b'x', true), (b'x', false), (0, false)] {
        let mut file = Counting { inner: Cursor::new(vec![byte; 8 << 20]), read: 0 };
        let options = Options::default().with_scan(scans);
        walk(&mut file, &options, &mut Seen::default()).unwrap();
        assert!(file.read <= 40 << 10, "{}", file.read);
    }
}

/// IDs that are nobody's syntax, in a bundle of today.
#[test]
fn free_form_ids_are_listed_with_warnings() {
    let ids = ["host", "my gpu", "hip-amdgcn-amd-amdhsa--gfx906"];
    let layout = bundle_format::layout(ids.map(|id| (id, 3)), 1).unwrap();
    let binary = layout.to_vec(&[b"one", b"two", b"six"]).unwrap();
    let text = bundle_format::text::to_vec(
        Leader::Semicolon,
        &[(ids[0], b"one"), (ids[1], b"two"), (ids[2], b"six")],
    )
    .unwrap();
    for bytes in [binary, text] {
        let (found, _) = seen(&bytes);
        let listed: Vec<_> =
            found.images.iter().map(|(_, id, content)| (&id[..], &content[..])).collect();
        assert_eq!(listed, [(ids[0], "one"), (ids[1], "two"), (ids[2], "six")]);
        assert_eq!(found.findings.len(), 2, "{:?}", found.findings);
        for (severity, message) in found.findings {
            assert_eq!(severity, Severity::Warning);
            assert!(message.contains("bundle entry ID"), "{message}");
        }
    }
}

#[test]
fn errors_are_those_of_the_format() {
    struct First(Option<bool>);
    impl Visitor for First {
        fn image(&mut self, _: &mut Image<'_, '_>) -> io::Result<()> {
            panic!("damaged");
        }
        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            let expected = |e: &Error| {
                e.container() == Some(ContainerKind::Bundle)
                    && e.to_string().starts_with("bundle entry 1 at ")
                    && e.to_string().ends_with("has an empty ID")
            };
            self.0 = Some(expected(finding.error()));
            Ok(())
        }
    }
    let mut first = First(None);
    let text = OLD.replace("my gpu", "");
    walk(&mut Cursor::new(text.into_bytes()), &Options::default(), &mut first).unwrap();
    assert_eq!(first.0, Some(true));
}
