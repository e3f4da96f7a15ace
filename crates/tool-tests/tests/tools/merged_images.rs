//! Container images as sets of files: what a higher layer replaces or removes does not count.

use std::fs;

use samples::images::{self, File, Layer, Layout, Packed, hex};
use samples::packages::{self, tar_header};

use crate::common::{data, stderr, stdout};
use crate::wheels::Place;

/// An object with code for one GPU only.
fn code(place: &Place, gpu: &str) -> Vec<u8> {
    fs::write(place.path("hip.o"), fs::read(data("hip.o")).unwrap()).unwrap();
    let name = format!("{gpu}.o");
    place.succeeds(&["thin", "--keep", gpu, "hip.o", "-o", &name]);
    let code = fs::read(place.path(&name)).unwrap();
    fs::remove_file(place.path(&name)).unwrap();
    fs::remove_file(place.path("hip.o")).unwrap();
    code
}

fn write_layout(place: &Place, name: &str, files: &[File]) {
    for (file, contents) in files {
        let path = place.path(name).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
}

/// Writes an image in all forms, and returns their names.
fn forms(place: &Place, layers: &[Layer]) -> [&'static str; 6] {
    write_layout(place, "layout", &images::layout(layers));
    let docker = images::docker_archive(layers);
    fs::write(place.path("oci.tar"), images::archive(&images::layout(layers))).unwrap();
    fs::write(place.path("podman.tar"), images::linked_archive(layers)).unwrap();
    fs::write(place.path("docker.tar.gz"), packages::gzip(&docker)).unwrap();
    fs::write(place.path("docker.tar.zst"), images::zstd(&docker)).unwrap();
    fs::write(place.path("docker.tar"), docker).unwrap();
    ["layout", "oci.tar", "podman.tar", "docker.tar", "docker.tar.gz", "docker.tar.zst"]
}

/// Returns the exit status and the output of `match`.
fn matched(place: &Place, gpu: &str, file: &str) -> (Option<i32>, String) {
    let output = place.offload(&["match", "--gpu", gpu, file]);
    (output.status.code(), stdout(&output) + &stderr(&output))
}

#[test]
fn files_that_no_container_sees_do_not_count() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    // A bundle that is cut off.
    let broken = &other[..other.len() - 3000];
    let low = [
        ("usr/lib/replaced.o", broken),
        ("usr/lib/removed.o", &other),
        ("opt/hidden/one.o", &other),
        ("opt/hidden/deep/two.o", &other),
        ("opt/removed/three.o", &other),
        ("usr/lib/kept.o", &good),
    ];
    let high: [(&str, &[u8]); 5] = [
        ("usr/lib/replaced.o", &good),
        ("usr/lib/.wh.removed.o", b""),
        ("opt/hidden/.wh..wh..opq", b""),
        ("opt/hidden/new.o", &good),
        ("opt/.wh.removed", b""),
    ];
    for packed in [Packed::Plain, Packed::Gzip] {
        let place = Place::with("a", b"");
        let layers = [Layer::new(&low, packed), Layer::new(&high, packed)];
        for form in forms(&place, &layers) {
            let (status, said) = matched(&place, "gfx1100", form);
            assert_eq!(status, Some(0), "{form}: {said}");
            assert!(
                said.contains(&format!("{form}: has code for gfx1100 in all 3 files")),
                "{said}"
            );
            let (status, said) = matched(&place, "gfx906", form);
            assert_eq!(status, Some(1), "{form}: {said}");
            assert!(said.contains("lacks code for gfx906 in all 3 files"), "{said}");
            place.succeeds(&["check", "--require", "gfx1100", form]);
        }
        // The lower layers alone.
        let all = images::docker_archive(&layers[..1]);
        fs::write(place.path("low.tar"), all).unwrap();
        assert_eq!(matched(&place, "gfx1100", "low.tar").0, Some(1));
        assert!(!place.offload(&["check", "--require", "gfx1100", "low.tar"]).status.success());
        for form in ["layout", "oci.tar", "docker.tar", "docker.tar.gz"] {
            let said = place.succeeds(&["verify", form]);
            assert!(said.contains("new.o: ok") && !said.contains("removed.o"), "{form}: {said}");
            // A layout is a directory, whose files are checked.
            let whole = format!("{form}: ok, container image, ");
            assert!(form == "layout" || said.contains(&whole), "{form}: {said}");
        }
        place.fails(&["verify", "low.tar"], "replaced.o");
    }
}

