//! `Debug` prints how long contents are, never the contents: a log line about a library of gigabytes stays a line.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use bundle_format::Bundle;
use bundle_format::text::TextBundle;
use byte_parts::{Part, Parts, Source};
use fat_object::Options;
use fat_object::sycl_table::SyclValue;
use nv_fatbin::{Architecture, Compression, Fatbin, Kind, NewEntry, NewFatbin};
use offload_binary::{FormatVersion, ImageEntry, OffloadBinary, OffloadKind};

use crate::common::data;
use crate::machine;

/// The most bytes that a value may print.
const MOST: usize = 2000;

/// Crates that only tests use.
const TESTS: [&str; 3] = ["oracles", "samples", "tool-tests"];

/// The types with bytes whose `Debug` is derived: these are short texts, not contents.
const NAMES: [(&str, &[&str]); 9] = [
    ("a value, which its reader compares and prints", &["Value"]),
    ("lines of a journal: names and hashes", &["Journal"]),
    ("the names of kernels and their arguments", &["Argument", "Kernel", "KernelCollector"]),
    ("the names of symbols", &["Function", "LinkerSymbol"]),
    ("the names of members and archives", &["DeviceArchive", "Event", "Need", "PathStep"]),
    ("keys and values of an offload binary", &["ImageSpec", "OffloadBinaryEntry", "RepeatedKey"]),
    ("arguments of a command line", &["HostOptions", "LinkerScript", "Options", "PlanOptions"]),
    (
        "paths of files",
        &["Distribution", "DistributionFiles", "File", "Lists", "Member", "MemberPath", "Rewrite"],
    ),
    (
        "paths of files, and their hashes",
        &["InstalledNotes", "Rewritten", "Row", "Site", "TreeFault", "WheelEdit"],
    ),
];

/// A large image that is easy to find.
fn contents() -> Vec<u8> {
    b"contents".repeat(512)
}

/// Checks what a value prints.
fn check(name: &str, value: &dyn Debug) {
    for text in [format!("{value:?}"), format!("{value:#?}").replace([' ', '\n'], "")] {
        assert!(text.len() < MOST, "{name}: {} bytes: {}", text.len(), &text[..MOST]);
        let is_printed = ["contents", "99,111,110,116", "99, 111, 110, 116"]
            .iter()
            .any(|part| text.contains(part));
        assert!(!is_printed, "{name}: {text}");
    }
}

/// Checks the values that an iterator gives.
fn check_each<T: Debug>(name: &str, values: impl IntoIterator<Item = T>) {
    let mut count = 0;
    for value in values {
        check(name, &value);
        count += 1;
    }
    assert!(count > 0, "{name}");
}

#[test]
fn containers_print_lengths() {
    let image = contents();
    let size = image.len() as u64;

    let layout = bundle_format::layout([("host-x86_64-unknown-linux-gnu-", size)], 1).unwrap();
    check("Layout", &layout);
    check("Parts", layout.parts());
    let bundle = layout.to_vec(&[&image[..]]).unwrap();
    check("Bundle", &Bundle::parse(&bundle).unwrap());
    check_each("bundle_format::Entry", Bundle::parse(&bundle).unwrap().entries());
    let text = fs::read(data("bundle.ll")).unwrap();
    let text = TextBundle::parse(&text).unwrap();
    check("TextBundle", &text);
    check_each("TextEntry", text.entries());

    let compressed = ccob::compress(&image, &ccob::WriteOptions::default()).unwrap();
    check("ccob::Header", &ccob::Header::parse(&compressed, compressed.len() as u64).unwrap());

    let entry =
        ImageEntry::new(size).with_offload_kind(OffloadKind::HIP).with_string("arch", "gfx90a");
    check("ImageEntry", &entry);
    let layout = offload_binary::layout(FormatVersion::V2, &[entry]).unwrap();
    let binary = layout.to_vec(&[&image[..]]).unwrap();
    let binary = OffloadBinary::parse(&binary).unwrap();
    check("OffloadBinary", &binary);
    check_each("offload_binary::Entry", binary.entries());

    let architecture = Architecture::from_name("sm_90").unwrap();
    let entry = NewEntry::new(Kind::ELF, architecture, &image[..]);
    let entry = entry.with_identifier(&image[..]).with_options(&image[..]);
    check("NewEntry", &entry);
    let several = NewEntry::concatenated(&[entry.clone(), entry.clone()]).unwrap();
    check("NewEntry::concatenated", &several);
    let mut fatbin = NewFatbin::new();
    fatbin.add(&entry).unwrap();
    fatbin.add(&several.with_compression(Compression::Lz4(3))).unwrap();
    check("NewFatbin", &fatbin);
    let fatbin = fatbin.to_vec().unwrap();
    let fatbin = Fatbin::parse(&fatbin).unwrap();
    check("Fatbin", &fatbin);
    check_each("nv_fatbin::Entry", fatbin.entries());
    let several = fatbin.entries().nth(1).unwrap().unwrap();
    check_each("ConcatenatedImage", several.concatenated().unwrap());

    let mut pack = kpack::NewKpack::new("blas", "gfx942", kpack::Scheme::Plain);
    pack.add("lib/libfoo.so", 0, "gfx942", size);
    check("NewKpack", &pack);
    let pack = pack.layout(&[size]).unwrap().to_vec(|_| &image[..]).unwrap();
    let pack = kpack::Kpack::parse(&pack).unwrap();
    check("Kpack", &pack);
    check("Toc", pack.toc());
    check_each("kpack::Entry", pack.toc().entries());
}

