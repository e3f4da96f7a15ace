//! A step of an offloading compiler: an object with the entries of a host object, which connect the addresses by which the host
//! knows kernels and variables with their names on devices.
//!
//! `entries ENTRIES.o KIND HOST-TRIPLE NAME=SYMBOL[:SIZE]...`
//!
//! KIND is `openmp`, `cuda` or `hip`. NAME is a name on devices, SYMBOL one that the host object defines. A variable has a SIZE
//! in bytes, a kernel has none.
#![forbid(unsafe_code)]

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use offload_examples::{Error, exit, write};
use wrapper_ir::{Abi, Entries, OffloadEntry, OffloadKind, Target};

fn main() -> ExitCode {
    let args: Vec<_> = env::args_os().skip(1).collect();
    exit("entries", emit(&args))
}

fn emit(args: &[OsString]) -> Result<(), Error> {
    let [output, words @ ..] = args else {
        return Err("usage: entries ENTRIES.o KIND HOST-TRIPLE NAME=SYMBOL[:SIZE]...".into());
    };
    let words = words.iter().map(|word| word.to_str().ok_or("names are UTF-8"));
    let words = words.collect::<Result<Vec<_>, _>>()?;
    let [kind, triple, entries @ ..] = &words[..] else {
        return Err("expected a kind and a triple after the output".into());
    };
    let entries = entries.iter().map(|word| parse(word)).collect::<Result<Vec<_>, Error>>()?;
    // The generation has to be the same as in the wrapper, which the linker makes.
    let kind = OffloadKind::from_name(kind).ok_or_else(|| format!("{kind}: no offload kind"))?;
    let module =
        Entries::new(kind, Abi::Current, Target::new(triple)?).with_entries(entries).module()?;
    let object = module.object()?;
    write(Path::new(output), |file| Ok(object.write_to(file, [&[][..]; 0])?))
}

/// `NAME=SYMBOL` or `NAME=SYMBOL:SIZE`.
fn parse(word: &str) -> Result<OffloadEntry<'_>, Error> {
    let (name, symbol) =
        word.split_once('=').ok_or_else(|| format!("{word}: expected NAME=SYMBOL"))?;
    Ok(match symbol.split_once(':') {
        None => OffloadEntry::kernel(name, symbol),
        Some((symbol, size)) => {
            let size = size.parse().map_err(|error| format!("{word}: {error}"))?;
            OffloadEntry::variable(name, symbol, size)
        }
    })
}