/// The directory of a layer that a symbolic link of another one leads to, and hard links.
#[test]
fn links_lead_to_the_files_that_count() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    let mut low = tar_header(b"lib", 0, b'2', b"usr/lib");
    low.extend(packages::tar(&[("usr/lib/a.o", &other), ("usr/lib/b.o", &other)]));
    let low = Layer { tar: low, packed: Packed::Plain, annotations: String::new() };
    // It replaces usr/lib/a.o. The other one has a second name, and loses the first.
    let mut high = tar_header(b"opt/b.o", 0, b'1', b"usr/lib/b.o");
    high.extend(packages::tar(&[("lib/a.o", &good), ("opt/c.o", &good)]));
    let high = Layer { tar: high, packed: Packed::Plain, annotations: String::new() };
    let top = Layer::new(&[("usr/lib/.wh.b.o", b"")], Packed::Plain);
    let layers = [low, high, top];
    fs::write(place.path("a.tar"), images::docker_archive(&layers)).unwrap();
    let (status, said) = matched(&place, "gfx1100", "a.tar");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("opt/b.o") && !said.contains("a.o"), "{said}");
    let top = Layer::new(&[("usr/lib/.wh.b.o", b""), ("opt/.wh.b.o", b"")], Packed::Plain);
    fs::write(
        place.path("b.tar"),
        images::docker_archive(&[layers[0].clone(), layers[1].clone(), top]),
    )
    .unwrap();
    assert_eq!(matched(&place, "gfx1100", "b.tar").0, Some(0));
}

#[test]
fn layers_of_no_image_do_not_count() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    let layers = [
        Layer::new(&[("usr/lib/a.o", &other)], Packed::Plain),
        Layer::new(&[("usr/lib/b.o", &good)], Packed::Plain),
    ];
    let mut files = images::layout(&layers[..1]);
    let all = images::layout(&layers);
    let stale = all.into_iter().find(|(_, bytes)| bytes.starts_with(b"usr/lib/b.o\0")).unwrap();
    files.push(stale);
    write_layout(&place, "layout", &files);
    fs::write(place.path("oci.tar"), images::archive(&files)).unwrap();
    for form in ["layout", "oci.tar"] {
        let (status, said) = matched(&place, "gfx1100", form);
        assert_eq!(status, Some(1), "{form}: {said}");
        assert!(said.contains("lacks code for gfx1100") && !said.contains("b.o"), "{form}: {said}");
        assert_eq!(matched(&place, "gfx906", form).0, Some(0), "{form}");
        place.succeeds(&["verify", form]);
    }
}

#[test]
fn of_several_files_with_one_path_the_last_counts() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    for packed in [Packed::Plain, Packed::Gzip] {
        let place = Place::with("a", b"");
        let layer = Layer::new(&[("usr/lib/a.o", &other), ("./usr/lib/a.o", &good)], packed);
        for form in forms(&place, &[layer]) {
            // Extractors may differ, so it is an error, too.
            let (status, said) = matched(&place, "gfx1100", form);
            assert_eq!(status, Some(1), "{form}: {said}");
            assert!(said.contains("several members have its name"), "{form}: {said}");
            let whole = format!("{form}: was not read as a whole; what was read ");
            assert!(said.contains(&(whole + "has code for gfx1100 in usr/lib/a.o")), "{said}");
            let (_, said) = matched(&place, "gfx906", form);
            let unknown = format!("{form}: was not read as a whole; what was read lacks code");
            assert!(said.contains(&unknown), "{form}: {said}");
        }
    }
}

#[test]
fn damage_in_one_layer_makes_the_answer_about_the_image_unknown() {
    let place = Place::with("a", b"");
    let other = code(&place, "gfx906");
    let broken = &other[..other.len() - 3000];
    let layers = [
        Layer::new(&[("usr/lib/a.o", &other)], Packed::Plain),
        Layer::new(&[("usr/lib/b.o", broken)], Packed::Plain),
    ];
    for form in forms(&place, &layers) {
        let (status, said) = matched(&place, "gfx1100", form);
        assert_eq!(status, Some(1), "{form}: {said}");
        let unknown = format!("{form}: was not read as a whole; what was read lacks code");
        assert!(said.contains(&unknown), "{form}: {said}");
    }
}

