//! `offload shrink`: environments and packages with code for some GPUs only.

use std::fs;

use samples::bits::{module, wide};
use samples::packages::{self, Around};

use crate::common::{data, stderr, stdout};
use crate::wheels::Place;

/// Returns a wheel with these files.
fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
    packages::zip(&packages::wheel(files), &Around::default())
}

#[test]
fn a_wheel_is_shrunk_beside_members_that_cannot_be() {
    let [hip, mac] = ["hip.o", "hip-macos.o"].map(|name| fs::read(data(name)).unwrap());
    let files: [(&str, &[u8]); 3] =
        [("foo/hip.o", &hip), ("foo/mac.o", &mac), ("foo/damaged.o", &hip[..20_000])];
    let place = Place::with("foo.whl", &wheel(&files));
    place.fails(&["thin", "--keep", "gfx1100", "foo.whl", "-o", "out.whl"], "damaged.o");
    let said = place.succeeds(&["shrink", "--gpu", "gfx1100", "foo.whl", "-o", "out.whl", "--why"]);
    assert!(said.contains("removed from 1 file of 1 package\n"), "{said}");
    assert!(said.contains("foo/mac.o") && said.contains("foo/damaged.o"), "{said}");
    place.succeeds(&["verify", "out.whl:foo/hip.o"]);
    let again = place.succeeds(&["shrink", "--gpu", "gfx1100", "out.whl"]);
    assert!(again.starts_with("nothing to remove from "), "{again}");
    let thin = place.succeeds(&["ls", "out.whl:foo/hip.o"]);
    assert!(thin.contains("gfx1100") && !thin.contains("gfx906"), "{thin}");
}

#[test]
fn a_wheel_with_nothing_for_the_gpu_is_not_written() {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("foo.whl", &wheel(&[("foo/hip.o", &hip)]));
    for out in [&["-o", "out.whl"][..], &[]] {
        let output = place.offload(&[&["shrink", "--gpu", "sm_90", "foo.whl"], out].concat());
        assert_eq!(output.status.code(), Some(1));
        let words = "no code for sm_90; 1 file has code for others: nothing is removed";
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert!(!place.path("out.whl").exists());
    }
}

/// A signed wheel stays as it is: beside others it is counted, and alone or without a result it is a failure.
#[test]
fn a_signed_wheel_is_counted_or_fails() {
    let hip = fs::read(data("hip.o")).unwrap();
    let signed = wheel(&[("foo/hip.o", &hip), ("foo-1.0.dist-info/RECORD.jws", b"{}")]);
    let place = Place::with("foo.whl", &signed);
    fs::write(place.path("hip.o"), &hip).unwrap();
    let said = place.succeeds(&["shrink", "--gpu", "gfx1100", "foo.whl", "hip.o", "--why"]);
    assert!(said.contains("1 file could not be edited") && said.contains("signature"), "{said}");
    assert!(fs::read(place.path("foo.whl")).unwrap() == signed);
    let explains = "the options that these reasons name are those of `offload thin`";
    place.fails(&["shrink", "--gpu", "gfx1100", "foo.whl"], "was found; 1 file could not be");
    place.fails(&["shrink", "--gpu", "gfx1100", "foo.whl", "-o", "out.whl"], explains);
    place.fails(&["shrink", "--gpu", "gfx1100", "foo.whl", "-o", "out.whl"], "signature");
}

/// A refused file may be for the GPU, but nothing is deleted for that.
#[test]
fn nothing_is_deleted_beside_refused_files_alone() {
    let place = Place::with("lib.so", &fs::read(data("hip-two-units.so")).unwrap());
    place.succeeds(&["split", "lib.so", "-o", "k", "--group", "g"]);
    let count = || walk(&place.path("k"));
    let before = count();
    assert!(before > 1);
    place.fails(&["shrink", "k", "--gpu", "gfx1250"], "nothing is removed");
    assert_eq!(count(), before);
    // The code of a split library is in its pack, so it is not among the files that could not be edited.
    let said = place.succeeds(&["shrink", "k", "--gpu", "gfx1100", "--plan"]);
    assert!(!said.contains("could not be edited"), "{said}");

    fs::create_dir(place.path("env")).unwrap();
    let hip = fs::read(data("hip.o")).unwrap();
    fs::write(place.path("env/damaged.o"), &hip[..20_000]).unwrap();
    fs::write(place.path("env/a.ptx"), ".version 8.0\n.target sm_100a\n").unwrap();
    place.fails(&["shrink", "env", "--gpu", "sm_90"], "nothing is removed");
    assert!(place.path("env/a.ptx").exists());
    // Damage is a fault of a listing by packages.
    place.fails(&["ls", "--by-package", "env"], "damaged.o: ");
}

