//! Layers of images are changed, and all hashes above them follow.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Cursor, Read};

use gpu_packages::{
    Algorithm, Codec, Error, ErrorKind, FileChange, FileHashes, Hash, ImageArchive, ImageFiles,
    Images, LayerFile, LayerMembers, NewFile, NewLayer, Options, Replacement, RewriteOptions,
    TarKind, TarReader,
};
use samples::images::{self, File, Layer, Layout, Packed, hex};
use samples::packages::{padded, sha256, tar, tar_header};
use serde_json::Value;

struct Files(BTreeMap<String, Vec<u8>>);

/// The error of [`ImageFiles::read`] here.
const NOT_THERE: &str = "it is not there";

impl ImageFiles for Files {
    fn size(&self, name: &str) -> Option<u64> {
        Some(self.0.get(name)?.len() as u64)
    }

    fn read(&self, name: &str, _: u64) -> Result<Vec<u8>, Error> {
        self.0.get(name).cloned().ok_or_else(|| Error::refused(NOT_THERE))
    }

    fn has(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        self.0.keys().any(|name| is_wanted(name))
    }
}

/// Files of an archive.
struct Archived<'a>(&'a [u8], ImageArchive);

impl ImageFiles for Archived<'_> {
    fn size(&self, name: &str) -> Option<u64> {
        self.1.place(name).map(|place| place.end - place.start)
    }

    fn read(&self, name: &str, _: u64) -> Result<Vec<u8>, Error> {
        let place = self.1.place(name).ok_or_else(|| Error::refused(NOT_THERE))?;
        Ok(self.0[place.start as usize..place.end as usize].to_vec())
    }

    fn has(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        self.1.names().any(is_wanted)
    }

    fn resolve(&self, name: &str) -> String {
        self.1.resolve(name)
    }
}

/// New contents of files, by the old ones.
type New = dyn Fn(&str, &[u8]) -> Option<Vec<u8>>;

/// An image that was edited.
struct Edited {
    changed: gpu_packages::ChangedImages,
    /// By the names of layers.
    layers: BTreeMap<String, (Vec<u8>, NewLayer)>,
    findings: Vec<String>,
    has_stargz: bool,
}

/// Gives files that are visible new contents.
fn edit(files: &dyn ImageFiles, drops: bool, new: &New) -> Result<Edited, Error> {
    let images = Images::read(files, 1 << 28)?.unwrap();
    let of_documents = images.findings().iter().chain(images.unread());
    let mut findings: Vec<String> = of_documents.map(ToString::to_string).collect();
    let blob = |layer: &gpu_packages::ImageLayer| files.read(layer.file(), u64::MAX).unwrap();
    let (mut all, mut wanted): (Vec<LayerMembers>, _) = (Vec::new(), HashMap::new());
    for (number, layer) in images.layers().iter().enumerate() {
        let bytes = blob(layer);
        let read = |member: usize, path: &[u8], original: &mut gpu_packages::Original<'_>| {
            let mut old = Vec::new();
            original.read_to_end(&mut old)?;
            let path = String::from_utf8_lossy(path);
            if let Some(text) = new(&path, &old) {
                wanted.insert(LayerFile::new(number, member), (old, text));
            }
            Ok(())
        };
        let len = bytes.len() as u64;
        let members = layer.read(Cursor::new(&bytes), len, &Options::default(), read)?;
        findings.extend(members.findings().iter().map(ToString::to_string));
        all.push(members);
    }
    let views: Vec<_> = images.views(&all)?.collect();
    let visible: BTreeSet<LayerFile> =
        views.iter().flat_map(|view| view.files().map(|(_, file)| file)).collect();
    wanted.retain(|file, _| visible.contains(file));
    let hashes = |bytes: &[u8]| {
        let hashes = [Algorithm::Sha256, Algorithm::Md5].map(|it| Hash::of(it, bytes));
        FileHashes::of_hashes(bytes.len() as u64, hashes.to_vec())
    };
    let changes = wanted
        .iter()
        .map(|(file, (old, new))| (*file, FileChange::new(hashes(old), Some(hashes(new)))));
    let lists = images.change_lists(&all, &changes.collect())?;
    findings.extend(lists.wrong.iter().map(|(_, finding)| finding.to_string()));
    let mut texts: BTreeMap<_, _> = lists.texts;
    texts.extend(wanted.into_iter().map(|(file, (_, new))| (file, new)));
    let (mut layers, mut numbers) = (BTreeMap::new(), BTreeMap::new());
    for (number, layer) in images.layers().iter().enumerate() {
        if texts.keys().all(|file| file.layer != number) {
            continue;
        }
        let mut out = Vec::new();
        let options = RewriteOptions::default();
        let new = layer.rewrite(Cursor::new(blob(layer)), &mut out, &options, |member, _, _| {
            let text = texts.get(&LayerFile::new(number, member));
            Ok(text.map(|text| Replacement::from_bytes(text.clone())))
        })?;
        assert_eq!(new.digest().to_hex(), hex(&out));
        numbers.insert(number, new.clone());
        layers.insert(layer.file().to_owned(), (out, new));
    }
    let changed = images.replace_layers(&numbers, drops)?;
    let has_stargz = all.iter().any(LayerMembers::has_stargz_index);
    Ok(Edited { changed, layers, findings, has_stargz })
}

