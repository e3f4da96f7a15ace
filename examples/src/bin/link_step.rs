//! The offload link step of a linker, in its own process: objects and archives in, one object that registers the device
//! code of all of them out. The device linker here takes what is linked already; yours calls `lld` or LLVM.
//!
//! `link_step REGISTRATION.o HOST-TRIPLE INPUT...`
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use offload_examples::{Error, exit, read, write};
use offload_link::{DeviceLinker, Group, Inputs, Parts, Plan, PlanOptions, RegisterOptions};

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    exit("link_step", link(&words))
}

fn link(words: &[OsString]) -> Result<(), Error> {
    let [output, host, files @ ..] = words else {
        return Err("usage: link_step REGISTRATION.o HOST-TRIPLE INPUT...".into());
    };
    let contents = files.iter().map(|file| read(file.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let mut inputs = Inputs::new();
    for (file, bytes) in files.iter().zip(&contents) {
        inputs.add(&file.to_string_lossy(), bytes)?;
    }
    let images = Plan::new(&inputs, &PlanOptions::default())?.link(&mut Linked)?;
    let options = RegisterOptions::new(host.to_string_lossy());
    let object = images.object(&options)?.ok_or("no device code in the inputs")?;
    write(output.as_ref(), |file| Ok(file.write_all(&object)?))
}

struct Linked;

impl DeviceLinker for Linked {
    type Error = Error;

    fn link(&mut self, group: &Group<'_>) -> Result<Parts, Error> {
        let [input] = group.inputs() else {
            return Err(format!("{} inputs for {}", group.inputs().len(), group.target()).into());
        };
        Ok(input.code().bytes().unwrap_or_default().to_vec().into())
    }
}
