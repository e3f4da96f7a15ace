//! The device code of a program that a linker such as wild links: it has its inputs in memory and has chosen the members of
//! archives, and gets one more object to link.
//!
//! `linker_hook REGISTRATION.o HOST-TRIPLE CLANG INPUT...`
//!
//! The function `registration` is all that the linker needs. The rest imitates the linker, with wild's crate `object`: files are
//! read where wild maps them, because mapping is unsafe, and a few lines choose members.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use offload_examples::{Error, about, exit, read, write};
use offload_link::{ClangOptions, CommandLinker, Inputs, Plan, PlanOptions, RegisterOptions};

/// An object, or a member of an archive.
struct Input<'d> {
    file: &'d Path,
    member: Option<String>,
    data: &'d [u8],
    is_loaded: bool,
}

/// Returns an object that registers the device code of the inputs; `None` if they have none.
fn registration(
    inputs: &[Input<'_>],
    linker: &mut CommandLinker,
    host: &str,
) -> Result<Option<Vec<u8>>, Error> {
    let mut device = Inputs::new();
    for Input { file, member, data, is_loaded } in inputs {
        let file = file.to_string_lossy();
        // Without device code, an input costs the parse of its headers.
        match member {
            Some(member) => device.add_member(&file, member, data, *is_loaded)?,
            None => device.add(&file, data)?,
        };
    }
    let images = Plan::new(&device, &PlanOptions::default())?.link(linker)?;
    Ok(images.object(&RegisterOptions::new(host))?)
}

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    exit("linker_hook", link(&words))
}

fn link(words: &[OsString]) -> Result<(), Error> {
    let [output, host, clang, files @ ..] = words else {
        return Err("usage: linker_hook REGISTRATION.o HOST-TRIPLE CLANG INPUT...".into());
    };
    let contents = files.iter().map(|file| read(file.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let mut inputs = Vec::new();
    for (file, data) in files.iter().zip(&contents) {
        let file = Path::new(file);
        if data.starts_with(&object::archive::MAGIC) {
            members(file, data, &mut inputs).map_err(about(file))?;
        } else {
            inputs.push(Input { file, member: None, data, is_loaded: false });
        }
    }
    load(&mut inputs)?;
    let mut linker = CommandLinker::new().with_clang(clang, ClangOptions::new());
    let object = registration(&inputs, &mut linker, &host.to_string_lossy())?;
    let object = object.ok_or("no device code in the inputs")?;
    write(output.as_ref(), |file| Ok(file.write_all(&object)?))
}

fn members<'d>(file: &'d Path, data: &'d [u8], to: &mut Vec<Input<'d>>) -> Result<(), Error> {
    for member in ArchiveFile::parse(data)?.members() {
        let member = member?;
        let name = String::from_utf8_lossy(member.name()).into_owned();
        to.push(Input { file, member: Some(name), data: member.data(data)?, is_loaded: false });
    }
    Ok(())
}

/// Loads objects, and members that define a symbol which another loaded file lacks.
fn load(inputs: &mut [Input<'_>]) -> Result<(), Error> {
    let mut files = Vec::new();
    for input in &*inputs {
        files.push(object::File::parse(input.data).map_err(about(input.file))?);
    }
    let (mut defined, mut wanted) = (HashSet::new(), HashSet::new());
    let mut is_done = false;
    while !std::mem::replace(&mut is_done, true) {
        for (input, file) in inputs.iter_mut().zip(&files).filter(|(input, _)| !input.is_loaded) {
            let symbols = || file.symbols().filter(|symbol| symbol.is_global());
            let lacks = |name: &[u8]| wanted.contains(name) && !defined.contains(name);
            let names = symbols().filter(|symbol| !symbol.is_undefined());
            let mut names = names.filter_map(|symbol| symbol.name_bytes().ok());
            if input.member.is_some() && !names.any(lacks) {
                continue;
            }
            (input.is_loaded, is_done) = (true, false);
            for symbol in symbols().filter(|symbol| !symbol.is_undefined() || !symbol.is_weak()) {
                let known = if symbol.is_undefined() { &mut wanted } else { &mut defined };
                known.extend(symbol.name_bytes());
            }
        }
    }
    Ok(())
}