/// Edits a layout, and returns its new files.
fn edited(
    files: &[File],
    drops: bool,
    new: &New,
) -> Result<(BTreeMap<String, Vec<u8>>, Edited), Error> {
    let files = Files(files.iter().cloned().collect());
    let edited = edit(&files, drops, new)?;
    let mut out = BTreeMap::new();
    for (name, old) in &files.0 {
        if edited.changed.is_dropped(name) {
            continue;
        }
        let layer = edited.layers.get(name).map(|(bytes, _)| &bytes[..]);
        let new = layer.or(edited.changed.document(name)).unwrap_or(old);
        out.insert(edited.changed.name(name), new.to_vec());
    }
    Ok((out, edited))
}

fn decoded(blob: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Codec::sniff(blob).decoder(Cursor::new(blob)).unwrap().read_to_end(&mut out).unwrap();
    out
}

/// Compares all hashes and sizes below an index, and returns the manifests with their layers, which are decompressed.
fn checked(files: &BTreeMap<String, Vec<u8>>, index: &[u8]) -> Vec<(Value, Vec<Vec<u8>>)> {
    let index: Value = serde_json::from_slice(index).unwrap();
    let blob = |item: &Value| {
        let digest = item["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
        let blob = &files[&format!("blobs/sha256/{digest}")];
        assert_eq!((hex(blob), blob.len() as u64), (digest.into(), item["size"].as_u64().unwrap()));
        blob
    };
    let mut found = Vec::new();
    for item in index["manifests"].as_array().unwrap() {
        let text = blob(item);
        let manifest: Value = serde_json::from_slice(text).unwrap();
        if manifest.get("manifests").is_some() {
            found.extend(checked(files, text));
            continue;
        }
        let config: Value = serde_json::from_slice(blob(&manifest["config"])).unwrap();
        let layers = manifest["layers"].as_array().unwrap();
        let layers: Vec<_> = layers.iter().map(|layer| decoded(blob(layer))).collect();
        if let Some(ids) = config.pointer("/rootfs/diff_ids") {
            let made = layers.iter().map(|tar| Value::from(format!("sha256:{}", hex(tar))));
            assert_eq!(*ids, Value::from_iter(made));
        }
        found.push((manifest, layers));
    }
    for (name, bytes) in files {
        let digest = name.strip_prefix("blobs/sha256/");
        assert!(digest.is_none_or(|digest| digest == hex(bytes)), "{name}");
    }
    found
}

fn members(tar: &[u8]) -> Vec<(String, TarKind, Vec<u8>)> {
    let mut reader = TarReader::new(tar);
    let mut found = Vec::new();
    while let Some(member) = reader.next_member().unwrap() {
        let mut contents = Vec::new();
        reader.read_to_end(&mut contents).unwrap();
        found.push((String::from_utf8_lossy(member.name()).into_owned(), member.kind(), contents));
    }
    found
}

fn contents(tar: &[u8], name: &str) -> String {
    let found = members(tar).into_iter().find(|(found, ..)| found == name).unwrap();
    String::from_utf8_lossy(&found.2).into_owned()
}

/// Code becomes shorter.
fn thinned(_: &str, old: &[u8]) -> Option<Vec<u8>> {
    old.strip_prefix(b"code").map(|rest| [b"less", rest].concat()[..3].to_vec())
}

const SITE: &str = "usr/lib/python3.12/site-packages";

fn record(rows: &[(&str, &[u8])]) -> String {
    let rows = rows.iter().map(|(path, it)| format!("{path},{},{}\n", sha256(it), it.len()));
    rows.collect::<String>() + "a-1.dist-info/RECORD,,\n"
}

#[test]
fn hashes_follow_the_change_in_each_form() {
    for packed in [Packed::Plain, Packed::Gzip, Packed::Zstd] {
        let other = Layer::new(&[("etc/", b""), ("etc/passwd", b"root")], packed);
        let code = Layer::new(&[("./lib/a.so", b"code A"), ("lib/b.txt", b"text")], packed);
        let old = images::layout(&[other.clone(), code.clone(), other.clone()]);
        let (new, edit) = edited(&old, false, &thinned).unwrap();
        assert!(edit.findings.is_empty() && edit.changed.notes().is_empty());
        let found = checked(&new, &new["index.json"]);
        let (manifest, layers) = &found[0];
        assert_eq!((found.len(), layers.len(), &layers[0]), (1, 3, &other.tar));
        assert_eq!(contents(&layers[1], "./lib/a.so"), "les");
        assert_eq!(members(&layers[1])[1], members(&code.tar)[1]);
        // The other layer is as it was, and so are documents except for hashes and sizes.
        assert!(new.contains_key(&format!("blobs/sha256/{}", hex(&other.blob()))));
        assert_eq!(new.len(), old.len());
        let text = String::from_utf8(new["index.json"].clone()).unwrap();
        assert!(
            text.starts_with("{\"schemaVersion\": 2, \"x-kept\": 1.50, \"manifests\": [{"),
            "{text}"
        );
        let kind = manifest["layers"][1]["mediaType"].as_str().unwrap();
        let ends = [(Packed::Plain, "tar"), (Packed::Gzip, "+gzip"), (Packed::Zstd, "+zstd")];
        assert!(ends.iter().any(|(it, end)| *it == packed && kind.ends_with(end)), "{kind}");
        let blob = manifest["layers"][1]["digest"].as_str().unwrap().replace(':', "/");
        let codecs = [
            (Packed::Plain, Codec::None),
            (Packed::Gzip, Codec::Gzip),
            (Packed::Zstd, Codec::Zstd),
        ];
        let codec = Codec::sniff(&new[&format!("blobs/{blob}")]);
        assert!(codecs.contains(&(packed, codec)), "{codec}");
    }
}

#[test]
fn files_that_higher_layers_hide_stay() {
    let low = Layer::new(
        &[
            ("a.so", b"code A"),
            ("b.so", b"code B"),
            ("d/c.so", b"code C"),
            ("d/e/f.so", b"code F"),
            ("g/h.so", b"code H"),
            ("lib/", b""),
            ("lib/i.so", b"code I"),
            ("k/l.so", b"code L"),
        ],
        Packed::Gzip,
    );
    let mut links = tar_header(b"lib64", 0, b'2', b"lib");
    links.extend(tar(&[
        ("a.so", b"code of a"),
        (".wh.b.so", b""),
        ("d/c.so", b"code of c"),
        ("d/.wh..wh..opq", b""),
        (".wh.g", b""),
        ("g/new.so", b"code of new"),
        ("k", b"a file now"),
    ]));
    let high = Layer { tar: links, packed: Packed::Gzip, annotations: String::new() };
    let highest = Layer::new(&[("lib64/i.so", b"code of i")], Packed::Gzip);
    let (new, _) = edited(&images::layout(&[low.clone(), high, highest]), false, &thinned).unwrap();
    let (_, layers) = &checked(&new, &new["index.json"])[0];
    // All of the lowest is hidden: by files, whiteouts, an opaque directory, a file for a directory, and through a link.
    assert_eq!(layers[0], low.tar);
    for name in ["a.so", "d/c.so", "g/new.so"] {
        assert_eq!(contents(&layers[1], name), "les", "{name}");
    }
    assert_eq!(contents(&layers[1], ".wh.b.so"), "");
    assert_eq!(contents(&layers[2], "lib64/i.so"), "les");
    // A hidden name is not enough if another name has the contents.
    let mut linked = tar(&[("x.so", b"code X")]);
    linked.truncate(linked.len() - 1024);
    linked.extend(tar_header(b"y.so", 0, b'1', b"x.so"));
    linked.extend([0; 1024]);
    let low = Layer { tar: linked, packed: Packed::Plain, annotations: String::new() };
    let high = Layer::new(&[("x.so", b"text")], Packed::Plain);
    let (new, _) = edited(&images::layout(&[low, high]), false, &thinned).unwrap();
    let (_, layers) = &checked(&new, &new["index.json"])[0];
    assert_eq!(contents(&layers[0], "x.so"), "les");
    assert_eq!(members(&layers[0])[1], ("y.so".into(), TarKind::HardLink, Vec::new()));
}

#[test]
fn attributes_and_names_of_pax_stay() {
    let name = format!("{}/a.so", "long/".repeat(40));
    let mut tar = images::with_attributes(&name, b"code A");
    tar.extend([0; 1024]);
    let layer = Layer { tar, packed: Packed::Gzip, annotations: String::new() };
    let (new, _) = edited(&images::layout(std::slice::from_ref(&layer)), false, &thinned).unwrap();
    let (_, layers) = &checked(&new, &new["index.json"])[0];
    assert_eq!(layers[0][..1024], layer.tar[..1024]);
    assert_eq!(contents(&layers[0], &name), "les");
}

#[test]
fn lists_are_corrected_in_the_layer_that_has_them() {
    let (site, lib) = (format!("{SITE}/a-1.dist-info/RECORD"), format!("{SITE}/a/a.so"));
    let stale = record(&[("a/a.so", b"old")]);
    let right = record(&[("a/a.so", b"code A"), ("../../../bin/x", b"code X"), ("a/b.py", b"b")]);
    let md5 = |bytes: &[u8]| Hash::of(Algorithm::Md5, bytes).to_hex();
    let dpkg = "var/lib/dpkg/info/a.md5sums";
    let sums = format!("{}  {lib}\n{}  other\n", md5(b"code A"), md5(b"o"));
    let conda = |hash: &str, size: usize| {
        format!(
            "{{\"paths_data\": {{\"paths\": [{{\"_path\": \"lib/c.so\", \"sha256_in_prefix\": \"{hash}\", \"size_in_bytes\": {size}}}]}}}}"
        )
    };
    let json = conda(&hex(b"code C"), 6);
    let layers = [
        Layer::new(
            &[(&site, stale.as_bytes()), (&lib, b"code A"), ("usr/bin/x", b"code X")],
            Packed::Gzip,
        ),
        Layer::new(&[(&site, right.as_bytes())], Packed::Zstd),
        Layer::new(
            &[
                (dpkg, sums.as_bytes()),
                ("opt/lib/c.so", b"code C"),
                ("opt/conda-meta/c.json", json.as_bytes()),
            ],
            Packed::Gzip,
        ),
    ];
    let (new, edit) = edited(&images::layout(&layers), false, &thinned).unwrap();
    assert!(edit.findings.is_empty(), "{:?}", edit.findings);
    let (_, tars) = &checked(&new, &new["index.json"])[0];
    assert_eq!(contents(&tars[0], &site), stale);
    let expected = record(&[("a/a.so", b"les"), ("../../../bin/x", b"les"), ("a/b.py", b"b")]);
    assert_eq!(contents(&tars[1], &site), expected);
    assert_eq!(contents(&tars[2], dpkg), format!("{}  {lib}\n{}  other\n", md5(b"les"), md5(b"o")));
    assert_eq!(contents(&tars[2], "opt/conda-meta/c.json"), conda(&hex(b"les"), 3));
    // A row that was wrong before is found.
    let (_, edit) = edited(&images::layout(&layers[..1]), false, &thinned).unwrap();
    assert_eq!(edit.findings.len(), 1);
    assert!(edit.findings[0].ends_with("RECORD has the size 3, found 6"), "{:?}", edit.findings);
    // A list that is signed.
    let signature = format!("{site}.jws");
    let signed = [
        layers[0].clone(),
        Layer::new(&[(&site, right.as_bytes()), (&signature, b"{}")], Packed::Gzip),
    ];
    let error = edited(&images::layout(&signed), false, &thinned).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Refused);
}

