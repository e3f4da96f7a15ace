//! Texts that only their last line gives away as bundles.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use bundle_format::text::Leader;
use fat_object::{BundleForm, FileFormat, Finding, Image, Options, Severity, Visitor, walk};

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

#[test]
fn a_start_marker_anywhere_makes_it_a_text_bundle() {
    let (found, format) = seen(format!("# licence\n{NEW}").as_bytes());
    let form = Some(BundleForm::Text(Leader::Hash));
    let id = "host-x86_64-unknown-linux-gnu-".to_owned();
    assert_eq!(found.images, [(form, id, "nop".to_owned())]);
    assert!(found.findings.is_empty());
    assert_eq!(format, FileFormat::Bundle);

    let end = NEW.lines().last().unwrap();
    let (found, format) = seen(format!("nop\n{end}\n").as_bytes());
    assert!(found.images.is_empty());
    assert_eq!(found.findings.len(), 1);
    assert_eq!(found.findings[0].0, Severity::Error);
    assert!(found.findings[0].1.contains("without a start marker"), "{:?}", found.findings);
    assert_eq!(format, FileFormat::Bundle);
}

/// A large file that counts how much of it is read.
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