#[test]
fn libraries_and_their_kernel_packs_lie_in_several_layers() {
    let place = Place::with("lib.so", &fs::read(data("hip-two-units-ccob.so")).unwrap());
    place.succeeds(&["split", "lib.so", "--group", "two", "--no-compress", "-o", "site"]);
    let library = fs::read(place.path("site/lib.so")).unwrap();
    let pack = fs::read(place.path("site/.kpack/two_gfx1100.kpack")).unwrap();
    let low = Layer::new(&[("opt/x/lib.so", &library)], Packed::Gzip);
    let high = Layer::new(&[("opt/x/.kpack/two_gfx1100.kpack", &pack)], Packed::Gzip);
    let gone = Layer::new(&[("opt/x/.wh..kpack", b"")], Packed::Gzip);
    let layers = [low, high, gone];
    let all = Place::with("a", b"");
    for form in forms(&all, &layers[..2]) {
        let (status, said) = matched(&all, "gfx1100", form);
        assert_eq!(status, Some(0), "{form}: {said}");
        assert!(said.contains(&format!("{form}:opt/x/lib.so: has code for gfx1100")), "{said}");
        assert_eq!(matched(&all, "gfx906", form).0, Some(1));
        all.succeeds(&["verify", form]);
    }
    for form in forms(&all, &layers) {
        let (status, said) = matched(&all, "gfx1100", form);
        assert_eq!(status, Some(1), "{form}: {said}");
        all.fails(&["verify", form], "no kernel pack has its device code");
    }
    // A pack of another image does not help.
    let mut made = Layout::new();
    let items = [&layers[..1], &layers[1..2]].map(|layers| made.image(layers, "") + "}");
    fs::write(all.path("two.tar"), images::archive(&made.finish(&items))).unwrap();
    let (status, said) = matched(&all, "gfx1100", "two.tar");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("opt/x/lib.so: has no code for gfx1100"), "{said}");
}

/// One layer has the files of a database for some GPUs, another one those for others.
#[test]
fn a_database_in_several_layers_is_one() {
    let place = Place::with("a", b"");
    let hip = fs::read(data("hip.o")).unwrap();
    let name = |gpu: &str| format!("opt/rocm/lib/rocblas/library/Kernels.so-000-{gpu}.hsaco");
    let [gfx90a, gfx906] = ["gfx90a", "gfx906"].map(name);
    let low = Layer::new(&[(&gfx90a, &hip[20480..][..3784])], Packed::Plain);
    let high = Layer::new(&[(&gfx906, &hip[16384..][..2752])], Packed::Plain);
    fs::write(place.path("a.tar"), images::docker_archive(&[low, high])).unwrap();
    for (gpu, expected) in [("gfx90a", 0), ("gfx906:xnack+", 0), ("gfx1100", 1)] {
        let (status, said) = matched(&place, gpu, "a.tar");
        assert_eq!(status, Some(expected), "{gpu}: {said}");
    }
}

#[test]
fn each_image_of_several_has_its_answer() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    let base = Layer::new(&[("usr/lib/a.o", &other)], Packed::Plain);
    let new = Layer::new(&[("usr/lib/a.o", &good)], Packed::Plain);
    let none = Layer::new(&[("etc/passwd", b"root")], Packed::Plain);
    let mut made = Layout::new();
    let tag = |name: &str| {
        format!(",\"annotations\":{{\"org.opencontainers.image.ref.name\":\"{name}\"}}}}")
    };
    let items = [
        made.image(std::slice::from_ref(&base), "") + &tag("old"),
        made.image(&[base, new], "") + &tag("new"),
        made.image(&[none], "") + &tag("bare"),
    ];
    let files = made.finish(&items);
    write_layout(&place, "layout", &files);
    fs::write(place.path("all.tar"), images::archive(&files)).unwrap();
    for form in ["layout", "all.tar"] {
        let (status, said) = matched(&place, "gfx1100", form);
        assert_eq!(status, Some(1), "{said}");
        let of = |name: &str| format!("{form} ({name}, linux/amd64)");
        let new = format!("{}: has code for gfx1100", of("new"));
        assert!(said.contains(&new), "{said}");
        assert!(
            said.lines().any(|it| it.starts_with(&of("old")) && it.contains("lacks code")),
            "{said}"
        );
        assert!(said.contains(&format!("{}: no device code", of("bare"))), "{said}");
        assert_eq!(matched(&place, "gfx906", form).0, Some(1));
        place.succeeds(&["verify", form]);
    }
}