#[test]
fn layers_of_several_images_change_once() {
    let shared = Layer::new(&[("a.so", b"code A")], Packed::Gzip);
    let hides = Layer::new(&[("a.so", b"text")], Packed::Gzip);
    let own = Layer::new(&[("b.so", b"code B")], Packed::Plain);
    let mut layout = Layout::new();
    let platform =
        |arch: &str| format!(",\"platform\":{{\"architecture\":\"{arch}\",\"os\":\"linux\"}}}}");
    let amd = layout.image(&[shared.clone(), own], "") + &platform("amd64");
    let arm = layout.image(&[shared.clone(), hides.clone()], "") + &platform("arm64");
    let inner = layout.index(&[amd, arm]) + "}";
    let plain = layout.image(std::slice::from_ref(&hides), "") + "}";
    let old = layout.finish(&[inner, plain]);
    let (new, _) = edited(&old, false, &thinned).unwrap();
    let found = checked(&new, &new["index.json"]);
    assert_eq!(found.len(), 3);
    assert_eq!(contents(&found[0].1[0], "a.so"), "les");
    assert_eq!(found[0].1[0], found[1].1[0]);
    assert_eq!((&found[1].1[1], &found[2].1[0]), (&hides.tar, &hides.tar));
    assert_eq!(new.len(), old.len());
    let platforms =
        String::from_utf8(new.values().flatten().copied().collect()).unwrap_or_default();
    assert!(platforms.is_empty() || platforms.contains("arm64"));
    // An image that has not changed keeps its manifest.
    let untouched: Vec<_> =
        old.iter().filter(|(name, bytes)| new.get(name) == Some(bytes)).collect();
    assert!(untouched.len() >= 4, "{}", untouched.len());
}

