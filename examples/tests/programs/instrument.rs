//! Images are changed in files of every kind.

use std::path::Path;

use crate::common::{Arg, data, fails, images, names, run};

const INSTRUMENT: &str = env!("CARGO_BIN_EXE_instrument");

/// Files, and images of them.
const IMAGES: [(&str, &str, usize); 8] = [
    ("hip.o", "gfx90a:sramecc+:xnack-", 4),
    ("hip-ccob-v3.o", "gfx1100", 1),
    ("hip-two-units.so", "1", 1),
    ("hip-two-units-ccob.so", "4", 4),
    ("hip.hipfb", "gfx1100", 1),
    ("hip-ccob-v2.hipfb", "gfx906", 2),
    ("packages.offload", "gfx90a", 0),
    ("hip.dll", "gfx906", 2),
];

/// With a tool that makes it larger, and in place.
#[test]
fn one_image_changes_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    for (name, image, index) in IMAGES {
        let file = data(name);
        let mut expected = images(&file);
        let all = expected.len();
        let (target, bytes) = &mut expected[index];
        let before = bytes.len();
        bytes.resize(before + 100_000, 0);
        let args: [Arg<'_>; 7] = [
            &file,
            &"larger",
            &image,
            &"--with",
            &"sh",
            &"-c",
            &"head -c 100000 /dev/zero >>\"$0\"",
        ];
        let after = before + 100_000;
        let said = format!("image {index} of {all}, {target}: {before} -> {after} bytes\n");
        assert_eq!(run(place, INSTRUMENT, &args), said, "{name}");
        assert!(images(&place.join("larger")) == expected, "{name}");

        let larger = &mut expected[index].1;
        larger[64..68].copy_from_slice(&[1, 2, 3, 4]);
        let args: [Arg<'_>; 6] = [&"larger", &"patched", &image, &"--patch", &"0x40", &"04030201"];
        let said = run(place, INSTRUMENT, &args);
        assert!(said.starts_with("0x40: 0x00000006 -> 0x04030201\n"), "{name}: {said}");
        assert!(images(&place.join("patched")) == expected, "{name}");
    }
}

#[test]
fn impossible_changes_are_errors_without_output() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let instrument = |name: &str, image: &str, change: &[&str]| {
        let file = data(name);
        let mut args: Vec<Arg<'_>> = vec![&file, &"out", &image];
        args.extend(change.iter().map(|word| word as Arg<'_>));
        let said = fails(place, INSTRUMENT, &args);
        assert_eq!(names(place), [""; 0], "{said}");
        said.replace(&format!("{}: ", file.display()), "")
    };
    let patch = ["--patch", "0", "0"];
    let bad = "new image 0 is not for hipv4-amdgcn-amd-amdhsa--gfx1100: \
               unknown where an AMD GPU code object or LLVM bitcode is expected";
    for (name, image, change, said) in [
        ("hip.o", "gfx942", &patch[..], "no image for gfx942"),
        ("hip-two-units.so", "gfx1100", &patch, "several images for gfx1100: 1 3"),
        ("host.o", "0", &patch, "no image 0 among 0"),
        ("hip.o", "9", &patch, "no image 9 among 5"),
        // The image is not a code object any more.
        ("hip.o", "gfx1100", &patch, bad),
        ("hip.o", "gfx1100", &["--with", "false"], "false: exit status: 1"),
        ("hip.o", "gfx1100", &["--patch", "ffff", "0"], "at 0xffff: failed to fill whole buffer"),
        ("hip.o", "gfx1100", &["--patch", "no+0", "0"], "no kernel no"),
        (
            "hip-two-units.so",
            "1",
            &["--patch", "scale+35", "0"],
            "scale: offset 0x35 in 56 bytes of code",
        ),
        ("hip.o", "gfx1100", &[], "expected --with COMMAND... or --patch OFFSET WORD"),
    ] {
        assert_eq!(instrument(name, image, change), format!("instrument: {said}\n"));
    }
}

/// A program loads the library, whose constructors register its device code.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn instrumented_libraries_are_loaded() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let loader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/loader.c");
    run(place, "cc", &[&"-rdynamic", &loader, &"-o", &"loader", &"-ldl"]);
    for name in ["hip-two-units.so", "hip-two-units-ccob.so"] {
        let before = run(place, "./loader", &[&data(name)]);
        let grow = "head -c 100000 /dev/zero >>\"$0\"";
        let args: [Arg<'_>; 7] = [&data(name), &"grown.so", &"1", &"--with", &"sh", &"-c", &grow];
        run(place, INSTRUMENT, &args);
        assert_eq!(run(place, "./loader", &[&"./grown.so"]), before);
        assert_eq!(before.matches("0x48495046: ").count(), 2, "{before}");
    }
}
