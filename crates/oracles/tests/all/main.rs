//! Properties of any input, checked for the example files and for damaged ones.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod damage;
mod examples;
mod fields;
mod noise;

/// Every example file, and what follows each container magic in it.
fn samples() -> Vec<Vec<u8>> {
    let magics: [&[u8]; 3] = [&bundle_format::MAGIC, &ccob::MAGIC, &offload_binary::MAGIC];
    let mut samples = vec![Vec::new()];
    for file in std::fs::read_dir("../../examples/data").unwrap() {
        let path = file.unwrap().path();
        if !path.is_file() {
            continue;
        }
        let file = std::fs::read(path).unwrap();
        for at in 0..file.len() {
            if magics.iter().any(|magic| file[at..].starts_with(magic)) {
                samples.push(file[at..].to_vec());
            }
        }
        samples.push(file);
    }
    assert!(samples.len() > 50, "only {}", samples.len());
    samples
}

/// The images that the tests of `device-code` read.
fn images() -> Vec<Vec<u8>> {
    let files = std::fs::read_dir("../device-code/tests/data").unwrap();
    let files = files.map(|file| file.unwrap().path());
    let images = files.filter(|path| path.extension().is_none_or(|name| name != "md"));
    images.map(|path| std::fs::read(path).unwrap()).collect()
}