#[test]
fn forms_with_tables_of_contents_lose_them() {
    let table = ",\"annotations\":{\"containerd.io/snapshot/stargz/toc.digest\":\"sha256:0\",\"keep\":\"1\",\"io.github.containers.zstd-chunked.manifest-position\":\"1:2\"}";
    let mut layer = Layer::new(&[("a.so", b"code A"), ("stargz.index.json", b"{}")], Packed::Gzip);
    layer.annotations = table.into();
    let mut other = Layer::new(&[("b", b"text"), ("stargz.index.json", b"{}")], Packed::Gzip);
    other.annotations = table.into();
    let mut layout = Layout::new();
    let soci = ",\"annotations\":{\"com.amazon.soci.index-digest\":\"sha256:0\"}";
    let image = layout.image(&[layer, other.clone()], soci) + "}";
    let (new, edit) = edited(&layout.finish(&[image]), false, &thinned).unwrap();
    assert!(edit.has_stargz);
    let (manifest, layers) = &checked(&new, &new["index.json"])[0];
    assert_eq!(manifest["layers"][0]["annotations"], serde_json::json!({"keep": "1"}));
    assert_eq!(manifest["layers"][1]["annotations"].as_object().unwrap().len(), 3);
    assert_eq!(manifest["annotations"], serde_json::json!({}));
    assert_eq!((members(&layers[0]).len(), &layers[1]), (1, &other.tar));
    assert_eq!(edit.changed.notes().len(), 3, "{:?}", edit.changed.notes());
}