#[test]
fn files_and_outputs_print_lengths() {
    let image = contents();
    check("Source", &Source::of_bytes(&image));
    check("Part", &Part::<usize>::Bytes(&image));
    let mut parts = Parts::<usize>::new();
    parts.push_bytes(&image);
    parts.push_bytes(&image[..20]);
    check("Parts", &parts);
    check("SyclValue", &SyclValue::Bytes(image.clone().into()));
    check("wrapper_ir::Image", &wrapper_ir::Image::new(image.len() as u64, &image[..]));

    let mut writer = llvm_bitcode::Writer::new(*b"BC\xc0\xde");
    writer.enter_block(8, 3);
    let blob = writer.define_blob(1);
    writer.blob(blob, &image);
    check("Writer", &writer);

    let record = gpu_packages::Record::parse(b"contents.py,sha256=x,8\n").unwrap();
    check("Record", &record);
    let new = gpu_packages::NewContents::store(&image[..]).unwrap();
    check("NewContents", &new);

    for name in ["hip.o", "hip-packager.o", "libhip.a", "kernels.fatbin"] {
        let file = [fs::read(data(name)).unwrap(), image.clone()].concat();
        let listing = fat_object::list_slice(&file, &Options::default()).unwrap();
        check_each(name, listing.images());
    }
}

/// Returns the public types of a file that derive `Debug` and have a field of bytes.
fn derived(code: &str) -> Vec<&str> {
    const BYTES: [&str; 6] =
        ["Vec<u8>", "[u8]>", "&[u8]", " [u8]>", "Vec<Vec<u8>>", "Arc<Vec<u8>>"];
    let mut found = Vec::new();
    for word in ["pub struct ", "pub enum "] {
        for (at, _) in code.match_indices(word) {
            let above = code[..at].rsplit("\n\n").next().unwrap_or_default();
            let rest = &code[at + word.len()..];
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap();
            let ends = ["\n}\n", ";\n"].map(|end| rest.find(end).unwrap_or(rest.len()));
            let end = ends[0].min(ends[1]);
            let fields = rest[..end].lines().filter(|line| !line.trim_start().starts_with("//"));
            let has_bytes = |line: &str| {
                BYTES.iter().any(|bytes| line.contains(bytes))
                    || line.contains("&'") && line.contains(" [u8]")
            };
            let is_derived =
                above.lines().any(|line| line.starts_with("#[derive(") && line.contains("Debug"));
            if is_derived && fields.clone().any(has_bytes) {
                found.push(name);
            }
        }
    }
    found
}

#[test]
fn debug_of_contents_is_not_derived() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let entry = entry.unwrap();
        if !TESTS.iter().any(|name| entry.file_name() == *name) {
            machine::sources(&entry.path().join("src"), &mut files);
        }
    }
    let (mut seen, mut wrong) = (Vec::new(), Vec::new());
    for path in files {
        let code = fs::read_to_string(&path).unwrap();
        for name in derived(machine::without_tests(&code)) {
            seen.push(name.to_owned());
            if !NAMES.iter().any(|(_, names)| names.contains(&name)) {
                wrong.push(format!("{}: {name}", path.strip_prefix(&crates).unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "print lengths, not contents:\n{}", wrong.join("\n"));
    for name in NAMES.iter().flat_map(|(_, names)| *names) {
        assert!(seen.iter().any(|other| other == name), "{name} is no longer derived");
    }
}

#[test]
fn derived_debug_is_seen() {
    let code = "\
/// A file.
#[derive(Clone, Debug)]
pub struct File {
    /// A `Vec<u8>`.
    size: u64,
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub struct Sizes {
    sizes: Vec<u64>,
}

#[derive(Clone)]
pub struct Quiet<'d>(&'d [u8]);

#[derive(Debug)]
pub enum Loud<'d> {
    Bytes(&'d [u8]),
}
";
    assert_eq!(derived(code), ["File", "Loud"]);
}
