//! The whole way of an offloading compiler without LLVM, from device images to a program that registers them when it
//! starts: pack the images, embed the package into the host object, and then, as its linker, take them out again, make
//! the code that registers them, and link with `cc`.
//! `cargo run -p offload-examples --bin pipeline -- PROGRAM HOST.o RUNTIME.o TRIPLE=IMAGE...`
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use fat_object::{Finding, Visitor};
use offload_binary::{FormatVersion, ImageEntry, ImageKind, Layout, OffloadKind};
use wrapper_ir::{Abi, Image, Kind, Target, Wrapper};

/// The compiler: a host object that carries device images.
fn compile(host: &[u8], images: &[(String, Vec<u8>)]) -> Result<Vec<u8>, Box<dyn Error>> {
    let entry = |(triple, bytes): &(String, Vec<u8>)| {
        let entry = ImageEntry::new(bytes.len() as u64).offload_kind(OffloadKind::OPENMP);
        let entry = entry.image_kind(ImageKind::from_magic(bytes).unwrap_or(ImageKind::OBJECT));
        entry.string("triple", triple).string("arch", "").into_owned()
    };
    let entries: Vec<_> = images.iter().map(entry).collect();
    let bytes: Vec<_> = images.iter().map(|(_, bytes)| &bytes[..]).collect();
    let package = Layout::new(FormatVersion::V1, &entries)?.to_vec(&bytes)?;
    Ok(fat_object::embed(host, &package)?)
}

/// What the linker finds in objects. Here it would link the images of several objects for each device.
#[derive(Default)]
struct Found(Vec<Vec<u8>>);

impl Visitor for Found {
    fn image(&mut self, image: &mut fat_object::Image<'_, '_>) -> io::Result<()> {
        let mut bytes = Vec::new();
        image.reader().read_to_end(&mut bytes)?;
        self.0.push(bytes);
        Ok(())
    }
    fn finding(&mut self, finding: &Finding<'_>) -> io::Result<()> {
        Err(io::Error::other(finding.to_string()))
    }
}

/// The linker: an object that registers the device images in another.
fn wrap(fat: &[u8], host: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let (mut options, mut found) = (fat_object::Options::default(), Found::default());
    options.enter_images = false;
    fat_object::walk(&mut Cursor::new(fat), &options, &mut found)?;
    let images: Vec<_> = found.0.iter().map(|image| &image[..]).collect();
    let module = Wrapper::new(Kind::OpenMp, Abi::Current, Target::new(host)?)
        .images(images.iter().map(|image| Image::from_bytes(image)))
        .module()?;
    Ok(module.object()?.to_vec(&images)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [program, host, runtime, images @ ..] = &args[..] else {
        return Err("usage: pipeline PROGRAM HOST.o RUNTIME.o TRIPLE=IMAGE...".into());
    };
    let image = |arg: &String| -> Result<_, Box<dyn Error>> {
        let (triple, file) = arg.split_once('=').ok_or("expected TRIPLE=IMAGE")?;
        Ok((triple.to_owned(), fs::read(file)?))
    };
    let images: Vec<_> = images.iter().map(image).collect::<Result<_, _>>()?;
    let fat = compile(&fs::read(host)?, &images)?;
    let wrapper = wrap(&fat, &format!("{}-unknown-linux-gnu", std::env::consts::ARCH))?;

    let [fat_file, wrapper_file] =
        ["host.o", "wrapper.o"].map(|end| Path::new(program).with_extension(end));
    fs::write(&fat_file, fat)?;
    fs::write(&wrapper_file, wrapper)?;
    let objects = [&fat_file, &wrapper_file, &PathBuf::from(runtime)];
    let status = Command::new("cc").args(objects).args(["-ldl", "-o", program]).status()?;
    if status.success() { Ok(()) } else { Err("cc failed".into()) }
}