#[test]
fn documents_about_an_image_that_changes_are_refused_or_dropped() {
    let layers = [Layer::new(&[("a.so", b"code A")], Packed::Gzip)];
    let kept = Layer::new(&[("b", b"text")], Packed::Gzip);
    let digest = |image: &str| image.split('"').nth(7).unwrap().to_owned();
    let about = |way: usize| {
        let mut layout = Layout::new();
        let image = layout.image(&layers, "");
        let other = layout.image(std::slice::from_ref(&kept), "") + "}";
        let digest = digest(&image);
        assert!(digest.starts_with("sha256:"));
        let config = layout.blob("application/vnd.oci.empty.v1+json", b"{}".to_vec());
        let item = layout.blob("application/vnd.in-toto+json", b"{\"x\":1}".to_vec());
        let subject = if way == 0 {
            format!(",\"subject\":{{\"digest\":\"{digest}\",\"size\":1}}")
        } else {
            String::new()
        };
        let text =
            format!("{{\"schemaVersion\":2,\"config\":{config}}},\"layers\":[{item}}}]{subject}}}");
        let hex = digest.strip_prefix("sha256:").unwrap();
        let annotation = match way {
            1 => format!(",\"annotations\":{{\"vnd.docker.reference.digest\":\"{digest}\"}}"),
            2 => format!(
                ",\"annotations\":{{\"org.opencontainers.image.ref.name\":\"sha256-{hex}.sig\"}}"
            ),
            _ => String::new(),
        };
        let signature = layout.blob(images::MANIFEST, text.into_bytes()) + &annotation + "}";
        layout.finish(&[image + "}", signature, other])
    };
    for way in 0..3 {
        let old = about(way);
        let error = edited(&old, false, &thinned).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Signed, "{error}");
        let (new, edit) = edited(&old, true, &thinned).unwrap();
        assert_eq!(checked(&new, &new["index.json"]).len(), 2);
        // The manifest, its configuration and what it has.
        assert_eq!(new.len(), old.len() - 3);
        assert_eq!(edit.changed.notes().len(), 1);
    }
    // Nothing changes: nothing is dropped.
    let old = about(0);
    let (new, _) = edited(&old, false, &|_, _| None).unwrap();
    assert_eq!(new, old.into_iter().collect());
    // Not about an image that changes.
    assert_eq!(edited(&about(3), false, &thinned).unwrap().0.len(), about(3).len());
}

#[test]
fn damage_is_found() {
    let layers = [Layer::new(&[("a.so", b"code A")], Packed::Gzip)];
    let files = images::layout(&layers);
    let find = |files: &[File]| match edited(files, false, &thinned) {
        Ok((_, edit)) => edit.findings.join("\n"),
        Err(error) => error.to_string(),
    };
    let changed = |at: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut files = files.clone();
        change(&mut files[at].1);
        find(&files)
    };
    // The order: layout, configuration, layer, manifest, index.
    let name = |at: usize| files[at].0.clone();
    assert_eq!(
        changed(0, &|it| it[24] = b'2'),
        "oci-layout: imageLayoutVersion: expected 1.0.0, found 2.0.0"
    );
    for (at, found) in [(1, "digest: expected sha256:"), (3, "digest: expected sha256:")] {
        let text = changed(at, &|it| {
            let place = it.windows(5).position(|it| it == b"amd64" || it == b"schem").unwrap();
            it[place] = b'x';
        });
        assert!(text.starts_with(&format!("{}: {found}", name(at))), "{text}");
    }
    let text = changed(2, &|it| it.extend([0; 3]));
    assert!(text.starts_with(&format!("{}: ", name(2))), "{text}");
    assert!(changed(3, &|it| it.truncate(9)).contains(&name(3)));
    assert!(changed(4, &|it| it.truncate(9)).contains("index.json: EOF"));
    let other = Layer::new(&[("a.so", b"code B")], Packed::Gzip).blob();
    let text = changed(2, &|it| it.clone_from(&other));
    assert!(text.contains("digest: expected") && text.contains("diff_id: expected"), "{text}");
    let mut files = images::layout(&layers);
    files.retain(|(name, _)| !name.contains(&hex(&layers[0].blob())));
    let images = Images::read(&Files(files.into_iter().collect()), 1 << 28).unwrap().unwrap();
    assert!(images.layers().is_empty() && images.notes().is_empty());
    assert!(images.unread()[0].to_string().contains("is not there"), "{:?}", images.unread());
    assert!(Images::read(&Files(BTreeMap::new()), 1 << 28).unwrap().is_none());
    let other =
        BTreeMap::from([("manifest.json".to_owned(), b"{\"name\": \"of a program\"}".to_vec())]);
    assert!(Images::read(&Files(other), 1 << 28).unwrap().is_none());
}