/// Variants of wheels that are installed in an image, and files of theirs that higher layers replace.
#[test]
fn installed_variants_are_compared_with_the_code_that_counts() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    let json = r#"{"$schema": "https://variants-schema.wheelnext.dev/peps/825/v0.1.1.json",
        "default-priorities": {"namespace": ["amd"]},
        "variants": {"fast": {"amd": {"gfx_arch": ["gfx1100"]}}}}"#;
    let site = |name: &str| format!("opt/venv/lib/python3.12/site-packages/{name}");
    let [file, variant, metadata, record] = [
        "foo/a.o",
        "foo-1.0.dist-info/variant.json",
        "foo-1.0.dist-info/METADATA",
        "foo-1.0.dist-info/RECORD",
    ]
    .map(site);
    let rows = b"foo/a.o,,\nfoo-1.0.dist-info/RECORD,,\n";
    let low = Layer::new(
        &[
            (&file, &good),
            (&variant, json.as_bytes()),
            (&metadata, b"Name: foo\nVersion: 1.0\n"),
            (&record, rows),
        ],
        Packed::Gzip,
    );
    let high = Layer::new(&[(&file, &other)], Packed::Plain);
    let gone = format!("{}/.wh.RECORD", site("foo-1.0.dist-info"));
    let gone = Layer::new(&[(&gone, b"")], Packed::Plain);
    let well = Place::with("a", b"");
    for form in forms(&well, std::slice::from_ref(&low)) {
        let said = well.succeeds(&["verify", form]);
        assert!(said.contains("1 installed variant: ok"), "{form}: {said}");
        let (_, said) = matched(&well, "gfx906", form);
        let name = format!("{form}:{}", site("foo"));
        let words =
            format!("{name}: installed as the variant fast for gfx1100, and not for gfx906");
        assert!(said.contains(&words), "{said}");
    }
    let layers = [low, high, gone];
    for form in forms(&place, &layers[..2]) {
        let name = format!("{form}:{}", site("foo"));
        let words = format!("{name}: amd :: gfx_arch :: gfx1100: the package ");
        place.fails(&["verify", form], &words);
    }
    for form in forms(&place, &layers) {
        place.fails(&["verify", form], "dist-info/RECORD: is not there");
    }
}

#[test]
fn images_that_cannot_be_merged_are_faults() {
    let place = Place::with("a", b"");
    let good = code(&place, "gfx1100");
    let layers =
        [Layer::new(&[("a.o", &good)], Packed::Plain), Layer::new(&[("b", b"b")], Packed::Gzip)];
    let mut files = images::layout(&layers);
    // A tar file that ends between members is one.
    for end in [0, 512] {
        let mut cut = files.clone();
        let (_, layer) = cut.iter_mut().find(|(_, bytes)| bytes.starts_with(b"a.o\0")).unwrap();
        let words = format!("size: expected {} bytes, found {end}", layer.len());
        layer.truncate(end);
        let layout = format!("cut-{end}");
        write_layout(&place, &layout, &cut);
        fs::write(place.path("cut.tar"), images::archive(&cut)).unwrap();
        for form in [&*layout, "cut.tar"] {
            place.fails(&["match", "--gpu", "gfx1100", form], &words);
            place.fails(&["check", "--require", "gfx1100", form], &words);
        }
    }
    let at = files.iter().position(|(_, bytes)| bytes.starts_with(b"\x1f\x8b")).unwrap();
    let (name, blob) = files[at].clone();
    // The time in its header, so that it has another hash.
    let mut wrong = blob;
    wrong[4] ^= 1;
    let found = hex(&wrong);
    files[at].1 = wrong;
    write_layout(&place, "wrong", &files);
    fs::write(place.path("wrong.tar"), images::archive(&files)).unwrap();
    for form in ["wrong", "wrong.tar"] {
        place.fails(&["verify", form], &found);
    }
    files.remove(at);
    write_layout(&place, "lacking", &files);
    fs::write(place.path("lacking.tar"), images::archive(&files)).unwrap();
    for form in ["lacking", "lacking.tar"] {
        let words = format!("its layer {name} is not there");
        place.fails(&["match", "--gpu", "gfx1100", form], &words);
        place.fails(&["verify", form], &words);
    }
    files.last_mut().unwrap().1 = b"{".to_vec();
    fs::write(place.path("broken.tar"), images::archive(&files)).unwrap();
    place.fails(&["match", "--gpu", "gfx1100", "broken.tar"], "index.json: EOF");
    place.fails(&["verify", "broken.tar"], "index.json: EOF");
    // Another archive with a file of this name.
    fs::write(place.path("other.tar"), packages::tar(&[("manifest.json", b"{}"), ("a.o", &good)]))
        .unwrap();
    place.succeeds(&["match", "--gpu", "gfx1100", "other.tar"]);
}

