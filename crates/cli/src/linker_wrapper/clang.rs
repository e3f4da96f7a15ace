//! Device links by clang.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use offload_link::{ClangOptions, DeviceCode, DeviceLinker, Group, LinkFiles};

use super::files::Files;
use super::programs::{Call, Programs, file_name};
use super::sources::AT_ONCE;
use crate::parallel;
use crate::payload::{OpenPayload, Payload};

/// The linker of device code that runs `clang`.
#[derive(Debug)]
pub(crate) struct Clang<'f> {
    pub(crate) options: ClangOptions,
    pub(crate) programs: Programs,
    pub(crate) files: &'f Files,
    /// The inputs, by number.
    pub(crate) sources: &'f [Payload],
    /// The name of the program that is linked.
    pub(crate) output: OsString,
    pub(crate) jobs: NonZeroUsize,
    /// The files of the images, in the order of the plan.
    pub(crate) images: Vec<PathBuf>,
}

impl Clang<'_> {
    /// Writes the inputs of all images to files, each once, and returns these by the index of the code.
    fn write_inputs(&self, groups: &[Group<'_>]) -> io::Result<BTreeMap<usize, OsString>> {
        let codes = groups.iter().flat_map(Group::inputs).map(|input| input.code());
        let codes: BTreeMap<_, _> = codes.map(|code| (code.index(), code)).collect();
        let codes: Vec<_> = codes.into_values().collect();
        let of_one_file: Vec<_> = codes.chunk_by(|a, b| a.input() == b.input()).collect();
        let jobs: Vec<_> = of_one_file.chunks(AT_ONCE).collect();
        let threads = self.files.threads(self.jobs);
        let mut paths = BTreeMap::new();
        let write = |files: &&[&[&DeviceCode<'_>]]| {
            let written = files.iter().map(|codes| self.write_codes(codes));
            written.collect::<io::Result<Vec<_>>>()
        };
        parallel::in_order(threads, &jobs, write, |files, written| {
            let codes = files.iter().copied().flatten().map(|code| code.index());
            paths.extend(codes.zip(written?.into_iter().flatten()));
            Ok::<_, io::Error>(())
        })?;
        Ok(paths)
    }

    /// Writes the code of an input.
    fn write_codes(&self, codes: &[&DeviceCode<'_>]) -> io::Result<Vec<OsString>> {
        let is_file = |code: &&DeviceCode<'_>| code.range().is_some() && !self.programs.is_dry;
        let source = codes.iter().find(|code| is_file(code));
        match source.and_then(|code| self.sources.get(code.input())) {
            Some(source) => source.read_parts(|source| {
                codes.iter().map(|code| self.write_code(code, Some(source))).collect()
            }),
            None => codes.iter().map(|code| self.write_code(code, None)).collect(),
        }
    }

    fn write_code(
        &self,
        code: &DeviceCode<'_>,
        source: Option<&mut OpenPayload<'_>>,
    ) -> io::Result<OsString> {
        let target = code.target();
        let name = format!("{}-{}-{}", code.stem(), target.triple(), target.arch());
        self.files.write(OsStr::new(&name), ".o", |out| match (source, code.range()) {
            (Some(source), Some(range)) => source.copy_to(range, out),
            _ => out.write_all(code.bytes().unwrap_or_default()),
        })
    }

    /// Returns the call that links an image.
    fn prepare(
        &self,
        group: &Group<'_>,
        written: &BTreeMap<usize, OsString>,
    ) -> io::Result<(Call, PathBuf)> {
        let target = group.target();
        let mut start = file_name(&self.output);
        start.push(format!(".{}.{}", target.architecture(), target.processor()));
        let inputs = group.inputs().iter().filter_map(|input| written.get(&input.code().index()));
        let inputs: Vec<_> = inputs.cloned().collect();
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
        let written = self.write_inputs(groups)?;
        let mut calls = Vec::new();
        for group in groups {
            let (call, image) = self.prepare(group, &written)?;
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
