//! Which GPUs does each file carry code for? `gpus FILE...`
#![forbid(unsafe_code)]

use std::{collections::BTreeSet, env, fs::File, io};

fn main() -> io::Result<()> {
    for path in env::args_os().skip(1) {
        let listing = fat_object::list(File::open(&path)?, &fat_object::Options::default())?;
        let gpus: BTreeSet<_> = listing.images().iter().map(|image| image.target().id()).collect();
        let gpus: Vec<_> = gpus.into_iter().filter(|id| !id.is_empty()).collect();
        println!("{}: {}", path.display(), gpus.join(" "));
        listing.findings().iter().for_each(|finding| eprintln!("{}: {finding}", path.display()));
    }
    Ok(())
}
