//! Archives of container images, made from the fuzzer's bytes, and any bytes.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use arbitrary::{Result, Unstructured};
use gpu_packages::{
    Algorithm, Codec, Error, Hash, ImageArchive, ImageFiles, ImageLayer, Images, NewFile, NewLayer,
    Options, Replacement, RewriteOptions,
};
use samples::images::{self, Layer, Packed};

use crate::assert_message;

/// Bytes that a layer may have.
const LIMIT: u64 = 4 << 20;

/// The files of an archive.
struct Files<'a>(&'a [u8], ImageArchive);

impl ImageFiles for Files<'_> {
    fn size(&self, name: &str) -> Option<u64> {
        self.1.place(name).map(|place| place.end - place.start)
    }

    fn read(&self, name: &str, most: u64) -> std::result::Result<Vec<u8>, Error> {
        let place = self.1.place(name).ok_or_else(|| Error::refused("no such file"))?;
        assert!(place.end - place.start <= most.max(LIMIT), "{name}");
        let place = usize::try_from(place.start).unwrap()..usize::try_from(place.end).unwrap();
        Ok(self.0[place].to_vec())
    }

    fn has(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        self.1.names().any(is_wanted)
    }

    fn resolve(&self, name: &str) -> String {
        self.1.resolve(name)
    }
}

/// Reads any bytes. Then makes images of them, and checks that a change of a layer is followed by all hashes above it, and that
/// every damage of the fuzzer is read within bounds.
pub fn check(data: &[u8]) {
    any(data, false);
    let u = &mut Unstructured::new(data);
    let Ok(mut archive) = made(u) else { return };
    any(&archive, true);
    crate::fields::change_bytes(u, &mut archive, 4);
    any(&archive, false);
}

/// Returns an archive of images.
fn made(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut layers = Vec::new();
    for _ in 0..u.int_in_range(1..=3)? {
        let mut files = vec![("usr/lib/libfoo.so".to_owned(), u.arbitrary::<Vec<u8>>()?)];
        for n in 0..u.int_in_range(0..=3)? {
            let name = *u.choose(&["etc/", "usr/lib/.wh.libfoo.so", "usr/.wh..wh..opq", "a"])?;
            files.push((
                format!("{name}{}", if name == "a" { n.to_string() } else { String::new() }),
                Vec::new(),
            ));
        }
        let files: Vec<_> = files.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
        let packed = *u.choose(&[Packed::Plain, Packed::Gzip, Packed::Zstd])?;
        layers.push(Layer::new(&files, packed));
    }
    Ok(match u.int_in_range(0..=3)? {
        0 => images::archive(&images::layout(&layers)),
        1 => images::docker_archive(&layers),
        2 => images::linked_archive(&layers),
        _ => images::hybrid_archive(&layers),
    })
}

/// Reads images, and changes a file of each layer. Images that were made are sound.
fn any(data: &[u8], is_sound: bool) {
    let archive = match ImageArchive::read(Cursor::new(data)) {
        Ok(Some(archive)) => archive,
        Ok(None) => return assert!(!is_sound, "an archive that is made"),
        Err(error) => return refused(&error, is_sound),
    };
    let files = Files(data, archive);
    let read = match Images::read(&files, 1 << 28) {
        Ok(Some(images)) => images,
        Ok(None) => return assert!(!is_sound, "images that are made"),
        Err(error) => return refused(&error, is_sound),
    };
    read.findings().iter().chain(read.unread()).for_each(assert_message);
    assert!(!is_sound || read.findings().is_empty(), "{:?}", read.findings());
    let same = read.replace_layers(&BTreeMap::new(), false).expect("no change");
    let mut copy = Vec::new();
    ImageArchive::rewrite(Cursor::new(data), &mut copy, &same, |_| Ok(None)).expect("was read");
    // New padding is of zeros.
    assert_eq!(copy.len(), data.len(), "a copy");
    assert!(!is_sound || copy == data, "a copy differs");

    let (mut new, mut blobs) = (BTreeMap::new(), BTreeMap::new());
    for (number, layer) in read.layers().iter().enumerate() {
        match changed(&files, layer) {
            Ok(Some((blob, layer_after))) => {
                new.insert(number, layer_after);
                blobs.insert(layer.file().to_owned(), blob);
            }
            Ok(None) => {}
            Err(error) => refused(&error, is_sound),
        }
    }
    let after = match read.replace_layers(&new, true) {
        Ok(after) => after,
        // Equal layers that differ in their names only.
        Err(error) => return assert_message(&error),
    };
    let mut out = Vec::new();
    let written = ImageArchive::rewrite(Cursor::new(data), &mut out, &after, |name| {
        let blob = blobs.get(name);
        Ok(blob.map(|blob| NewFile::new(blob.len() as u64, Cursor::new(blob.clone()))))
    });
    match written {
        Ok(size) => {
            assert_eq!(size, out.len() as u64);
            if is_sound {
                again(&out, &read);
            }
        }
        Err(error) => refused(&error, is_sound),
    }
}

fn refused(error: &Error, is_sound: bool) {
    assert_message(error);
    assert!(!is_sound, "{error}");
}

/// Gives the first file of a layer other contents. Returns the new layer, if there is a file.
fn changed(
    files: &Files<'_>,
    layer: &ImageLayer,
) -> std::result::Result<Option<(Vec<u8>, NewLayer)>, Error> {
    let old = files.read(layer.file(), LIMIT)?;
    let options = Options::default().with_max_decompressed(LIMIT).with_max_held(1 << 20);
    let mut first = None;
    let members = layer.read(Cursor::new(&old), old.len() as u64, &options, |member, _, _| {
        first.get_or_insert(member);
        Ok(())
    })?;
    members.findings().iter().for_each(assert_message);
    let Some(first) = first else { return Ok(None) };
    let mut blob = Vec::new();
    let options = RewriteOptions::default().with_max_decompressed(LIMIT);
    let new = layer.rewrite(Cursor::new(&old), &mut blob, &options, |member, _, _| {
        Ok((member == first).then(|| Replacement::from_bytes(b"changed".to_vec())))
    })?;
    assert_eq!(
        (new.size(), new.digest()),
        (blob.len() as u64, &Hash::of(Algorithm::Sha256, &blob))
    );
    Ok(Some((blob, new)))
}

/// Reads new images: all hashes are right.
fn again(data: &[u8], before: &Images) {
    let archive = ImageArchive::read(Cursor::new(data)).expect("was written").expect("is one");
    let files = Files(data, archive);
    let read = Images::read(&files, 1 << 28).expect("was written").expect("are some");
    assert!(read.findings().is_empty(), "{:?}", read.findings());
    assert!(read.layers().len() <= before.layers().len());
    assert_eq!(read.images().len(), before.images().len());
    for layer in read.layers() {
        let blob = files.read(layer.file(), LIMIT).expect("is there");
        let mut tar = Vec::new();
        let decoder = Codec::sniff(&blob).decoder(Cursor::new(&blob));
        decoder.and_then(|mut it| Ok(it.read_to_end(&mut tar)?)).expect("was compressed");
        let options = Options::default();
        let members = layer.read(Cursor::new(&blob), blob.len() as u64, &options, |_, _, _| Ok(()));
        let members = members.expect("was written");
        assert!(members.findings().is_empty(), "{:?}", members.findings());
    }
}