#[test]
fn the_names_of_all_layers_and_images_have_one_limit() {
    let place = Place::with("a", b"");
    let good = code(&place, "gfx1100");
    let layer = |of: &str| {
        let names: Vec<_> = (0..3000).map(|n| format!("{of}/{n:06}")).collect();
        let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
        files.push(("hip.o", &good));
        Layer::new(&files, Packed::Plain)
    };
    write_layout(&place, "image", &images::layout(&["a", "b", "c"].map(layer)));
    let matched = ["match", "--gpu", "gfx1100", "image", "--max-decompressed"];
    place.fails(&[&matched[..], &["500K"]].concat(), "exceed the limit of 512000 bytes held");
    place.succeeds(&[&matched[..], &["4M"]].concat());
}

#[test]
fn compressed_archives_come_back_compressed() {
    let hip = fs::read(data("hip.o")).unwrap();
    let layers = [
        Layer::new(&[("lib/hip.o", &hip)], Packed::Plain),
        Layer::new(&[("etc/a", b"a")], Packed::Gzip),
    ];
    let docker = images::docker_archive(&layers[..1]);
    let oci = images::archive(&images::layout(&layers));
    let place = Place::with("docker.tar", &docker);
    place.succeeds(&["thin", "--keep", "gfx1100", "docker.tar", "-o", "plain.tar"]);
    let plain = fs::read(place.path("plain.tar")).unwrap();
    fs::write(place.path("oci.tar"), &oci).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "oci.tar", "-o", "plain-oci.tar"]);
    let plain_oci = fs::read(place.path("plain-oci.tar")).unwrap();
    let cases = [
        ("gzip.tgz", packages::gzip(&docker), &plain),
        ("zstd.tar.zst", images::zstd(&docker), &plain),
        ("oci.tar.gz", packages::gzip(&oci), &plain_oci),
    ];
    for (name, old, expected) in cases {
        fs::write(place.path(name), &old).unwrap();
        let thin = ["thin", "--keep", "gfx1100", name];
        let json = place.succeeds(&[&thin[..], &["--dry-run", "--json"]].concat());
        place.succeeds(&[&thin[..], &["-o", "new"]].concat());
        let new = fs::read(place.path("new")).unwrap();
        assert_eq!(new[..4.min(new.len())], old[..4], "{name}");
        assert!(decompressed(&new) == **expected, "{name}");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let rows = json["files"].as_array().unwrap();
        assert_eq!(rows.last().unwrap()["size_after"], new.len(), "{name}");
        assert_eq!(rows.last().unwrap()["size_before"], old.len(), "{name}");
        assert!(fs::read(place.path(name)).unwrap() == old);
        // To standard output, in place, and once more, when nothing changes.
        let output = place.offload(&[&thin[..], &["-o", "-"]].concat());
        assert!(output.stdout == new, "{name}: {}", stderr(&output));
        place.succeeds(&[&thin[..], &["--in-place"]].concat());
        assert!(fs::read(place.path(name)).unwrap() == new);
        place.succeeds(&[&thin[..], &["-o", "again"]].concat());
        assert!(fs::read(place.path("again")).unwrap() == new);
        place.succeeds(&["shrink", "--gpu", "gfx1100", name, "-o", "shrunk"]);
        assert!(fs::read(place.path("shrunk")).unwrap() == new);
    }
    // The copy without compression is bounded.
    let most = docker.len() / 2;
    let most = most.to_string();
    fs::write(place.path("a.tgz"), packages::gzip(&docker)).unwrap();
    let limit = ["--max-decompressed", &most];
    let words = format!("a decompressed copy exceeds the limit of {most} bytes");
    place.fails(&[&["thin", "--keep", "gfx1100", "a.tgz", "-o", "x"][..], &limit].concat(), &words);
    place.fails(&[&["match", "--gpu", "gfx1100", "a.tgz"][..], &limit].concat(), &words);
    assert!(!place.path("x").exists());
    // One whose end is missing.
    let cut = packages::gzip(&docker);
    fs::write(place.path("cut.tgz"), &cut[..cut.len() - 20]).unwrap();
    place.fails(&["thin", "--keep", "gfx1100", "cut.tgz", "-o", "x"], "gzip");
    assert_eq!(hex(&decompressed(&packages::gzip(&docker))), hex(&docker));
}