/// Code for CPUs stays, but a file with nothing else is not about the GPU.
#[test]
fn code_for_cpus_does_not_count() {
    let place = Place::with("code", b"some code");
    let entry =
        |arch: &str, triple: &str| format!("kind=openmp,triple={triple},arch={arch},file=code");
    let (cpu, gpu) =
        (entry("x86-64", "x86_64-unknown-linux-gnu"), entry("gfx90a", "amdgcn-amd-amdhsa"));
    place.succeeds(&["pack", "-o", "both.bin", &cpu, &gpu]);
    place.fails(&["shrink", "--gpu", "gfx1100", "both.bin"], "nothing is removed");
    let said = place.succeeds(&["shrink", "--gpu", "gfx90a", "both.bin", "--plan"]);
    assert!(said.contains(" for CPUs or unknown targets"), "{said}");
}

/// Code of NVIDIA for other GPUs alone is of no use, and goes once it is known that other files have code for the GPU.
#[test]
fn a_file_without_use_is_emptied_last() {
    let fatbin = fs::read(data("kernels.fatbin")).unwrap();
    let [old, hip] = ["cuda-fatbin.o", "hip.o"].map(|name| fs::read(data(name)).unwrap());
    let place = Place::with("new.o", &old);
    // A file with code for newer GPUs only.
    place.succeeds(&["thin", "new.o", "--keep", "sm_80", "--exact", "-o", "only.o"]);
    let only = fs::read(place.path("only.o")).unwrap();
    fs::create_dir(place.path("env")).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(place.path(&format!("env/{name}")), bytes);
    let images = |name: &str| stdout(&place.offload(&["ls", &format!("env/{name}")]));
    write("a-only.o", &only).unwrap();
    write("hip.o", &hip).unwrap();
    // No other file has code for the GPU.
    place.fails(&["shrink", "env", "--gpu", "sm_75"], "nothing is removed");
    assert!(images("a-only.o").contains("compute_80"));

    write("kernels.fatbin", &fatbin).unwrap();
    write("old.o", &old).unwrap();
    let plan = place.succeeds(&["shrink", "env", "--gpu", "sm_75", "--plan"]);
    assert!(plan.contains("1 of the files had nothing for sm_75"), "{plan}");
    assert!(images("a-only.o").contains("compute_80"));
    let said = place.succeeds(&["shrink", "env", "--gpu", "sm_75"]);
    assert!(said.contains("1 of the files had nothing for sm_75"), "{said}");
    assert!(!images("a-only.o").contains("compute_80"));
    // AMD's GPUs may run code for others.
    assert!(images("hip.o").contains("gfx906") && said.contains("1 file with"), "{said}");
    let again = place.succeeds(&["shrink", "env", "--gpu", "sm_75"]);
    assert!(again.starts_with("nothing to remove from "), "{again}");
    place.succeeds(&["shrink", "env", "--gpu", "gfx1100"]);
    assert!(images("old.o").contains("sm_70"));

    // Members of a wheel, whatever their order is.
    for files in
        [[("foo/a.o", &only), ("foo/old.o", &old)], [("foo/old.o", &old), ("foo/z.o", &only)]]
    {
        let files = files.map(|(name, bytes)| (name, &bytes[..]));
        fs::write(place.path("foo.whl"), wheel(&files)).unwrap();
        let said = place.succeeds(&["shrink", "foo.whl", "--gpu", "sm_75", "-o", "out.whl"]);
        assert!(said.contains("1 of the files had nothing for sm_75"), "{said}");
        assert!(!place.succeeds(&["ls", "out.whl"]).contains("compute_80"));
        place.succeeds(&["verify", "out.whl"]);
    }
    fs::write(place.path("foo.whl"), wheel(&[("foo/a.o", &only)])).unwrap();
    place.fails(&["shrink", "foo.whl", "--gpu", "sm_75", "-o", "none.whl"], "nothing is removed");
}