#[test]
fn archives_are_named_by_new_hashes() {
    let layers = [
        Layer::new(&[("etc/passwd", b"root")], Packed::Plain),
        Layer::new(&[("a.so", b"code A"), ("b", b"text")], Packed::Plain),
    ];
    let new_layer = Layer::new(&[("a.so", b"les"), ("b", b"text")], Packed::Plain);
    let packed: Vec<_> =
        layers.iter().map(|it| Layer { packed: Packed::Gzip, ..it.clone() }).collect();
    for (form, old) in [
        images::docker_archive(&layers),
        images::linked_archive(&layers),
        images::hybrid_archive(&layers),
        images::hybrid_archive(&packed),
        images::archive(&images::layout(&packed)),
    ]
    .iter()
    .enumerate()
    {
        let archive = ImageArchive::read(Cursor::new(old)).unwrap().unwrap();
        let edit = edit(&Archived(old, archive), false, &thinned).unwrap();
        let mut new = Vec::new();
        ImageArchive::rewrite(Cursor::new(old), &mut new, &edit.changed, |name| {
            let layer = edit.layers.get(name);
            Ok(layer.map(|(bytes, new)| NewFile::new(new.size(), &bytes[..])))
        })
        .unwrap();
        let archive = ImageArchive::read(Cursor::new(&new)).unwrap().unwrap();
        let files = Archived(&new, archive);
        assert_eq!(members(old).len(), members(&new).len());
        if let Some(index) = files.size("index.json") {
            assert!(index > 0);
            let files: BTreeMap<_, _> =
                members(&new).into_iter().map(|(name, _, bytes)| (name, bytes)).collect();
            let (_, tars) = &checked(&files, &files["index.json"])[0];
            assert_eq!(tars[1], new_layer.tar);
        }
        let text = String::from_utf8_lossy(&new).into_owned();
        if form < 4 {
            let manifest = files.read("manifest.json", 0).unwrap();
            let manifest: Value = serde_json::from_slice(&manifest).unwrap();
            let config = files.read(manifest[0]["Config"].as_str().unwrap(), 0).unwrap();
            assert!(manifest[0]["Config"].as_str().unwrap().contains(&hex(&config)));
            let config: Value = serde_json::from_slice(&config).unwrap();
            let ids = config["rootfs"]["diff_ids"].as_array().unwrap();
            for (layer, id) in manifest[0]["Layers"].as_array().unwrap().iter().zip(ids) {
                let blob = files.read(layer.as_str().unwrap(), 0).unwrap();
                assert_eq!(format!("sha256:{}", hex(&decoded(&blob))), id.as_str().unwrap());
                if let Some(sources) = manifest[0].get("LayerSources") {
                    let source = &sources[id.as_str().unwrap()];
                    assert_eq!(source["digest"], format!("sha256:{}", hex(&blob)));
                    assert_eq!(source["size"], blob.len());
                }
            }
            assert_eq!(ids[1], format!("sha256:{}", hex(&new_layer.tar)));
            // No old hash is left.
            assert!(!text.contains(&hex(&layers[1].tar)), "{form}");
        }
        // Another tar file.
        let other = tar(&[("a", b"")]);
        assert!(ImageArchive::read(Cursor::new(other)).unwrap().is_none());
    }
}

#[test]
fn streams_that_fail_end_the_work() {
    let layer = Layer::new(&[("a.so", b"code A"), ("b", b"text")], Packed::Plain);
    let old = images::hybrid_archive(std::slice::from_ref(&layer));
    samples::faulty::check(|rig| {
        let archive = ImageArchive::read(rig.stream(&old))?.unwrap();
        let edit = edit(&Archived(&old, archive), false, &thinned)?;
        let mut new = Vec::new();
        ImageArchive::rewrite(rig.stream(&old), &mut new, &edit.changed, |name| {
            let layer = edit.layers.get(name);
            Ok(layer.map(|(bytes, new)| NewFile::new(new.size(), &bytes[..])))
        })?;
        Ok(hex(&new))
    });
    let images = Images::read(
        &Files(images::layout(std::slice::from_ref(&layer)).into_iter().collect()),
        1 << 28,
    );
    let images = images.unwrap().unwrap();
    let (blob, options) = (layer.blob(), Options::default());
    // A stream has no length: it may end after any member, and then has another hash.
    for kind in samples::faulty::KINDS {
        let fault = samples::faulty::Fault::Error(kind);
        let read = |rig: &samples::faulty::Rig| {
            let len = blob.len() as u64;
            images.layers()[0].read(rig.stream(&blob), len, &options, |_, _, _| Ok(()))
        };
        samples::faulty::at_each_call(&fault, read, |call, result| {
            let found = result.map_err(|error| std::io::Error::from(error).kind()).err();
            assert_eq!(found, Some(kind), "{call}");
        });
    }
}

/// No damage is a panic, and none leads to an image whose hashes are wrong.
#[test]
fn damaged_images_are_errors_or_findings() {
    let layers = [
        Layer::new(&[("a.so", b"code A"), (".wh.b", b""), ("c/.wh..wh..opq", b"")], Packed::Plain),
        Layer::new(
            &[(&format!("{SITE}/a-1.dist-info/RECORD"), b"../../../../a.so,,6\n")],
            Packed::Plain,
        ),
    ];
    for sample in [images::hybrid_archive(&layers), images::docker_archive(&layers)] {
        samples::damage::judge(&sample, |damaged| {
            let Ok(Some(archive)) = ImageArchive::read(Cursor::new(damaged)) else { return };
            let files = Archived(damaged, archive);
            if !matches!(Images::read(&files, 1 << 28), Ok(Some(_))) {
                return;
            }
            let Ok(edit) = edit(&files, true, &thinned) else { return };
            let mut new = Vec::new();
            let written =
                ImageArchive::rewrite(Cursor::new(damaged), &mut new, &edit.changed, |name| {
                    let layer = edit.layers.get(name);
                    Ok(layer.map(|(bytes, new)| NewFile::new(new.size(), &bytes[..])))
                });
            if written.is_ok() && edit.findings.is_empty() {
                let archive = ImageArchive::read(Cursor::new(&new)).unwrap().unwrap();
                Images::read(&Archived(&new, archive), 1 << 28).unwrap().unwrap();
            }
        });
    }
}

