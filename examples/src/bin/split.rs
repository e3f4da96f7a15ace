//! Splits a library into a host and a kernel pack for each target, as packagers of ROCm do, in process.
//!
//! `split LIBRARY NAME GROUP DIRECTORY` writes `DIRECTORY/NAME` and `DIRECTORY/.kpack/GROUP_TARGET.kpack`. NAME has no slash.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use fat_edit::{EditOptions, survey};
use fat_object::{Image, Options, Visitor};
use kpack::{Marker, NewKpack, Scheme};
use offload_examples::{Error, about, exit, write};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    exit("split", split(&args))
}

fn split(args: &[String]) -> Result<(), Error> {
    let [library, name, group, directory] = args else {
        return Err("usage: split LIBRARY NAME GROUP DIRECTORY".into());
    };
    let (library, directory) = (Path::new(library), Path::new(directory));
    let mut file = File::open(library).map_err(about(library))?;
    let contents = survey(&mut file, &Options::default()).map_err(about(library))?;
    let marker = Marker::new(name, [format!(".kpack/{group}_@GFXARCH@.kpack")]).to_vec()?;
    let host = contents.move_out(&mut file, &marker, &EditOptions::default());
    let host = host.map_err(about(library))?;

    let mut codes = Codes(BTreeMap::new());
    fat_object::walk(&mut file, &Options::default(), &mut codes).map_err(about(library))?;
    let mut packs: BTreeMap<&str, (NewKpack, Vec<Vec<u8>>)> = BTreeMap::new();
    for (number, bundle) in (0..).zip(contents.hip_wrappers(&mut file)?) {
        for image in contents.packable(bundle)? {
            let target = image.target().id();
            let code = codes.0.get(&image.index()).ok_or("the library was changed")?;
            let new = || (NewKpack::new(group, target, Scheme::Zstd), Vec::new());
            let (pack, frames) = packs.entry(target).or_insert_with(new);
            pack.add(name, number, target, code.len() as u64);
            frames.push(kpack::compress(code, 3)?);
        }
    }

    let place = directory.join(".kpack");
    fs::create_dir_all(&place).map_err(about(&place))?;
    for (target, (pack, frames)) in &packs {
        let sizes: Vec<u64> = frames.iter().map(|frame| frame.len() as u64).collect();
        let bytes = pack.layout(&sizes)?.to_vec(|number| frames.get(*number).map_or(&[], |f| f))?;
        let path = place.join(format!("{group}_{target}.kpack"));
        write(&path, |out| Ok(out.write_all(&bytes)?))?;
    }
    write(&directory.join(name), |out| {
        host.write(&mut file, &mut *out)?;
        Ok(out.set_permissions(file.metadata()?.permissions())?)
    })
}

/// All images, by their indices.
struct Codes(BTreeMap<usize, Vec<u8>>);

impl Visitor for Codes {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let mut code = Vec::new();
        image.pieces(&mut |piece| {
            code.extend_from_slice(piece);
            Ok(())
        })?;
        self.0.insert(image.index(), code);
        Ok(())
    }
}
