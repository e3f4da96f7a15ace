//! Arguments of the linker.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use offload_examples::Error;
use target_id::{Target, Triple};

pub(super) struct CommandLine {
    device_linkers: Vec<(Triple, String)>,
    pub(super) linker: OsString,
    pub(super) host_triple: String,
    pub(super) output: PathBuf,
    pub(super) inputs: Vec<PathBuf>,
    /// Arguments for the host's linker.
    pub(super) rest: Vec<OsString>,
}

impl CommandLine {
    pub(super) fn parse(mut args: impl Iterator<Item = OsString>) -> Result<CommandLine, Error> {
        let mut line = CommandLine {
            device_linkers: Vec::new(),
            linker: "cc".into(),
            host_triple: format!("{}-unknown-linux-gnu", env::consts::ARCH),
            output: PathBuf::new(),
            inputs: Vec::new(),
            rest: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{}: no value", arg.display()));
            let text = |value: OsString| {
                value.into_string().map_err(|value| format!("{}: not UTF-8", value.display()))
            };
            match arg.to_str() {
                Some("--device-linker") => {
                    let value = text(value()?)?;
                    let linker = value.split_once('=').ok_or("expected TRIPLE=COMMAND")?;
                    line.device_linkers.push((Triple::parse(linker.0), linker.1.to_owned()));
                }
                Some("--linker") => line.linker = value()?,
                Some("--host-triple") => line.host_triple = text(value()?)?,
                Some("-o") => line.output = value()?.into(),
                Some("--") => line.rest = args.by_ref().collect(),
                _ => line.inputs.push(arg.into()),
            }
        }
        if line.output.as_os_str().is_empty() || line.inputs.is_empty() {
            return Err(
                "usage: linker [OPTION]... -o PROGRAM INPUT... [-- LINKER-ARGUMENT...]".into()
            );
        }
        Ok(line)
    }

    pub(super) fn device_linker(&self, target: &Target) -> Option<&str> {
        let triple = target.triple()?;
        let linker = self.device_linkers.iter().find(|(of, _)| of.compatible_with(triple))?;
        Some(&linker.1)
    }
}
