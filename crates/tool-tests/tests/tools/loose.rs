//! Loose images and databases: which files `shrink` and `thin --databases` delete, and which they must not.

use std::fs;

use samples::packages::{self, Around};

use crate::common::{data, stderr, stdout};
use crate::wheels::Place;

fn ptx(target: &str) -> Vec<u8> {
    format!(".version 8.0\n.target {target}\n.address_size 64\n").into_bytes()
}

/// Makes a directory of files with PTX for these targets.
fn directory(files: &[(&str, &str)]) -> Place {
    let place = Place::with("unused", b"");
    for (path, target) in files {
        let path = place.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, ptx(target)).unwrap();
    }
    place
}

/// A package of loose images without one for the GPU stays as it is, also where each of its files could go.
#[test]
fn a_package_without_code_for_the_gpu_stays() {
    let (one, other) = (ptx("sm_100a"), ptx("sm_103a"));
    let database: &[u8] = b"SQLite format 3\0";
    for (files, gpu) in [
        (&[("foo/a.ptx", &one[..]), ("foo/b.ptx", &other)][..], "sm_75"),
        (&[("foo/miopen/db/gfx90a68.kdb", database), ("foo/a.ptx", &one)], "sm_90"),
        (&[("foo/miopen/db/gfx90a68.kdb", database), ("foo/a.ptx", &one)], "gfx1100"),
    ] {
        let made = packages::wheel(files);
        let deb = packages::deb(files, ".gz", packages::gzip);
        for (name, package) in
            [("foo.whl", packages::zip(&made, &Around::default())), ("foo.deb", deb)]
        {
            let place = Place::with(name, &package);
            for out in [&["-o", "out"][..], &[]] {
                let output = place.offload(&[&["shrink", "--gpu", gpu, name], out].concat());
                assert_eq!(output.status.code(), Some(1), "{name} {gpu}: {}", stdout(&output));
                assert!(stderr(&output).contains("nothing is removed"), "{}", stderr(&output));
                assert!(!place.path("out").exists());
                assert!(fs::read(place.path(name)).unwrap() == package, "{name} {gpu}");
            }
        }
    }
}

/// Files for GPUs of another vendor belong to libraries that stay.
#[test]
fn files_of_another_vendor_stay() {
    let place = directory(&[("d/a.ptx", "sm_90"), ("d/b.ptx", "sm_103a")]);
    place.succeeds(&["extract", data("hip.o").to_str().unwrap(), "--target", "gfx906", "-o", "ex"]);
    let image = fs::read_dir(place.path("ex")).unwrap().next().unwrap().unwrap().path();
    fs::copy(image, place.path("d/kernels.hsaco")).unwrap();
    fs::create_dir_all(place.path("d/miopen/db")).unwrap();
    fs::write(place.path("d/miopen/db/gfx90a68.kdb"), b"SQLite format 3\0").unwrap();
    place.succeeds(&["shrink", "--gpu", "sm_90", "d"]);
    for (name, stays) in [
        ("a.ptx", true),
        ("b.ptx", false),
        ("kernels.hsaco", true),
        ("miopen/db/gfx90a68.kdb", true),
    ] {
        assert_eq!(place.path("d").join(name).exists(), stays, "{name}");
    }
}

/// The same distribution of two environments is two places, each with its own question.
#[test]
fn two_environments_are_two_places() {
    let site = |env: &str, path: &str| format!("{env}/lib/python3.12/site-packages/{path}");
    let files = [
        ("e1", "a", "sm_90"),
        ("e1", "b", "sm_100a"),
        ("e2", "a", "sm_103a"),
        ("e2", "b", "sm_100a"),
    ];
    let named: Vec<_> = files
        .iter()
        .map(|(env, name, target)| (site(env, &format!("foo/{name}.ptx")), *target))
        .collect();
    let named: Vec<_> = named.iter().map(|(path, target)| (&**path, *target)).collect();
    let place = directory(&named);
    for env in ["e1", "e2"] {
        let info = place.path(&site(env, "foo-1.0.dist-info"));
        fs::create_dir_all(&info).unwrap();
        fs::write(info.join("METADATA"), "Name: foo\nVersion: 1.0\n").unwrap();
        fs::write(info.join("RECORD"), "foo/a.ptx,,\nfoo/b.ptx,,\n").unwrap();
    }
    place.succeeds(&["thin", "--databases", "--in-place", "--keep", "sm_90", "e1", "e2"]);
    let stays = |path: &&str| place.path(path).exists();
    let left: Vec<_> = named.iter().map(|(path, _)| *path).filter(stays).collect();
    assert_eq!(left, [named[0].0, named[2].0, named[3].0]);
}

/// A zip file with a package in it is counted, and other files are deleted.
#[test]
fn packages_in_packages_are_counted() {
    let place = directory(&[("d/a.ptx", "sm_90"), ("d/b.ptx", "sm_103a")]);
    let inner = packages::gzip(b"some data");
    let zip = packages::zip(&[packages::Made::new("data.csv.gz", inner)], &Around::default());
    fs::write(place.path("d/x.zip"), zip).unwrap();
    let said = place.succeeds(&["shrink", "--gpu", "sm_90", "d", "--why"]);
    assert!(said.contains("1 file could not be edited") && said.contains("x.zip"), "{said}");
    assert!(!place.path("d/b.ptx").exists());
}

/// A file that two arguments lead to is deleted once.
#[test]
fn arguments_may_overlap() {
    let place = directory(&[("d/a.ptx", "sm_90"), ("d/sub/b.ptx", "sm_103a")]);
    place.succeeds(&["shrink", "--gpu", "sm_90", "d", "d/sub"]);
    assert!(place.path("d/a.ptx").exists() && !place.path("d/sub/b.ptx").exists());
}