#[test]
fn empty_layers_are_there() {
    let empty = Layer { tar: vec![0; 1024], packed: Packed::Gzip, annotations: String::new() };
    let mut tar = tar_header(b"a.so", 6, b'0', b"");
    tar.extend(padded(b"code A"));
    let code = Layer { tar, packed: Packed::Gzip, annotations: String::new() };
    let (new, _) = edited(&images::layout(&[empty, code]), false, &thinned).unwrap();
    let (_, layers) = &checked(&new, &new["index.json"])[0];
    assert_eq!((layers[0].len(), contents(&layers[1], "a.so")), (1024, "les".into()));
}

/// Writes an archive again after an edit.
fn rewritten(old: &[u8], edit: &Edited) -> Result<Vec<u8>, Error> {
    let mut new = Vec::new();
    let size = ImageArchive::rewrite(Cursor::new(old), &mut new, &edit.changed, |name| {
        let layer = edit.layers.get(name);
        Ok(layer.map(|(bytes, new)| NewFile::new(new.size(), &bytes[..])))
    })?;
    assert_eq!(size, new.len() as u64);
    Ok(new)
}

/// Edits an archive, and returns its new files.
fn edited_archive(old: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let archive = ImageArchive::read(Cursor::new(old)).unwrap().unwrap();
    let edit = edit(&Archived(old, archive), false, &thinned).unwrap();
    let new = rewritten(old, &edit).unwrap();
    let archive = ImageArchive::read(Cursor::new(&new)).unwrap().unwrap();
    let files = Archived(&new, archive);
    let names: Vec<_> = members(&new).into_iter().map(|(name, ..)| name).collect();
    let found: BTreeMap<_, _> =
        names.iter().map(|name| (name.clone(), files.read(name, 0).unwrap())).collect();
    assert_eq!(found.len(), names.len(), "a member twice");
    found
}

#[test]
fn blobs_that_are_links_follow() {
    let layer = Layer::new(&[("a.so", b"code A")], Packed::Gzip);
    let files = images::layout(std::slice::from_ref(&layer));
    // The order: layout, configuration, layer, manifest, index.
    for (at, kind, target) in (1..4).flat_map(|at| [(at, b'1', "x"), (at, b'2', "../../x")]) {
        let mut old = tar(&[("x", &files[at].1)]);
        for (number, (name, bytes)) in files.iter().enumerate() {
            old.truncate(old.len() - 1024);
            if number == at {
                old.extend(tar_header(name.as_bytes(), 0, kind, target.as_bytes()));
                old.extend([0; 1024]);
            } else {
                old.extend(tar(&[(name, bytes)]));
            }
        }
        let new = edited_archive(&old);
        let (_, layers) = &checked(&new, &new["index.json"])[0];
        assert_eq!(contents(&layers[0], "a.so"), "les", "{at}");
    }
    // An archive that lacks what changes.
    let old = images::archive(&files);
    let archive = ImageArchive::read(Cursor::new(&old)).unwrap().unwrap();
    let edit = edit(&Archived(&old, archive), false, &thinned).unwrap();
    for at in [2, 3] {
        let mut files = files.clone();
        let (name, _) = files.remove(at);
        let error = rewritten(&images::archive(&files), &edit).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Mismatch);
        assert!(error.to_string().starts_with(&name), "{error}");
    }
    // A file that two digests are said of.
    let other = format!("blobs/sha256/{}", hex(b"other"));
    let mut made = Layout::new();
    let image = made.image(std::slice::from_ref(&layer), "");
    let wrong = image.replace(&hex(&made.files.last().unwrap().1), &hex(b"other"));
    let mut old = images::archive(&made.finish(&[image + "}", wrong + "}"]));
    old.truncate(old.len() - 1024);
    old.extend(tar_header(other.as_bytes(), 0, b'1', files[3].0.as_bytes()));
    old.extend([0; 1024]);
    let archive = ImageArchive::read(Cursor::new(&old)).unwrap().unwrap();
    let error = Images::read(&Archived(&old, archive), 1 << 28).err().unwrap();
    assert!(error.to_string().contains("expected one digest"), "{error}");
}

#[test]
fn layers_that_become_equal_are_written_once() {
    let [one, two, thin] = [&b"code A"[..], b"code B", b"les"]
        .map(|code| Layer::new(&[("a.so", code)], Packed::Plain));
    for other in [two, thin] {
        for turned in [false, true] {
            let mut pair = [one.clone(), other.clone()];
            if turned {
                pair.reverse();
            }
            let mut made = Layout::new();
            let items = pair.map(|layer| made.image(&[layer], "") + "}");
            let old = images::archive(&made.finish(&items));
            let new = edited_archive(&old);
            let found = checked(&new, &new["index.json"]);
            assert_eq!(found.len(), 2);
            assert!(found.iter().all(|(_, layers)| contents(&layers[0], "a.so") == "les"));
            assert_eq!(new.len(), 5, "{:?}", new.keys());
        }
    }
}

