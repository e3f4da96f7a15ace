//! What an offloading compiler does without LLVM, from memory: pack device images, embed the package into the
//! host object, and (as its linker) take the images out again.
//! `cargo run -p offload-examples --bin compiler -- HOST.o ARCH=IMAGE... > FAT.o`
#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Cursor, Read, Write};

use fat_object::{Finding, Image, Visitor};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, Layout, OffloadKind};

/// One package with all images, as `clang-offload-packager` writes it.
fn pack(images: &[(String, Vec<u8>)]) -> Result<Vec<u8>, offload_binary::Error> {
    let entry = |(arch, bytes): &'_ (String, Vec<u8>)| {
        let entry = ImageEntry::new(bytes.len() as u64).offload_kind(OffloadKind::HIP);
        let entry = entry.image_kind(ImageKind::from_magic(bytes).unwrap_or(ImageKind::OBJECT));
        entry.string("arch", arch).string("triple", "amdgcn-amd-amdhsa").into_owned()
    };
    let entries: Vec<_> = images.iter().map(entry).collect();
    let bytes: Vec<_> = images.iter().map(|(_, bytes)| &bytes[..]).collect();
    Layout::new(FormatVersion::V1, &entries)?.to_vec(&bytes)
}

/// Collects the images of an object, as a linker would.
#[derive(Default)]
struct Linker(Vec<(String, Vec<u8>)>);

impl Visitor for Linker {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let arch = image.target().id().to_owned();
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        self.0.push((arch, bytes));
        Ok(())
    }
    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()> {
        Err(io::Error::other(finding.to_string()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let host = std::fs::read(args.next().ok_or("usage: compiler HOST.o ARCH=IMAGE...")?)?;
    let mut images = Vec::new();
    for arg in args {
        let (arch, file) = arg.split_once('=').ok_or("expected ARCH=IMAGE")?;
        images.push((arch.to_owned(), std::fs::read(file)?));
    }
    let fat = fat_object::embed(&host, &pack(&images)?)?;
    let mut linker = Linker::default();
    fat_object::walk(&mut Cursor::new(&fat), &fat_object::Options::default(), &mut linker)?;
    assert!(linker.0 == images, "every image comes back as it went in");
    Ok(io::stdout().write_all(&fat)?)
}
