//! Parts of small files, and damaged copies of the example files.

use samples::{example, find, with};

use super::{Family, Form, Held, Hostile, Random, Scale, Truth};
use super::{archives, bundles, compressed, elf, packages, texts};

/// Returns the images of a sound file, as the library reads them.
pub fn images_of(name: &str) -> Vec<Held> {
    let (images, errors) = crate::library::walked(&example(name), &[]);
    assert!(errors.is_empty(), "{name}: {errors:?}");
    images.into_iter().map(|found| found.held).collect()
}

/// A file whose every part is tried.
struct Whole {
    family: &'static str,
    form: Form,
    bytes: Vec<u8>,
    images: Vec<Held>,
    /// Shorter ones are not what the file is.
    recognised: usize,
    /// Places where it may end, and the number of images before each.
    sound: Vec<(usize, usize)>,
}

fn wholes() -> Vec<Whole> {
    let whole = |family, form, (bytes, images): (Vec<u8>, Vec<Held>), recognised| Whole {
        family,
        form,
        sound: vec![],
        bytes,
        images,
        recognised,
    };
    let mut all = vec![
        whole("parts of a package, version 1", Form::Package, packages::sample(), 4),
        whole("parts of a package, version 2", Form::Package, packages::sample_2(), 4),
        whole("parts of a bundle", Form::Bundle, bundles::sample(), 24),
        whole("parts of a compressed bundle", Form::CompressedBundle, compressed::sample(), 4),
        whole("parts of a text bundle", Form::Text, texts::sample(), 0),
        whole("parts of an archive", Form::Archive, archives::sample(), 8),
        whole("parts of an archive of bundles", Form::DeviceArchive, archives::device_sample(), 8),
        whole("parts of an ELF object", Form::PackageObject, elf::object_with_package("gfx906"), 4),
    ];
    let text = &mut all[4];
    let ends = find(&text.bytes[10..], b"END__ host") + 10;
    // From the whole marker of the first entry on it is a text bundle.
    text.recognised = find(&text.bytes, b"host-x86_64");
    let first_end = ends + find(&text.bytes[ends..], b"\n");
    let second = first_end + find(&text.bytes[first_end..], b"START__ ") + 8;
    text.sound = (first_end..second).map(|at| (at, 1)).collect();
    text.sound.push((text.bytes.len() - 1, 2));
    for (nth, one_image) in [(5, 1), (6, 3)] {
        let archive = &mut all[nth];
        let size =
            std::str::from_utf8(&archive.bytes[56..66]).unwrap().trim().parse::<usize>().unwrap();
        let end = 68 + size;
        archive.sound = vec![(8, 0), (end, one_image), (end.next_multiple_of(2), one_image)];
        let second = end.next_multiple_of(2);
        let size = std::str::from_utf8(&archive.bytes[second + 48..second + 58]).unwrap();
        archive
            .sound
            .push((second + 60 + size.trim().parse::<usize>().unwrap(), archive.images.len()));
    }
    all
}

/// All parts, or some; from the start of a file to any byte.
pub fn cuts(scale: Scale) -> Family {
    let step = match scale {
        Scale::Short => 29,
        Scale::Long => 10,
        Scale::Full => 1,
    };
    let mut family = Family::new("", Form::Bundle);
    for whole in wholes() {
        for len in (0..whole.bytes.len()).step_by(step) {
            let truth = match whole.sound.iter().find(|(at, _)| *at == len) {
                Some((_, images)) => Truth::Holds(whole.images[..*images].to_vec()),
                None if len < whole.recognised => Truth::Part(vec![]),
                None => Truth::Refused,
            };
            family.files.push(Hostile {
                family: whole.family,
                name: format!("{len} of {} bytes", whole.bytes.len()),
                form: whole.form,
                bytes: whole.bytes[..len].to_vec(),
                beside: vec![],
                truth,
                sound_outside: false,
            });
        }
    }
    family
}

const EXAMPLES: &[(&str, Form)] = &[
    ("packages.offload", Form::Package),
    ("hip-packager.o", Form::PackageObject),
    ("merged-packager.o", Form::PackageObject),
    ("openmp-packager.o", Form::PackageObject),
    ("hip.hipfb", Form::Bundle),
    ("bundle.bc", Form::Bundle),
    ("hip-ccob-v2.hipfb", Form::CompressedBundle),
    ("hip-ccob-v3.hipfb", Form::CompressedBundle),
    ("bundle.s", Form::Text),
    ("hip.o", Form::BundleElf),
    ("hip-two-units.so", Form::BundleElf),
    ("hip-ccob-v3.o", Form::CompressedElf),
    ("hip-two-units-ccob.so", Form::CompressedElf),
    ("bundle.o", Form::ObjectSections),
    ("libhip.a", Form::Archive),
    ("libbundles.a", Form::DeviceArchive),
    ("hip-embedded.bc", Form::Bitcode),
    ("cuda-fatbin.o", Form::Other),
    ("hip.obj", Form::Other),
    ("hip.lib", Form::Other),
    ("hip.dll", Form::Other),
    ("hip-macos.o", Form::Other),
    ("hip-macos-universal.o", Form::Other),
    ("libhip-darwin.a", Form::Other),
];

/// Example files with one byte changed: where headers are, mostly.
pub fn mutants(scale: Scale) -> Family {
    let count = match scale {
        Scale::Short => 3,
        Scale::Long => 10,
        Scale::Full => 100,
    };
    let mut family = Family::new("", Form::Bundle);
    for (nth, (name, form)) in EXAMPLES.iter().enumerate() {
        let base = example(name);
        let images = images_of(name);
        let starts = headers_of(&base);
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (nth as u64 + 1) << 32);
        for _ in 0..count {
            let near = match random.below(4) {
                0 => random.below(base.len()),
                _ => starts[random.below(starts.len())] + random.below(160),
            };
            let at = near.min(base.len() - 1);
            let byte = match random.below(3) {
                0 => base[at] ^ 1 << random.below(8),
                1 => [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
                _ => random.below(256) as u8,
            };
            let compressed = matches!(form, Form::CompressedBundle | Form::CompressedElf);
            let truth = if compressed { Truth::Part(images.clone()) } else { Truth::Any };
            let name = format!("{name}, byte {at:#x} is {byte:#x}");
            if byte != base[at] && family.files.iter().all(|file| file.name != name) {
                let bytes = with(&base, at, &[byte]);
                let (family_name, beside) = ("example files, one byte changed", vec![]);
                let file = Hostile {
                    family: family_name,
                    name,
                    form: *form,
                    bytes,
                    beside,
                    truth,
                    sound_outside: false,
                };
                family.files.push(file);
            }
        }
    }
    family
}

/// Returns the offsets of containers and tables.
fn headers_of(bytes: &[u8]) -> Vec<usize> {
    let magics: [&[u8]; 5] = [
        b"__CLANG_OFFLOAD_BUNDLE__",
        b"CCOB",
        b"\x10\xff\x10\xad",
        b"\x50\xed\x55\xba",
        b"`\n\x7fELF",
    ];
    let mut starts = vec![0];
    starts.extend(
        (0..bytes.len()).filter(|at| magics.iter().any(|magic| bytes[*at..].starts_with(magic))),
    );
    if bytes.starts_with(b"\x7fELF\x02\x01") {
        let table = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        starts.extend((table..bytes.len()).step_by(64));
    }
    starts
}