/// Bitcode in a file of its own is linked by compilers: it is neither kept for the GPU nor for others.
#[test]
fn libraries_of_compilers_do_not_count() {
    let place = Place::with("hip.o", &fs::read(data("hip.o")).unwrap());
    let library = module(|module| {
        module.record(1, &[2]);
        module.record(2, &wide(b"amdgcn-amd-amdhsa"));
    });
    fs::create_dir(place.path("env")).unwrap();
    fs::rename(place.path("hip.o"), place.path("env/hip.o")).unwrap();
    let before = place.succeeds(&["shrink", "env", "--gpu", "gfx1100", "--plan"]);
    fs::write(place.path("env/ockl.bc"), library).unwrap();
    assert!(place.succeeds(&["ls", "env/ockl.bc"]).contains("LLVM bitcode"));
    let after = place.succeeds(&["shrink", "env", "--gpu", "gfx1100", "--plan", "--why"]);
    let kept = |said: &str| said.lines().nth(1).unwrap().to_owned();
    assert_eq!(kept(&before), kept(&after));
    assert!(after.contains("files of LLVM bitcode"), "{after}");
    assert!(!after.contains("WHY"), "{after}");
}

/// Returns the number of files below a directory.
fn walk(directory: &std::path::Path) -> usize {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { walk(&path) } else { 1 }).sum()
}

#[test]
fn outputs_are_one_stream_each() {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("hip.o", &hip);
    let both = place.offload(&["shrink", "--gpu", "gfx1100", "hip.o", "-o", "-", "--json"]);
    assert_eq!((both.status.code(), both.stdout.len()), (Some(2), 0));
    let two = ["shrink", "--gpu", "gfx1100", "hip.o", "hip.o", "-o", "out"];
    let two = place.offload(&two);
    assert_eq!(two.status.code(), Some(2));
    assert!(stderr(&two).contains("without it several are edited in place"), "{}", stderr(&two));
}

#[test]
fn loose_ptx_stays_and_is_counted() {
    let place = Place::with("a.ptx", b"");
    fs::create_dir(place.path("env")).unwrap();
    for (name, arch) in [("a", "sm_90"), ("b", "sm_100a")] {
        let text = format!(".version 8.0\n.target {arch}\n");
        fs::write(place.path(&format!("env/{name}.ptx")), text).unwrap();
    }
    let said = place.succeeds(&["shrink", "--gpu", "sm_90", "env", "--plan"]);
    assert!(
        said.ends_with("PTX stays for kernels that have no machine code for sm_90\n"),
        "{said}"
    );
    let list = format!("{0}  a.ptx\n{0}  b.ptx\n", "0".repeat(64));
    fs::write(place.path("env/checksums.txt"), list).unwrap();
    let output = place.offload(&["shrink", "--gpu", "sm_90", "env", "--drop-ptx"]);
    let said = stdout(&output);
    assert!(said.contains("27 B of PTX stays, which --drop-ptx leaves"), "{said}");
    let note = "note: programs may download files that are deleted again";
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
    assert_eq!(walk(&place.path("env")), 2);
}

/// Sizes count once for all names of a file.
#[test]
#[cfg(unix)]
fn names_of_one_file_are_one_file() {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("cached.o", &hip);
    fs::create_dir(place.path("env")).unwrap();
    for name in ["env/a.o", "env/b.o"] {
        fs::hard_link(place.path("cached.o"), place.path(name)).unwrap();
    }
    let output = place.offload(&["shrink", "--gpu", "gfx1100", "env"]);
    let (out, said) = (stdout(&output), stderr(&output));
    let line = "26 KiB -> 27 KiB: code for other GPUs removed from 2 files; the files take 1.2 KiB more, because";
    assert!(out.starts_with(line), "{out}");
    assert!(said.contains("hard links), which keep the old contents: 1\n"), "{said}");
    assert!(said.contains("hard links) that get files of their own: 2\n"), "{said}");
    assert!(fs::read(place.path("cached.o")).unwrap() == hip);
}

