//! Archives of bundles, made by hand.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unreachable_pub, clippy::unwrap_used, reason = "included by tests")]

use std::io::{self, Cursor};

use bundle_format::{EntryId, Request};
use byte_parts::ReadSeek;
use hda_archive::{Error, Options, Unbundling, Warning, no_thin_members};
use object_edit::NewSections;

pub const HOST_OBJECT: &[u8] = include_bytes!("../../../../examples/data/host.o");

pub const HOST: &str = "host-x86_64-unknown-linux-gnu-";
pub const GFX906: &str = "hip-amdgcn-amd-amdhsa--gfx906";
pub const GFX908: &str = "hip-amdgcn-amd-amdhsa--gfx908";

pub fn compressed(bundle: &[u8]) -> Vec<u8> {
    ccob::compress(bundle, &ccob::WriteOptions::default()).unwrap()
}

/// The entries as sections of the host's object, for which a zero stands.
pub fn fat_object(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let name = |id| format!("{}{id}", bundle_format::MAGIC_TEXT);
    let sizes: Vec<_> = entries.iter().map(|(id, data)| (name(*id), data.len() as u64)).collect();
    let contents: Vec<_> = entries.iter().map(|(_, data)| *data).collect();
    NewSections::new(HOST_OBJECT, &sizes).unwrap().to_vec(&contents).unwrap()
}

pub fn requests(ids: &[&str]) -> Vec<Request> {
    ids.iter().map(|id| Request::new(&EntryId::parse(id).unwrap())).collect()
}

#[derive(Debug, PartialEq)]
pub struct Unbundled {
    pub archives: Vec<Vec<u8>>,
    pub names: Vec<Vec<String>>,
    pub missing: Vec<String>,
    pub warnings: Vec<String>,
}

pub fn unbundle(input: &[u8], ids: &[&str]) -> Result<Unbundled, Error> {
    unbundle_thin(input, ids, no_thin_members)
}

pub fn unbundle_thin(
    input: &[u8],
    ids: &[&str],
    mut open: impl FnMut(&[u8]) -> io::Result<Box<dyn ReadSeek>>,
) -> Result<Unbundled, Error> {
    let mut input = Cursor::new(input);
    let plan = Unbundling::plan(&mut input, requests(ids), &Options::default(), &mut open)?;
    let plan = plan.with_allow_missing(true);
    let mut archives = vec![Vec::new(); ids.len()];
    plan.write(&mut input, &mut archives, &mut open)?;
    for (archive, planned) in archives.iter().zip(plan.archives()) {
        assert_eq!(archive.len() as u64, planned.size());
    }
    // Copied, they are the same.
    for (copy, archive) in plan.copies().unwrap_or_default().iter().zip(&archives) {
        let mut copied = Vec::new();
        copy.write(&mut input, &mut copied)?;
        assert!(copied == *archive);
    }
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let names = plan.archives().iter();
    Ok(Unbundled {
        archives,
        names: names.map(|a| a.members().map(|(name, _)| text(name)).collect()).collect(),
        missing: plan.missing().map(|request| request.id().to_owned()).collect(),
        warnings: plan.warnings().iter().map(Warning::to_string).collect(),
    })
}
