//! Errors of the libraries have one shape: a text says each thing once, and `thiserror` writes what they have in common.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Cursor};
use std::path::Path;
use std::{fs, iter};

use bundle_format::{Bundle, EntryId, Request};
use byte_parts::{Layout, Parts, Source};
use codecs::{Codec, Input};
use device_select::Device;
use object_edit::NewSections;
use samples::faulty::{Fault, Rig};

use crate::common::data;
use crate::machine;

/// The most bytes that are decompressed.
const LIMIT: u64 = 1 << 20;

/// The impls that are written by hand for good: the file below `crates`, the type, and the reason.
const BY_HAND: [(&str, &str, &str); 1] = [(
    "fat-object/src/error.rs",
    "Finding",
    "its text starts with a path, which is written step by step",
)];

/// The errors of each crate that were made, by their texts, with the texts of their sources.
#[derive(Default)]
struct Made(BTreeMap<&'static str, BTreeMap<String, Vec<String>>>);

impl Made {
    /// Takes an error.
    fn add(&mut self, name: &'static str, error: &dyn Error) {
        let sources = iter::successors(error.source(), |error| (*error).source());
        let sources = sources.map(ToString::to_string).collect();
        self.0.entry(name).or_default().insert(error.to_string(), sources);
    }

    /// Takes the error of a result, if it is one.
    fn of<T, E: Error>(&mut self, name: &'static str, result: Result<T, E>) {
        if let Err(error) = result {
            self.add(name, &error);
        }
    }

    /// Reads bytes with all libraries.
    fn read(&mut self, data: &[u8]) {
        let available = data.len() as u64;
        self.of("bundle-format", Bundle::parse(data));
        self.of("bundle-format", bundle_format::text::TextBundle::parse(data));
        self.of("ccob", ccob::Header::parse(data, available));
        self.of(
            "ccob",
            ccob::decompress(data, &ccob::ReadOptions::default().with_max_decompressed(LIMIT)),
        );
        self.of("codecs", Codec::Zstd.decompress(&Input::new(data, 9), &mut |_| {}));
        self.of("codecs", codecs::msgpack::Reader::new(data, 0).skip());
        self.of("device-select", device_select::load(data, &Device::parse("gfx90a").unwrap()));
        self.of("gpu-packages", gpu_packages::Zip::read(Cursor::new(data)));
        self.of("gpu-packages", gpu_packages::Record::parse(data));
        self.of("gpu-packages", gpu_packages::InstalledNotes::parse(data));
        self.of("kpack", kpack::Kpack::parse(data));
        self.of("llvm-bitcode", llvm_bitcode::symbols(data));
        self.of("object-edit", NewSections::offloading(data, 8));
        self.of("offload-binary", offload_binary::OffloadBinary::parse(data));
        self.of("offload-link", offload_link::Inputs::new().add("file", data));
        let fatbin = nv_fatbin::Fatbin::parse(data);
        for entry in fatbin.iter().flat_map(|fatbin| fatbin.entries()) {
            self.of("nv-fatbin", entry.and_then(|entry| entry.decompress(LIMIT)));
        }
        self.of("nv-fatbin", fatbin);
        let options = fat_object::Options::default();
        let listing = fat_object::list_slice(data, &options);
        for finding in listing.iter().flat_map(|listing| listing.findings()) {
            self.add("fat-object", finding);
            self.add("fat-object", finding.error());
        }
        self.of("fat-object", listing);
        let target = Request::new(&EntryId::parse("hip-amdgcn-amd-amdhsa--gfx90a").unwrap());
        let no_thin_members = hda_archive::no_thin_members;
        let plan =
            hda_archive::Unbundling::plan(Cursor::new(data), [target], &options, no_thin_members);
        self.of("hda-archive", plan);
        let mut file = Cursor::new(data);
        let surveyed = fat_edit::survey(&mut file, &options);
        if let Ok(surveyed) = &surveyed {
            self.of("fat-edit", surveyed.plan(&mut file, &fat_edit::Edit::default()));
        }
        self.of("fat-edit", surveyed);
    }

    /// Reads from files where a call fails.
    fn read_failing(&mut self, data: &[u8]) {
        let options = fat_object::Options::default();
        for call in 0..8 {
            let stream =
                || Rig::failing(call, Fault::Error(io::ErrorKind::HostUnreachable)).stream(data);
            self.of("fat-object", fat_object::list(stream(), &options));
            self.of("fat-edit", fat_edit::survey(stream(), &options));
            self.of("gpu-packages", gpu_packages::Zip::read(stream()));
            let open = hda_archive::no_thin_members;
            let inputs = offload_link::Inputs::new().read("file", stream(), open);
            self.of("offload-link", inputs);
            self.of("hda-archive", hda_archive::entries(stream(), &options, open, |_| Ok(())));
            let copied = Parts::from_input(0, 0..4).write_to(&mut [stream()][..], &mut Vec::new());
            self.of("byte-parts", copied);
            if let Ok(mut source) = Source::new(stream()) {
                let window = 0..data.len() as u64;
                let plan = object_edit::HostObject::plan(&mut source, &window, ".llvm.offloading");
                self.of("object-edit", plan);
            }
        }
    }

    /// Reads texts.
    fn parse(&mut self, text: &str) {
        self.of("bundle-format", EntryId::parse(text));
        for finding in bundle_format::composition([text, text]) {
            self.add("bundle-format", &finding);
        }
        self.of("device-select", Device::parse(text));
        self.of("device-select", text.parse::<device_select::Version>());
        self.of("target-id", target_id::TargetId::parse(text));
        self.of("target-id", target_id::NvidiaArch::parse(text));
        self.of("wrapper-ir", wrapper_ir::Target::new(text));
    }
}

#[test]
fn texts_of_errors_do_not_repeat_their_sources() {
    let mut made = Made::default();
    for name in [
        "bundle.bc",
        "bundle.o",
        "hip-ccob-v3.hipfb",
        "hip-embedded.bc",
        "hip-packager.o",
        "hip.hipfb",
        "kernels.fatbin",
        "libhip.a",
        "packages.offload",
    ] {
        let sound = fs::read(data(name)).unwrap();
        for tenth in 0..10 {
            made.read(&sound[..sound.len() * tenth / 10]);
            let mut damaged = sound.clone();
            damaged[(tenth * 5).min(sound.len() - 1)] ^= 0xff;
            made.read(&damaged);
        }
        made.read_failing(&sound);
    }
    // Formats without an example.
    for start in ["KPAK", "KPAK\x01\0\0\0", "KPAK\x02\0\0\0", "PK\x05\x06", "a,sha256=b,c"] {
        made.read(start.as_bytes());
        made.read(&[start.as_bytes(), &[7; 60]].concat());
    }
    made.of("byte-parts", Layout::new([1]).to_vec(&[]));
    for text in
        ["", "gfx906:xnack", "gfx906:xnack+:xnack-", "hip-x", "sm_", "pdp11-dec-unix", "RTX"]
    {
        made.parse(text);
    }
    let counts: Vec<_> = made.0.iter().map(|(name, errors)| (*name, errors.len())).collect();
    assert_eq!(counts.len(), 17, "{counts:?}");
    assert!(counts.iter().all(|(_, count)| *count >= 3), "{counts:?}");
    for (name, errors) in &made.0 {
        for (text, sources) in errors {
            for source in sources {
                assert!(!text.contains(source.as_str()), "{name}: {text:?} repeats {source:?}");
            }
        }
    }
}

/// Returns the error types for which code implements `Error` or `Display` by hand.
fn by_hand(code: &str) -> Vec<&str> {
    let heads = code.lines().filter(|line| line.trim_start().starts_with("impl"));
    let types = heads.filter_map(|head| {
        let (of, name) = head.split_once(" for ")?;
        let name = name.split([' ', '<']).next()?;
        let of = of.rsplit([' ', ':']).next()?;
        (of == "Error" || of == "Display" && name.ends_with("Error")).then_some(name)
    });
    types.collect()
}

#[test]
fn errors_are_not_written_by_hand() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let source = entry.unwrap().path().join("src");
        if source.exists() {
            machine::sources(&source, &mut files);
        }
    }
    let (mut found, mut derived) = (Vec::new(), 0);
    for path in files {
        let code = fs::read_to_string(&path).unwrap();
        derived += code.matches("thiserror::Error").count();
        let file = path.strip_prefix(&crates).unwrap();
        for name in by_hand(&code) {
            if !BY_HAND.iter().any(|(path, of, _)| file == Path::new(path) && *of == name) {
                found.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(derived > 15, "{derived}: the sources were not understood");
    assert!(found.is_empty(), "derive thiserror::Error instead:\n{}", found.join("\n"));
}

#[test]
fn impls_by_hand_are_seen() {
    let code = "impl core::error::Error for A {}\nimpl Error for B<'_> {}\n\
                impl fmt::Display for CError {\nimpl fmt::Display for Kind {\n\
                impl From<Error> for io::Error {\nimpl Error {";
    assert_eq!(by_hand(code), ["A", "B", "CError"]);
}
