//! The smaller example programs do what they say.

use std::fs;

use nv_fatbin::Fatbin;

use crate::common::{Arg, data, fails, run};

#[test]
fn gpus_lists_the_gpus_of_each_file() {
    let files = [&"hip.o" as Arg<'_>, &"openmp-packager.o", &"host.o"];
    assert_eq!(
        run(&data(""), env!("CARGO_BIN_EXE_gpus"), &files),
        "hip.o: gfx1100 gfx9-generic gfx906:xnack+ gfx90a:sramecc+:xnack-\n\
         openmp-packager.o: gfx90a sm_70\n\
         host.o: \n"
    );
}

#[test]
fn why_not_prints_the_reasons() {
    let ids = ["hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", "hipv4-amdgcn-amd-amdhsa--gfx90a"];
    let args = [&"gfx90a:xnack+" as Arg<'_>, &ids[0], &ids[1]];
    let printed = run(&data(""), env!("CARGO_BIN_EXE_why_not"), &args);
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 2);
    let no = ": needs xnack off, the device has it on";
    assert_eq!(lines.first().unwrap().strip_prefix(ids[0]), Some(no));
    assert!(lines.last().unwrap().starts_with(ids[1]));
}

#[test]
fn inputs_lists_the_linker_inputs() {
    let files = [&"host.o" as Arg<'_>, &"openmp-packager.o", &"hip-ccob-v3.o"];
    let printed = run(&data(""), env!("CARGO_BIN_EXE_inputs"), &files);
    assert!(!printed.contains("host.o"));
    assert!(printed.starts_with("openmp-packager.o:\n  openmp"), "{printed}");
    assert_eq!(printed.matches("bytes, lent").count(), 2);
    assert!(printed.contains("bytes to be decompressed"));
}

#[test]
fn fatbin_packs_ptx_and_keeps_what_others_packed() {
    const FATBIN: &str = env!("CARGO_BIN_EXE_fatbin");
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let text = b".version 9.3 // a comment\n\t.target sm_90a\n.address_size 64\n";
    fs::write(place.join("a.ptx"), text).unwrap();
    let first: [Arg<'_>; 8] =
        [&"-o", &"one", &"--image", &"compute_90a=a.ptx", &"--cmdline", &"-O3", &"--ident", &"a"];
    assert_eq!(run(place, FATBIN, &first), "");
    let second: [Arg<'_>; 10] = [
        &"-o",
        &"two",
        &"--keep",
        &"one",
        &"-g",
        &"-c",
        &"--mode",
        &"none",
        &"--image",
        &"sm_120=a.ptx",
    ];
    assert_eq!(run(place, FATBIN, &second), "");

    let (one, two) = (fs::read(place.join("one")).unwrap(), fs::read(place.join("two")).unwrap());
    let entries = Fatbin::parse(&two).unwrap().entries().collect::<Result<Vec<_>, _>>().unwrap();
    let [kept, new] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!(kept.bytes(), Some(&one[16..]));
    assert_eq!(kept.architecture().to_string(), "sm_90a");
    assert_eq!(kept.options().unwrap(), Some(&b"-O3"[..]));
    assert_eq!(kept.identifier().unwrap(), Some(&b"a"[..]));
    assert_eq!(kept.flags().bits(), 0x10_8011);
    let stored = b".version 9.3 \n.target sm_90a\n.address_size 64\n\0";
    assert_eq!(kept.decompress(1 << 10).unwrap(), &stored[..]);
    assert_eq!((new.architecture().to_string(), new.flags().bits()), ("sm_120".to_owned(), 0x13));
    assert!(new.payload().unwrap().starts_with(stored));

    fs::write(place.join("other"), "text").unwrap();
    let refused =
        |args: &[Arg<'_>]| fails(place, FATBIN, &[&[&"-o" as Arg<'_>, &"out"], args].concat());
    assert_eq!(
        refused(&[&"--image", &"sm_90=other"]),
        "fatbin: other: expected PTX with its version, such as .version 8.7\n"
    );
    assert_eq!(refused(&[&"--image", &"gfx90a=other"]), "fatbin: --image: expected sm_90=FILE\n");
    assert_eq!(
        refused(&[&"--keep", &"other"]),
        "fatbin: other: expected the magic of a fatbinary, 50 ed 55 ba\n"
    );
    assert_eq!(
        refused(&[&"--mode", &"best"]),
        "fatbin: best: expected default, size, speed or none\n"
    );
    assert_eq!(refused(&[&"-x", &"y"]), "fatbin: -x: unknown option\n");
    assert!(!place.join("out").exists());
}