fn decompressed(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut decoder = gpu_packages::Codec::sniff(stream).decoder(stream).unwrap();
    std::io::Read::read_to_end(&mut decoder, &mut out).unwrap();
    out
}

/// Fails `match`, `check` and `verify` of a file or a directory with these words.
fn all_fail(place: &Place, form: &str, words: &str) {
    place.fails(&["match", "--gpu", "gfx1100", form], words);
    place.fails(&["check", "--require", "gfx1100", form], words);
    let verified = place.offload(&["verify", form]);
    let said = format!("{}{}", stdout(&verified), stderr(&verified));
    assert!(verified.status.code() == Some(1) && said.contains(words), "{form}: {said}");
    assert!(!said.contains(&format!("{form}: ok")), "{form}: {said}");
    assert_eq!(place.offload(&["verify", "-q", form]).status.code(), Some(1), "{form}");
    let said = matched(place, "gfx1100", form).1;
    assert!(!said.contains("code for gfx1100"), "{form}: {said}");
}

/// Returns files with other contents of one; without it if there are none.
fn with(files: &[File], name: &str, contents: Option<&[u8]>) -> Vec<File> {
    let others = files.iter().filter(|(file, _)| file != name).cloned();
    others.chain(contents.map(|it| (name.to_owned(), it.to_vec()))).collect()
}

#[test]
fn damaged_documents_make_no_plain_archive_of_an_image() {
    let place = Place::with("a", b"");
    let good = code(&place, "gfx1100");
    let layers = [Layer::new(&[("usr/lib/a.o", &good)], Packed::Plain)];
    let docker = images::docker_archive(&layers);
    let at = docker.windows(13).position(|it| it == b"manifest.json").unwrap();
    let cases: [(&[u8], &str); 6] = [
        (
            b"",
            "manifest.json: EOF while parsing a value: expected JSON, found the end of the file (at 0x0)",
        ),
        (b"[{\"Config\":\"a", "found the end of the file (at 0xd)"),
        (b"\0\0\0\0", "manifest.json: expected value: expected JSON, found '\\0' (at 0x0)"),
        (b"[{\"\xff\"}]", "manifest.json: expected JSON in UTF-8, found the byte 0xff (at 0x3)"),
        (
            b"[]",
            "manifest.json: expected a list of images with 'Config' and 'Layers', found an empty one",
        ),
        (
            b"{\"name\": 1}",
            "expected a list of images with 'Config' and 'Layers', found another value",
        ),
    ];
    for (manifest, words) in cases {
        let mut archive = docker[..at].to_vec();
        archive.extend(packages::tar(&[("manifest.json", manifest)]));
        for (name, bytes) in
            [("docker.tar", archive.clone()), ("docker.tgz", packages::gzip(&archive))]
        {
            fs::write(place.path(name), bytes).unwrap();
            all_fail(&place, name, words);
            place.fails(&["thin", "--keep", "gfx1100", name, "-o", "x"], words);
        }
    }
    fs::write(place.path("old.tar"), {
        let mut archive = docker[..at].to_vec();
        archive.extend(packages::tar(&[("repositories", b"{}")]));
        archive
    })
    .unwrap();
    all_fail(
        &place,
        "old.tar",
        "manifest.json: expected this file beside repositories, found none",
    );
    let files = images::layout(&layers);
    let cases: [(&str, Option<&[u8]>, &str); 5] = [
        ("index.json", Some(b"{\"manifests\""), "index.json: EOF while parsing an object"),
        ("index.json", Some(b"{}"), "index.json: expected a list 'manifests'"),
        ("index.json", None, "index.json: expected this file beside oci-layout, found none"),
        ("oci-layout", None, "oci-layout: expected this file beside index.json, found none"),
        ("oci-layout", Some(b""), "oci-layout: EOF while parsing a value"),
    ];
    for (number, (name, contents, words)) in cases.into_iter().enumerate() {
        let files = with(&files, name, contents);
        let [alone, all] = [format!("layout-{number}"), format!("all-{number}")];
        write_layout(&place, &alone, &files);
        write_layout(&place, &format!("{all}/sub/image"), &files);
        fs::write(place.path("oci.tar"), images::archive(&files)).unwrap();
        for form in [&*alone, &*all, "oci.tar"] {
            all_fail(&place, form, words);
        }
        for form in [&*alone, "oci.tar"] {
            place.fails(&["thin", "--keep", "gfx1100", form, "-o", "x"], words);
        }
    }
    // Neither of them is an image.
    for name in ["index.json", "manifest.json", "oci-layout", "repositories"] {
        let others: [(&str, &[u8]); 2] = [(name, b"{"), ("lib/a.o", &good)];
        fs::write(place.path("other.tar"), packages::tar(&others)).unwrap();
        write_layout(
            &place,
            &format!("no-{name}"),
            &others.map(|(name, it)| (name.to_owned(), it.to_vec())),
        );
        for form in ["other.tar", &format!("no-{name}")] {
            place.succeeds(&["match", "--gpu", "gfx1100", form]);
        }
    }
}

