//! The inputs of a link that carry device code, and where it lies in them. `inputs FILE...`
//!
//! The question goes to every input; what costs more is done for inputs that say yes.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

use fat_object::{Options, has_device_code, list_slice};
use offload_examples::{Error, about, exit, read};

fn main() -> ExitCode {
    exit("inputs", std::env::args_os().skip(1).try_for_each(|path| input(Path::new(&path))))
}

fn input(path: &Path) -> Result<(), Error> {
    let data = read(path)?; // a linker has it in memory anyway, read or mapped
    if !has_device_code(&data).map_err(about(path))? {
        return Ok(());
    }
    println!("{}:", path.display());
    for image in list_slice(&data, &Options::default())?.images() {
        match image.bytes_in(&data) {
            Some(bytes) => println!("  {}: {} bytes, lent", image.target(), bytes.len()),
            None => println!("  {}: {} bytes to be decompressed", image.target(), image.size()),
        }
    }
    Ok(())
}
