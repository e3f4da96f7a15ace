//! Device links by clang.

use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::{fs, io};

use offload_link::{ClangOptions, DeviceLinker, Group, LinkFiles};

use super::files::Files;
use super::programs::{Call, Programs, file_name};
use crate::parallel;

/// The linker of device code that runs `clang`.
#[derive(Debug)]
pub(crate) struct Clang<'f> {
    pub(crate) options: ClangOptions,
    pub(crate) programs: Programs,
    pub(crate) files: &'f mut Files,
    /// The name of the program that is linked.
    pub(crate) output: OsString,
    pub(crate) jobs: NonZeroUsize,
    /// The files of the images, in the order of the plan.
    pub(crate) images: Vec<PathBuf>,
}

impl Clang<'_> {
    /// Writes the inputs of an image to files, and returns the call that links them.
    fn prepare(&mut self, group: &Group<'_>) -> io::Result<(Call, PathBuf)> {
        let target = group.target();
        let mut start = file_name(&self.output);
        start.push(format!(".{}.{}", target.architecture(), target.processor()));
        let mut inputs = Vec::new();
        for input in group.inputs() {
            let code = input.code();
            let (stem, own) = (code.stem(), code.target());
            let name = format!("{stem}-{}-{}", own.triple(), own.arch());
            inputs.push(self.files.write(OsStr::new(&name), ".o", code.bytes())?);
        }
        let image = self.files.name(&start, ".img")?;
        let files = LinkFiles { inputs: &inputs, output: image.as_os_str(), program: &self.output };
        let arguments = self.options.arguments(group, files);
        let clang = self.programs.find("clang", &[])?;
        Ok((Call::new(clang, arguments), image))
    }
}

impl DeviceLinker for Clang<'_> {
    type Error = io::Error;

    fn link(&mut self, group: &Group<'_>) -> io::Result<Vec<u8>> {
        let groups = std::slice::from_ref(group);
        Ok(self.link_all(groups)?.pop().unwrap_or_default())
    }

    /// Links several images at the same time. The commands are shown in the order of the plan.
    fn link_all(&mut self, groups: &[Group<'_>]) -> io::Result<Vec<Vec<u8>>> {
        let mut calls = Vec::new();
        for group in groups {
            let (call, image) = self.prepare(group)?;
            self.programs.show(&call);
            self.images.push(image.clone());
            calls.push((call, image));
        }
        if self.programs.is_dry {
            return Ok(vec![Vec::new(); groups.len()]);
        }
        let mut images = Vec::new();
        let link = |(call, image): &(Call, PathBuf)| call.run().and_then(|()| fs::read(image));
        parallel::in_order(self.jobs, &calls, link, |_, image| {
            images.push(image?);
            Ok::<_, io::Error>(())
        })?;
        Ok(images)
    }
}
