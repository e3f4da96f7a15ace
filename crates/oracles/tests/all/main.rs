//! Properties of any input, checked for the example files and for damaged ones.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod damage;
mod examples;
mod fields;
mod noise;

/// Every example file, and what follows each container magic in it.
fn files() -> Vec<Vec<u8>> {
    let magics: [&[u8]; 3] = [&bundle_format::MAGIC, &ccob::MAGIC, &offload_binary::MAGIC];
    let mut files = vec![Vec::new()];
    for (_, file) in samples::examples() {
        for at in 0..file.len() {
            if magics.iter().any(|magic| file[at..].starts_with(magic)) {
                files.push(file[at..].to_vec());
            }
        }
        files.push(file);
    }
    assert!(files.len() > 50, "only {}", files.len());
    files
}

/// The images that the tests of `device-code` read.
fn images() -> Vec<Vec<u8>> {
    let files = std::fs::read_dir("../device-code/tests/data").unwrap();
    let files = files.map(|file| file.unwrap().path());
    let images = files.filter(|path| path.extension().is_none_or(|name| name != "md"));
    images.map(|path| std::fs::read(path).unwrap()).collect()
}