#[test]
fn an_image_that_lacks_a_layer_says_nothing_about_another() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    let layers = [good, other].map(|code| Layer::new(&[("usr/lib/a.o", &code)], Packed::Plain));
    let configs = layers.clone().map(|layer| images::config(&[layer]));
    let manifest = br#"[{"Config":"one.json","RepoTags":["one:1"],"Layers":["one/layer.tar"]},
        {"Config":"two.json","RepoTags":["two:1"],"Layers":["two/layer.tar"]}]"#;
    for (lacks, has, gpu, no) in
        [("one", "two", "gfx906", "gfx1100"), ("two", "one", "gfx1100", "gfx906")]
    {
        let files: [(&str, &[u8]); 5] = [
            ("one.json", &configs[0]),
            ("two.json", &configs[1]),
            ("one/layer.tar", &layers[0].tar),
            ("two/layer.tar", &layers[1].tar),
            ("manifest.json", manifest),
        ];
        let absent = format!("{lacks}/layer.tar");
        let files: Vec<_> = files.into_iter().filter(|(name, _)| *name != absent).collect();
        fs::write(place.path("docker.tar"), packages::tar(&files)).unwrap();
        let words =
            format!("docker.tar:manifest.json: image {lacks}:1: its layer {absent} is not there");
        let (status, said) = matched(&place, gpu, "docker.tar");
        assert_eq!(status, Some(1), "{said}");
        assert!(
            said.contains(&format!("docker.tar ({has}:1, linux/amd64): has code for {gpu}")),
            "{said}"
        );
        assert!(said.contains(&words), "{said}");
        let (status, said) = matched(&place, no, "docker.tar");
        assert_eq!(status, Some(1), "{said}");
        assert!(
            said.contains(&format!("lacks code for {no}")) && !said.contains("as a whole"),
            "{said}"
        );
        place.fails(&["verify", "docker.tar"], &words);
        place.fails(&["check", "--require", gpu, "docker.tar"], &words);
        place.fails(
            &["thin", "--keep", gpu, "docker.tar", "-o", "x"],
            "(allow editing with --allow-findings)",
        );
    }
}

/// Adds the manifest of an image with another part; returns the descriptor.
fn odd_image(made: &mut Layout, layers: &[Layer], (part, other): (&str, &str)) -> String {
    let image = made.image(layers, "");
    let digest = image.split('"').nth(7).unwrap().replace(':', "/");
    let at = made.files.iter().position(|(name, _)| name.ends_with(&digest)).unwrap();
    let (_, manifest) = made.files.remove(at);
    let manifest = String::from_utf8(manifest).unwrap();
    assert!(manifest.contains(part), "{manifest}");
    made.blob(images::MANIFEST, manifest.replacen(part, other, 1).into_bytes()) + "}"
}