#[test]
fn copies_and_places_of_old_contents_are_dropped() {
    let mut layer = Layer::new(&[("a.so", b"code A")], Packed::Gzip);
    layer.annotations = ",\"urls\":[\"https://example.org/a\"],\"data\":\"AAAA\"".into();
    let mut same = Layer::new(&[("b", b"text")], Packed::Gzip);
    same.annotations = ",\"data\":\"BBBB\"".into();
    let mut made = Layout::new();
    let image = made.image(&[layer, same], "") + ",\"data\":\"CCCC\"}";
    let (new, edit) = edited(&made.finish(&[image]), false, &thinned).unwrap();
    let (manifest, _) = &checked(&new, &new["index.json"])[0];
    let [changed, kept] = [0, 1].map(|at| manifest["layers"][at].as_object().unwrap());
    assert!(!changed.contains_key("data") && !changed.contains_key("urls"), "{changed:?}");
    assert_eq!(kept["data"], "BBBB");
    assert!(!String::from_utf8_lossy(&new["index.json"]).contains("CCCC"));
    assert_eq!(edit.changed.notes().len(), 3, "{:?}", edit.changed.notes());
}

fn with_link(name: &[u8], kind: u8, target: &[u8], rest: &[(&str, &[u8])]) -> Layer {
    let mut members = tar_header(name, 0, kind, target);
    members.extend(tar(rest));
    Layer { tar: members, packed: Packed::Plain, annotations: String::new() }
}

#[test]
fn rows_lead_through_links_of_directories() {
    let md5 = |bytes: &[u8]| Hash::of(Algorithm::Md5, bytes).to_hex();
    let dpkg = "var/lib/dpkg/info/a.md5sums";
    let sums = format!("{}  lib/x/a.so\n", md5(b"code A"));
    let link = with_link(b"lib", b'2', b"usr/lib", &[]);
    let code = Layer::new(&[("usr/lib/x/a.so", b"code A"), (dpkg, sums.as_bytes())], Packed::Plain);
    let (new, edit) = edited(&images::layout(&[link, code]), false, &thinned).unwrap();
    assert!(edit.findings.is_empty(), "{:?}", edit.findings);
    let (_, layers) = &checked(&new, &new["index.json"])[0];
    assert_eq!(contents(&layers[1], dpkg), format!("{}  lib/x/a.so\n", md5(b"les")));
}

/// Returns the views of images, by the layers of each.
fn views(list: &[&[Layer]]) -> Result<Vec<gpu_packages::ImageView>, Error> {
    let mut made = Layout::new();
    let items: Vec<_> = list
        .iter()
        .zip(["", ",\"x\":1", ",\"x\":2"])
        .map(|(layers, more)| made.image(layers, more) + "}")
        .collect();
    let files = Files(made.finish(&items).into_iter().collect());
    let images = Images::read(&files, 1 << 28)?.unwrap();
    let read = |layer: &gpu_packages::ImageLayer| {
        let blob = &files.0[layer.file()];
        layer.read(Cursor::new(blob), blob.len() as u64, &Options::default(), |_, _, _| Ok(()))
    };
    let members: Vec<_> = images.layers().iter().map(read).collect::<Result<_, _>>()?;
    Ok(images.views(&members)?.collect())
}

#[test]
fn views_know_links_and_are_made_once() {
    let low = Layer::new(&[("a.so", b"code A"), ("b.so", b"code B")], Packed::Plain);
    let linked = with_link(b"c.so", b'1', b"a.so", &[]);
    let hides = Layer::new(&[(".wh.c.so", b"")], Packed::Plain);
    let layers = [low.clone(), linked, hides];
    let found = views(&[&layers, std::slice::from_ref(&low), &layers]).unwrap();
    assert_eq!(found.len(), 2);
    let linked: Vec<_> = found.iter().map(|view| view.linked().collect::<Vec<_>>()).collect();
    assert_eq!(linked, [vec![LayerFile::new(0, 0)], vec![]]);
    // Names that no system has.
    let long = format!("{}a", "d/".repeat(2100));
    let mut tar = images::with_attributes(&long, b"");
    tar.extend([0; 1024]);
    let error = views(&[&[Layer { tar, ..low }]]).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("at most 4096 bytes, found 4201"), "{error}");
}

#[test]
fn documents_have_a_budget_and_are_read_once() {
    let layer = Layer::new(&[("a.so", b"code A")], Packed::Gzip);
    let mut made = Layout::new();
    let mut item = made.image(std::slice::from_ref(&layer), "") + "}";
    // As many ways to the image as nobody can go.
    for _ in 0..7 {
        item = made.index(&vec![item; 300]) + "}";
    }
    let files = made.finish(&[item]);
    let edit = edited(&files, true, &thinned).unwrap().1;
    assert_eq!(edit.changed.documents().len(), 10);
    let files = Files(files.into_iter().collect());
    let error = Images::read(&files, 1 << 20).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("limit of 1048576 bytes held"), "{error}");
}