#[test]
#[cfg(unix)]
fn links_that_lead_out_are_counted() {
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("cached.so", &hip);
    fs::create_dir(place.path("env")).unwrap();
    fs::write(place.path("env/hip.o"), &hip).unwrap();
    for (target, link) in
        [("../cached.so", "one.so"), ("hip.o", "inside.so"), ("../cached.so", "text")]
    {
        std::os::unix::fs::symlink(target, place.path("env").join(link)).unwrap();
    }
    let output = place.offload(&["shrink", "--gpu", "gfx1100", "env"]);
    assert!(output.status.success() && stdout(&output).contains("removed from 1 file\n"));
    assert!(
        stderr(&output).contains("note: links to libraries elsewhere are not followed: 1 ("),
        "{}",
        stderr(&output)
    );
    assert!(fs::read(place.path("cached.so")).unwrap() == hip);
}

/// A failure is an error, and the lines say what was removed by then.
#[test]
#[cfg(unix)]
fn files_that_cannot_be_read_or_written_are_failures() {
    use std::os::unix::fs::symlink;
    let hip = fs::read(data("hip.o")).unwrap();
    let place = Place::with("hip.o", &hip);
    symlink("nowhere", place.path("broken")).unwrap();
    let output = place.offload(&["shrink", "--gpu", "gfx1100", "hip.o", "broken"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error: broken: "), "{}", stderr(&output));
    assert!(stdout(&output).contains("removed from 1 file\n"), "{}", stdout(&output));
}

/// A stream that says that it was compressed fast, and is smaller than a fast encoder makes it.
#[test]
fn an_archive_that_would_grow_stays_as_it_is() {
    use samples::images::{self, Layer, Packed};
    let hip = fs::read(data("hip.o")).unwrap();
    let text: String = (0..60_000)
        .map(|n: u32| format!("line {}\n", n.wrapping_mul(2_654_435_761) % 977))
        .collect();
    let files: [(&str, &[u8]); 2] = [("lib/hip.o", &hip), ("share/text", text.as_bytes())];
    let fast = |contents: &[u8]| {
        let mut stream = packages::gzip(contents);
        stream[8] = 4;
        stream
    };
    let plain = packages::tar(&files);
    let layers = [Layer::new(&files, Packed::Plain)];
    let place = Place::with("foo.tgz", &fast(&plain));
    fs::write(place.path("image.tgz"), fast(&images::docker_archive(&layers))).unwrap();
    for name in ["foo.tgz", "image.tgz"] {
        let old = fs::read(place.path(name)).unwrap();
        let shrink = ["shrink", "--gpu", "gfx1100", name];
        for more in [&["--plan"][..], &["-o", "new"], &[]] {
            let output = place.offload(&[&shrink[..], more].concat());
            let said = stderr(&output);
            assert!(output.status.success(), "{said}");
            let words = format!(
                "{name}: compressed again without the code, it would be larger: {} bytes now",
                old.len()
            );
            assert!(said.contains(&words), "{name} {more:?}: {said}");
            assert!(stdout(&output).contains("nothing"), "{}", stdout(&output));
            assert!(fs::read(place.path(name)).unwrap() == old, "{name} {more:?}");
        }
        assert!(fs::read(place.path("new")).unwrap() == old);
        let output = place.offload(&[&shrink[..], &["-o", "-"]].concat());
        assert!(output.stdout == old, "{}", stderr(&output));
        // `thin` removes the code, too.
        place.succeeds(&["thin", "--keep", "gfx1100", name, "-o", "thin"]);
        assert!(fs::read(place.path("thin")).unwrap().len() > old.len());
        fs::remove_file(place.path("new")).unwrap();
    }
}
