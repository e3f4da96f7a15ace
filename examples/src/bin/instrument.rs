//! Takes a code object out of a program, library, object or bundle, changes it, and puts it back: what profilers,
//! sanitizers and tracers of GPU code do.
//!
//! `instrument INPUT OUTPUT IMAGE --with COMMAND...`: the command changes the file whose name it gets as its last word.
//! `instrument INPUT OUTPUT IMAGE --patch OFFSET WORD`: an instruction of 32 bits is replaced; both are hexadecimal. The offset
//! counts from the start of the image, or from the code of a kernel: `KERNEL+OFFSET`, with the name as stored.
//!
//! IMAGE is a target ID (`gfx90a:xnack+`), or, where several images are for one target, the number of one of them.
//! The code object may get larger. Compressed bundles stay compressed, and libraries work without linking them again.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

use device_code::kernels;
use fat_edit::{Edit, EditOptions, EditableFile, NewImage, survey};
use fat_object::{Image, Options, Visitor};
use offload_examples::{Error, about, exit, run, write};
use tempfile::NamedTempFile;

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().skip(1).collect();
    exit("instrument", instrument(&args))
}

fn instrument(args: &[OsString]) -> Result<(), Error> {
    let [input, output, image, change @ ..] = args else {
        return Err(
            "usage: instrument INPUT OUTPUT IMAGE (--with COMMAND... | --patch OFFSET WORD)".into(),
        );
    };
    let input = Path::new(input);
    let mut file = File::open(input).map_err(about(input))?;
    let contents = survey(&mut file, &Options::default()).map_err(about(input))?;
    let index = choose(&contents, image)?;

    let mut code_object = NamedTempFile::new()?;
    let before =
        digests(&mut file, Some((index, code_object.as_file_mut()))).map_err(about(input))?;
    let code_object = changed(code_object, change)?;

    // An image that is too large for its place in a library gets a new one.
    let options = EditOptions::default().with_grow(true);
    let mut edit = Edit::new(options).with_images([NewImage::new(code_object)]);
    edit.replace(index, 0);
    let plan = contents.plan(&mut file, &edit).map_err(about(input))?;
    write(Path::new(output), |out| {
        plan.write(&mut file, &mut *out)?;
        // Check the result: every other image is unchanged.
        let after = digests(out, None)?;
        let differ = before.iter().zip(&after).enumerate().filter(|(_, (old, new))| old != new);
        let differ: Vec<_> = differ.map(|(index, _)| index).collect();
        if before.len() != after.len() || differ.iter().any(|differs| *differs != index) {
            return Err(format!("not only image {index} differs: {differ:?}").into());
        }
        Ok(out.set_permissions(file.metadata()?.permissions())?)
    })?;
    for image in plan.images().iter().filter(|image| image.index == Some(index)) {
        let (old, new) = (image.size_before, image.size_after.unwrap_or(0));
        println!("image {index} of {}, {}: {old} -> {new} bytes", before.len(), image.target);
    }
    Ok(())
}

/// The image that is meant.
fn choose(contents: &EditableFile, wanted: &OsStr) -> Result<usize, Error> {
    let wanted = wanted.to_str().ok_or("an image is a target ID or a number")?;
    if let Ok(index) = wanted.parse() {
        let image = contents.images().get::<usize>(index).map(|image| image.index());
        return image
            .ok_or_else(|| format!("no image {index} among {}", contents.images().len()).into());
    }
    let images: Vec<_> =
        contents.images().iter().filter(|image| image.target().id() == wanted).collect();
    match &images[..] {
        [image] => Ok(image.index()),
        [] => Err(format!("no image for {wanted}").into()),
        _ => {
            let numbers: Vec<_> = images.iter().map(|image| image.index().to_string()).collect();
            Err(format!("several images for {wanted}: {}", numbers.join(" ")).into())
        }
    }
}

/// Changes the code object and opens it again: tools mostly write a file of the same name.
fn changed(mut code_object: NamedTempFile, change: &[OsString]) -> Result<File, Error> {
    match change {
        [option, program, args @ ..] if option == "--with" => {
            run(Command::new(program).args(args).arg(code_object.path()))?;
        }
        [option, offset, word] if option == "--patch" => {
            let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
            let [offset, word] = [offset, word].map(|text| text.to_str().ok_or("a number"));
            let word = u32::try_from(number(word?)?)?;
            let offset = match offset?.split_once('+') {
                None => number(offset?)?,
                Some((kernel, offset)) => in_kernel(code_object.path(), kernel, number(offset)?)?,
            };
            let file = code_object.as_file_mut();
            file.seek(SeekFrom::Start(offset))?;
            let mut old = [0; 4];
            file.read_exact(&mut old).map_err(|error| format!("at {offset:#x}: {error}"))?;
            file.seek(SeekFrom::Start(offset))?;
            file.write_all(&word.to_le_bytes())?;
            println!("{offset:#x}: {:#010x} -> {word:#010x}", u32::from_le_bytes(old));
        }
        _ => return Err("expected --with COMMAND... or --patch OFFSET WORD".into()),
    }
    Ok(File::open(code_object.path())?)
}

/// Returns the place in the image of an instruction of 32 bits in a kernel.
fn in_kernel(image: &Path, name: &str, offset: u64) -> Result<u64, Error> {
    let image = std::fs::read(image)?;
    let found = kernels(&image).and_then(|found| found.kernels).unwrap_or_default();
    let kernel = found.iter().find(|kernel| kernel.name == name.as_bytes());
    let kernel = kernel.ok_or_else(|| format!("no kernel {name}"))?;
    let code = kernel.code_range.clone().ok_or_else(|| format!("{name}: its place is unknown"))?;
    if offset.checked_add(4).is_none_or(|end| end > code.len() as u64) {
        return Err(format!("{name}: offset {offset:#x} in {} bytes of code", code.len()).into());
    }
    Ok(code.start as u64 + offset)
}

/// Returns the ID and a digest of each image, to tell whether it changed; copies the bytes of one of them.
fn digests(file: &mut File, wanted: Option<(usize, &mut File)>) -> io::Result<Vec<(String, u64)>> {
    let options = Options::default().with_enter_images(false); // as a survey does, for the same numbers
    let mut reader = Reader { wanted, digests: Vec::new() };
    fat_object::walk(file, &options, &mut reader)?;
    Ok(reader.digests)
}

struct Reader<'a> {
    wanted: Option<(usize, &'a mut File)>,
    digests: Vec<(String, u64)>,
}

impl Visitor for Reader<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        let target = image.target().to_string();
        let mut out = match &mut self.wanted {
            Some((index, out)) if *index == image.index() => Some(out),
            _ => None,
        };
        let mut hasher = DefaultHasher::new();
        image.pieces(&mut |piece| {
            hasher.write(piece);
            out.as_mut().map_or(Ok(()), |out| out.write_all(piece))
        })?;
        self.digests.push((target, hasher.finish()));
        Ok(())
    }
}
