//! Which GPUs does each file carry code for? `cargo run -p offload-examples --bin gpus -- FILE...`
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io;

use fat_object::{Finding, Image, Options, Visitor};

/// Collects target IDs; anything malformed ends the walk.
#[derive(Default)]
struct Gpus(BTreeSet<String>);

impl Visitor for Gpus {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if !image.target().id().is_empty() {
            self.0.insert(image.target().id().to_owned());
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()> {
        Err(io::Error::other(finding.to_string()))
    }
}

fn main() -> io::Result<()> {
    for path in std::env::args().skip(1) {
        let mut gpus = Gpus::default();
        fat_object::walk(&mut File::open(&path)?, &Options::default(), &mut gpus)?;
        println!("{path}: {}", gpus.0.into_iter().collect::<Vec<_>>().join(" "));
    }
    Ok(())
}