/// Parts of manifests that are not understood, with the words about them.
fn odd_parts() -> [(&'static str, &'static str, &'static str); 4] {
    let layer = "application/vnd.oci.image.layer.v1.tar";
    [
        (
            layer,
            "application/vnd.example.layer.v1.erofs",
            "mediaType of a layer: expected application/vnd.oci.image.layer.v1.tar, +gzip or +zstd, found 'application/vnd.example.layer.v1.erofs'",
        ),
        (layer, "application/vnd.example+json", "mediaType of a layer: expected"),
        (layer, "application/vnd.oci.image.layer.v1.tar+encrypted", "its layers are encrypted"),
        (
            "application/vnd.oci.image.config.v1+json",
            "application/vnd.oci.empty.v1+json",
            "mediaType of the configuration: expected application/vnd.oci.image.config.v1+json, found 'application/vnd.oci.empty.v1+json'",
        ),
    ]
}

#[test]
fn a_part_of_an_image_that_is_not_understood_is_said() {
    let place = Place::with("a", b"");
    let good = code(&place, "gfx1100");
    let layers = ["a.o", "b.o"]
        .map(|name| Layer::new(&[(name, &good), ("c", name.as_bytes())], Packed::Plain));
    for (number, (part, other, words)) in odd_parts().into_iter().enumerate() {
        let mut made = Layout::new();
        let image = odd_image(&mut made, &layers, (part, other));
        let files = made.finish(&[image]);
        let forms = [format!("layout{number}"), format!("oci{number}.tar")];
        write_layout(&place, &forms[0], &files);
        fs::write(place.path(&forms[1]), images::archive(&files)).unwrap();
        for form in &forms {
            all_fail(&place, form, words);
            place.fails(&["thin", "--keep", "gfx1100", form, "-o", "x"], words);
        }
    }
}

/// An edit would take the layer from an image that is not looked into.
#[test]
fn a_layer_of_an_image_that_is_not_understood_does_not_change() {
    let place = Place::with("a", b"");
    let hip = fs::read(data("hip.o")).unwrap();
    let shared = Layer::new(&[("a.o", &hip)], Packed::Plain);
    let own = Layer::new(&[("b", b"b")], Packed::Plain);
    for (number, (part, other, _)) in odd_parts().into_iter().enumerate() {
        let mut made = Layout::new();
        let image = made.image(std::slice::from_ref(&shared), "") + "}";
        let odd = odd_image(&mut made, &[own.clone(), shared.clone()], (part, other));
        let files = made.finish(&[image, odd]);
        let forms = [format!("layout{number}"), format!("oci{number}.tar")];
        write_layout(&place, &forms[0], &files);
        fs::write(place.path(&forms[1]), images::archive(&files)).unwrap();
        for form in &forms {
            let thin = ["thin", "--keep", "gfx1100", form, "-o", "x", "--allow-findings"];
            place.fails(&thin, "it is not looked into, and names blobs/sha256/");
            assert!(!place.path("x").exists(), "{form}");
        }
        let before = fs::read(place.path(&forms[1])).unwrap();
        place.offload(&["shrink", "--gpu", "gfx1100", &forms[1]]);
        assert_eq!(before, fs::read(place.path(&forms[1])).unwrap());
    }
}

#[test]
fn files_beside_the_images_of_an_archive_count() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    let layers = [Layer::new(&[("usr/lib/a.o", &good)], Packed::Plain)];
    let mut files = images::layout(&layers);
    files.push(("lib/f.o".to_owned(), other));
    fs::write(place.path("oci.tar"), images::archive(&files)).unwrap();
    let (status, said) = matched(&place, "gfx1100", "oci.tar");
    assert!(status == Some(1) && said.contains("lib/f.o"), "{said}");
    place.fails(&["check", "--only", "gfx1100", "oci.tar"], "lib/f.o");
}

/// The files of an image are never answered one by one.
#[test]
fn damaged_archives_of_images_have_no_answer() {
    let place = Place::with("a", b"");
    let (good, other) = (code(&place, "gfx1100"), code(&place, "gfx906"));
    let layers = [
        Layer::new(&[("old.o", &good), ("a.o", &other)], Packed::Plain),
        Layer::new(&[(".wh.old.o", b"")], Packed::Plain),
    ];
    let docker = images::docker_archive(&layers);
    let mut wrong = docker.clone();
    let at = wrong.windows(13).position(|it| it == b"manifest.json").unwrap();
    wrong[at + 150] ^= 1;
    let many: Vec<_> = (0..90).map(|n| format!("{}{n}", "d/".repeat(450_000))).collect();
    let empty: &[u8] = b"";
    let many: Vec<u8> = many.iter().flat_map(|name| images::with_attributes(name, empty)).collect();
    for (name, bytes) in [
        ("cut.tar", &docker[..docker.len() - 3000]),
        ("wrong.tar", &wrong),
        ("names.tar", &[&many[..], &docker].concat()),
    ] {
        fs::write(place.path(name), bytes).unwrap();
        let (status, said) = matched(&place, "gfx1100", name);
        assert!(status == Some(1) && !said.contains("has code"), "{name}: {said}");
        let (status, said) = matched(&place, "gfx906", name);
        assert!(status == Some(1) && !said.contains("code for gfx906 in"), "{name}: {said}");
    }
}
