//! Edits of container images: layouts, OCI archives, and archives of `docker save`.

use std::collections::BTreeMap;
use std::fs;

use samples::images::{self, File, Layer, Layout, Packed, hex};
use samples::packages::{self, sha256, tar};
use serde_json::Value;

use crate::common::{data, stderr, stdout};
use crate::wheels::Place;

fn hip() -> Vec<u8> {
    fs::read(data("hip.o")).unwrap()
}

const SITE: &str = "usr/lib/python3.12/site-packages";

/// Layers of a distribution, of another file, and of the list of the distribution.
fn layers(packed: Packed) -> Vec<Layer> {
    let hip = hip();
    let record = format!("foo/hip.o,{},{}\nfoo-1.dist-info/RECORD,,\n", sha256(&hip), hip.len());
    let library = format!("{SITE}/foo/hip.o");
    vec![
        Layer::new(&[("etc/", b""), ("etc/passwd", b"root"), ("old.o", &hip)], packed),
        Layer::new(&[(&library, &hip), (".wh.old.o", b"")], packed),
        Layer::new(&[(&format!("{SITE}/foo-1.dist-info/RECORD"), record.as_bytes())], packed),
    ]
}

fn layout(place: &Place, name: &str, files: &[File]) {
    for (file, contents) in files {
        let path = place.path(name).join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
}

/// Returns the files of a layout or an archive, by their names.
fn files(place: &Place, name: &str) -> BTreeMap<String, Vec<u8>> {
    let root = place.path(name);
    if root.is_file() {
        return archived(&fs::read(root).unwrap());
    }
    let (mut found, mut waiting) = (BTreeMap::new(), vec![root.clone()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Returns the members of a tar file with short names.
fn archived(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut at) = (BTreeMap::new(), 0);
    while tar[at] != 0 {
        let text = |place: usize, len: usize| {
            let field = &tar[at + place..at + place + len];
            let end = field.iter().position(|&byte| byte == 0).unwrap_or(len);
            std::str::from_utf8(&field[..end]).unwrap().to_owned()
        };
        let size = usize::from_str_radix(&text(124, 12), 8).unwrap();
        found.insert(text(0, 100), tar[at + 512..at + 512 + size].to_vec());
        at += 512 + size.next_multiple_of(512);
    }
    found
}

/// Compares all hashes of an image that is not compressed, and returns the members of its layers.
fn checked(place: &Place, name: &str) -> Vec<BTreeMap<String, Vec<u8>>> {
    let files = files(place, name);
    let (config, layers): (Value, Vec<&Vec<u8>>) = match files.get("index.json") {
        Some(index) => {
            let blob = |item: &Value| {
                let digest = item["digest"].as_str().unwrap().replace(':', "/");
                let blob = &files[&format!("blobs/{digest}")];
                assert_eq!(digest, format!("sha256/{}", hex(blob)));
                assert_eq!(item["size"], blob.len());
                blob
            };
            let index: Value = serde_json::from_slice(index).unwrap();
            let manifest: Value = serde_json::from_slice(blob(&index["manifests"][0])).unwrap();
            let layers = manifest["layers"].as_array().unwrap().iter().map(blob).collect();
            (serde_json::from_slice(blob(&manifest["config"])).unwrap(), layers)
        }
        None => {
            let manifest: Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let config = &files[&text(&manifest[0]["Config"])];
            assert_eq!(text(&manifest[0]["Config"]), format!("{}.json", hex(config)));
            let layers = manifest[0]["Layers"].as_array().unwrap();
            let layers = layers.iter().map(|layer| &files[&text(layer)]).collect();
            (serde_json::from_slice(config).unwrap(), layers)
        }
    };
    let ids = layers.iter().map(|layer| Value::from(format!("sha256:{}", hex(layer))));
    assert_eq!(config["rootfs"]["diff_ids"], Value::from_iter(ids));
    layers.into_iter().map(|layer| archived(layer)).collect()
}

/// Returns `hip.o`, thinned by itself.
fn thinned(place: &Place) -> Vec<u8> {
    fs::write(place.path("hip.o"), hip()).unwrap();
    place.succeeds(&["thin", "--keep", "gfx1100", "hip.o", "-o", "thin.o"]);
    fs::read(place.path("thin.o")).unwrap()
}

/// Compares an image that was thinned with the file that was thinned by itself.
fn check(place: &Place, name: &str) {
    let (old, new) = (layers(Packed::Plain), checked(place, name));
    let thin = thinned(place);
    assert!(new[0] == archived(&old[0].tar));
    assert!(new[1][&format!("{SITE}/foo/hip.o")] == thin);
    assert!(new[1].contains_key(".wh.old.o") && new[1].len() == 2);
    let record = &new[2][&format!("{SITE}/foo-1.dist-info/RECORD")];
    let row = format!("foo/hip.o,{},{}\n", sha256(&thin), thin.len());
    assert!(String::from_utf8_lossy(record).starts_with(&row));
    let verified = place.succeeds(&["verify", name]);
    assert!(verified.contains("hip.o: ok, 2 images"), "{verified}");
    place.succeeds(&["match", "--gpu", "gfx1100", name]);
    let listed = place.succeeds(&["ls", name]);
    let of_new = format!("{SITE}/foo/hip.o");
    let (_, rows) = listed.split_once(&of_new).unwrap();
    let (rows, _) = rows.split_once("TOTAL FOR").unwrap();
    assert!(rows.contains("gfx1100") && !rows.contains("gfx906"), "{listed}");
}

#[test]
fn a_layout_is_written_beside_the_old_one() {
    let place = Place::with("a", b"");
    let old = images::layout(&layers(Packed::Plain));
    layout(&place, "image", &old);
    let thin = ["thin", "--keep", "gfx1100", "image"];
    let said = place.succeeds(&["thin", "--keep", "gfx1100", "image/", "-o", "new"]);
    check(&place, "new");
    let heading: Vec<&str> = said.lines().take(2).collect();
    assert!(heading[0].starts_with("new  ") && heading[1].contains("LAYER"), "{said}");
    assert!(said.contains("1 other layer") && said.contains("foo/hip.o"), "{said}");
    assert!(files(&place, "image") == old.into_iter().collect(), "the old one changed");
    // The same by one thread.
    place.succeeds(&[&thin[..], &["-o", "again", "-j", "1"]].concat());
    assert!(files(&place, "new") == files(&place, "again"));
    // Without writing.
    let dry = place.succeeds(&[&thin[..], &["-o", "dry", "--dry-run", "--json"]].concat());
    let size: usize = files(&place, "new").values().map(Vec::len).sum();
    let dry: Value = serde_json::from_str(&dry).unwrap();
    let rows = dry["files"].as_array().unwrap();
    assert_eq!(rows.last().unwrap()["size_after"], size);
    assert!(!place.path("dry").exists());
    let changed = rows.iter().filter(|row| row["changed"] == true).map(|row| &row["file"]);
    let changed: Vec<_> = changed.map(|it| it.as_str().unwrap()).collect();
    assert_eq!(changed.len(), 4, "{changed:?}");
    assert!(changed[0].starts_with("image/blobs/sha256/") && changed[3] == "image");
    // Into a directory.
    fs::create_dir(place.path("out")).unwrap();
    place.succeeds(&[&thin[..], &["-o", "out/"]].concat());
    assert!(files(&place, "out/image") == files(&place, "new"));
    // Nothing to do: a copy.
    place.succeeds(&["thin", "--keep", "gfx1100", "new", "-o", "copy"]);
    assert!(files(&place, "copy") == files(&place, "new"));
}

#[test]
fn layouts_are_not_edited_in_place() {
    let place = Place::with("a", b"");
    let old = images::layout(&layers(Packed::Gzip));
    layout(&place, "all/image", &old);
    let thin = ["thin", "--keep", "gfx1100"];
    let in_place = |name: &str, words: &str| {
        place.fails(&[&thin[..], &[name, "--in-place"]].concat(), words);
    };
    in_place("all/image", "a new one is written beside it, with --output");
    let blob = old.iter().find(|(_, bytes)| bytes.starts_with(b"\x1f\x8b")).unwrap();
    in_place(&format!("all/image/{}", blob.0), "belongs to the image 'all/image'");
    fs::write(place.path("all/hip.o"), hip()).unwrap();
    place.succeeds(&[&thin[..], &["all", "--in-place"]].concat());
    assert!(files(&place, "all/image") == old.iter().cloned().collect(), "blobs changed");
    place.fails(&[&thin[..], &["all/image", "-o", "-"]].concat(), "expected one as --output");
    place.fails(&[&thin[..], &["all/image", "-o", "a"]].concat(), "expected a new directory");
    place.fails(&["shrink", "--gpu", "gfx1100", "all/image"], "with --output");
    place.fails(&["thin", "--keep", "gfx1201", "all/image", "-o", "new"], "gfx1201");
    assert!(!place.path("new").exists());
}

#[test]
fn archives_are_edited_as_layouts_are() {
    let plain = layers(Packed::Plain);
    let place = Place::with("oci.tar", &images::archive(&images::layout(&plain)));
    fs::write(place.path("docker.tar"), images::docker_archive(&plain)).unwrap();
    fs::write(place.path("podman.tar"), images::linked_archive(&plain)).unwrap();
    fs::write(place.path("hybrid.tar"), images::hybrid_archive(&plain)).unwrap();
    for name in ["oci.tar", "docker.tar", "podman.tar", "hybrid.tar"] {
        let thin = ["thin", "--keep", "gfx1100", name];
        let json = place.succeeds(&[&thin[..], &["--dry-run", "--json"]].concat());
        let old = fs::read(place.path(name)).unwrap();
        place.succeeds(&[&thin[..], &["-o", "new.tar"]].concat());
        check(&place, "new.tar");
        let new = fs::read(place.path("new.tar")).unwrap();
        assert!(fs::read(place.path(name)).unwrap() == old);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["files"].as_array().unwrap().last().unwrap()["size_after"], new.len());
        let output = place.offload(&[&thin[..], &["-o", "-"]].concat());
        assert!(output.stdout == new, "{name}: {}", stderr(&output));
        place.succeeds(&[&thin[..], &["--in-place"]].concat());
        assert!(fs::read(place.path(name)).unwrap() == new);
        assert_eq!(fs::read_dir(place.path("")).unwrap().count(), 7, "{name}");
    }
}

#[test]
fn compressed_code_of_an_image_comes_back() {
    let library = fs::read(data("hip-two-units.so")).unwrap();
    let layer = Layer::new(&[("usr/lib/libfoo.so", &library)], Packed::Plain);
    let old = images::docker_archive(&[layer]);
    let place = Place::with("old.tar", &old);
    let said = place.succeeds(&["compress", "old.tar", "-o", "small.tar"]);
    assert!(said.contains(" saved in 1 file\n"), "{said}");
    place.succeeds(&["decompress", "small.tar", "-o", "new.tar"]);
    assert!(fs::read(place.path("new.tar")).unwrap() == old);
}

#[test]
fn shrink_deletes_what_no_lower_layer_has() {
    let hip = hip();
    let database = "usr/lib/rocblas/library/Kernels.so-000-gfx90a.hsaco";
    let code = &hip[20480..][..3784];
    let covered = "usr/lib/rocblas/library/Kernels.so-000-gfx906.hsaco";
    let other = &hip[4096..][..3784];
    let record = format!("{SITE}/a-1.dist-info/RECORD");
    let rows = format!("../../../../{database},{},{}\nx,,\n", sha256(code), code.len());
    let low =
        Layer::new(&[("lib/hip.o", &hip), (covered, b"text"), (database, code)], Packed::Plain);
    let high = Layer::new(&[(covered, other), (&record, rows.as_bytes())], Packed::Plain);
    let place = Place::with("a", b"");
    layout(&place, "image", &images::layout(&[low, high]));
    let said = place.succeeds(&["shrink", "--gpu", "gfx1100", "image", "--plan"]);
    assert!(said.contains("would be removed") || said.contains("can go"), "{said}");
    place.succeeds(&["shrink", "--gpu", "gfx1100", "image", "-o", "new"]);
    let new = checked(&place, "new");
    assert!(!new[0].contains_key(database) && new[0].contains_key(covered), "{:?}", new[0].keys());
    assert!(new[1].contains_key(covered));
    assert_eq!(new[1][&record], b"x,,\n");
}

/// As in an environment, a file stays that its list has another hash of.
#[test]
fn shrink_leaves_files_that_differ_from_their_list() {
    let hip = hip();
    let library = format!("{SITE}/foo/hip.o");
    let record = format!("foo/hip.o,{},{}\n", sha256(b"another"), hip.len());
    let layers = [
        Layer::new(&[("lib/hip.o", &hip), (&library, &hip)], Packed::Plain),
        Layer::new(
            &[(&format!("{SITE}/foo-1.dist-info/RECORD"), record.as_bytes())],
            Packed::Plain,
        ),
    ];
    let place = Place::with("a", b"");
    layout(&place, "image", &images::layout(&layers));
    place.fails(&["thin", "--keep", "gfx1100", "image", "-o", "new"], "RECORD has the hash");
    let said = place.succeeds(&["shrink", "--gpu", "gfx1100", "image", "-o", "new", "--why"]);
    assert!(said.contains("RECORD has the hash") && said.contains("foo/hip.o"), "{said}");
    let (new, thin) = (checked(&place, "new"), thinned(&place));
    assert!(new[0]["lib/hip.o"] == thin && new[0][&library] == hip);
    assert!(new[1] == archived(&layers[1].tar));
}

#[test]
fn documents_about_the_image_are_refused_or_dropped() {
    let mut made = Layout::new();
    let image = made.image(&layers(Packed::Plain), "");
    let digest = image.split('"').nth(7).unwrap().to_owned();
    let config = made.blob("application/vnd.oci.empty.v1+json", b"{}".to_vec());
    let subject = format!(
        "{{\"schemaVersion\":2,\"config\":{config}}},\"layers\":[],\"subject\":{{\"digest\":\"{digest}\",\"size\":1}}}}"
    );
    let signature = made.blob(images::MANIFEST, subject.into_bytes()) + "}";
    let place = Place::with("a", b"");
    layout(&place, "image", &made.finish(&[image + "}", signature]));
    let thin = ["thin", "--keep", "gfx1100", "image", "-o", "new"];
    place.fails(&thin, "--drop-signature");
    assert!(!place.path("new").exists());
    let output = place.offload(&[&thin[..], &["--drop-signature"]].concat());
    assert!(
        output.status.success() && stderr(&output).contains("is dropped"),
        "{}",
        stderr(&output)
    );
    check(&place, "new");
}

#[test]
fn damage_is_refused_or_warned_of() {
    let place = Place::with("a", b"");
    let mut files = images::layout(&layers(Packed::Plain));
    let at = files.iter().position(|(_, bytes)| bytes.starts_with(b"etc/")).unwrap();
    let wrong = Layer::new(&[("etc/passwd", b"toor")], Packed::Plain).blob();
    let name = files[at].0.clone();
    files[at].1 = wrong;
    layout(&place, "image", &files);
    let thin = ["thin", "--keep", "gfx1100", "image", "-o", "new"];
    let words = format!("image: {name}: size: expected");
    place.fails(&thin, &words);
    let output = place.offload(&[&thin[..], &["--allow-findings"]].concat());
    assert!(output.status.success() && stderr(&output).contains("warning"), "{}", stdout(&output));
    let broken =
        tar(&[("index.json", b"{"), ("oci-layout", b"{\"imageLayoutVersion\": \"1.0.0\"}")]);
    fs::write(place.path("broken.tar"), broken).unwrap();
    place.fails(&["thin", "--keep", "gfx1100", "broken.tar", "-o", "x"], "index.json: EOF");
    fs::remove_file(place.path(&format!("image/{name}"))).unwrap();
    let thin = [&thin[..4], &["-o", "other"]].concat();
    let words = format!("its layer {name} is not there");
    place.fails(&thin, &words);
    for allowed in [&[][..], &["--allow-findings"]] {
        let output = place.offload(&[&thin[..], allowed].concat());
        let said = stderr(&output);
        assert!(said.contains(&words) && !said.contains("no device code"), "{said}");
        assert!(!output.status.success());
    }
}

/// The error of a file in a layer has its name.
#[test]
fn layers_that_end_early_are_named() {
    let mut layer = Layer::new(&[("lib/hip.o", &hip())], Packed::Plain);
    layer.tar.truncate(3000);
    let place = Place::with("a", b"");
    layout(&place, "image", &images::layout(std::slice::from_ref(&layer)));
    let words = format!("image:blobs/sha256/{}:lib/hip.o: ", hex(&layer.tar));
    place.fails(&["thin", "--keep", "gfx1100", "image", "-o", "new"], &words);
    assert!(!place.path("new").exists());
}

#[test]
#[cfg(unix)]
fn links_in_a_layout_are_refused() {
    let place = Place::with("a", b"");
    let files = images::layout(&layers(Packed::Plain));
    layout(&place, "image", &files);
    let blob = place.path("image").join(&files[2].0);
    fs::rename(&blob, place.path("blob")).unwrap();
    std::os::unix::fs::symlink("../../../blob", &blob).unwrap();
    let words = format!("'image/{}' is a symbolic link", files[2].0);
    place.fails(&["thin", "--keep", "gfx1100", "image", "-o", "new"], &words);
    assert!(!place.path("new").exists());
}

/// Layers that become equal, and one that was there thinned.
#[test]
fn layers_that_become_equal_are_written_once() {
    let (place, mut other) = (Place::with("a", b""), hip());
    let thin = thinned(&place);
    // Code for another GPU, which goes.
    other[20480 + 2304] ^= 1;
    let [one, other, thin] =
        [&hip(), &other, &thin].map(|it| [Layer::new(&[("hip.o", it)], Packed::Plain)]);
    let mut made = Layout::new();
    let items = [&one, &other, &thin].map(|layers| made.image(layers, "") + "}");
    let old = made.finish(&items);
    layout(&place, "image", &old);
    fs::write(place.path("old.tar"), images::archive(&old)).unwrap();
    for (old, new) in [("image", "new"), ("old.tar", "new.tar")] {
        let thin = ["thin", "--keep", "gfx1100", old, "-o", new, "--json"];
        let size = |json: &str| {
            let json: Value = serde_json::from_str(json).unwrap();
            json["files"].as_array().unwrap().last().unwrap()["size_after"].as_u64().unwrap()
        };
        let dry = size(&place.succeeds(&[&thin[..], &["--dry-run"]].concat()));
        let said = size(&place.succeeds(&thin));
        let found = files(&place, new);
        assert_eq!(found.len(), 5, "{:?}", found.keys());
        checked(&place, new);
        let real = match fs::metadata(place.path(new)).unwrap() {
            it if it.is_file() => it.len(),
            _ => found.values().map(|it| it.len() as u64).sum(),
        };
        assert_eq!((dry, said), (real, real), "{new}");
    }
}

#[test]
fn files_stay_that_hard_links_of_other_layers_need() {
    let hip = hip();
    let [linked, other] = ["gfx90a", "gfx906"]
        .map(|gpu| format!("usr/lib/rocblas/library/Kernels.so-000-{gpu}.hsaco"));
    let code = [&hip[20480..][..3784], &hip[16384..][..2752]];
    // Without code for the GPU, the database as a whole would be left alone.
    let kept = "usr/lib/rocblas/library/kept.co";
    let low = [
        ("lib/hip.o", &hip[..]),
        (&linked, code[0]),
        (&other, code[1]),
        (kept, &hip[8192..][..3208]),
    ];
    let mut high = packages::tar_header(b"copy.hsaco", 0, b'1', linked.as_bytes());
    high.extend([0; 1024]);
    let high = Layer { tar: high, packed: Packed::Plain, annotations: String::new() };
    let place = Place::with("a", b"");
    layout(&place, "image", &images::layout(&[Layer::new(&low, Packed::Plain), high]));
    let thin = ["thin", "--keep", "gfx1100", "--databases", "image", "-o", "new"];
    let output = place.offload(&thin);
    let words = format!("a hard link in another layer leads to it: {linked}");
    assert!(stderr(&output).contains(&words), "{}", stderr(&output));
    let new = checked(&place, "new");
    assert!(new[0].contains_key(&linked) && !new[0].contains_key(&other), "{:?}", new[0].keys());
}

/// Each layer is within the limit.
#[test]
fn names_of_all_layers_have_one_limit() {
    let hip = hip();
    let layer = |of: &str| {
        let names: Vec<_> = (0..3000).map(|n| format!("{of}/{n:06}")).collect();
        let mut files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
        files.push(("hip.o", &hip));
        Layer::new(&files, Packed::Plain)
    };
    let place = Place::with("a", b"");
    layout(&place, "image", &images::layout(&["a", "b", "c"].map(layer)));
    let thin = ["thin", "--keep", "gfx1100", "image", "-o", "new", "-j", "1", "--max-decompressed"];
    place.fails(&[&thin[..], &["500K"]].concat(), "files in all layers exceed the limit");
    place.succeeds(&[&thin[..], &["2M"]].concat());
}
