//! Device links by clang.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use byte_parts::{Parts, internal};
use offload_binary::OffloadKind;
use offload_link::{ClangOptions, DeviceCode, DeviceLinker, Group, LinkFiles};

use super::files::Files;
use super::programs::{Call, Programs, file_name};
use super::sources::AT_ONCE;
use tool_kit::file_part::file_part;
use tool_kit::parallel;
use tool_kit::payload::{OpenPayload, Payload, at};
use tool_kit::permissions::NewPermissions;

/// The linker of device code that runs `clang`.
#[derive(Debug)]
pub struct Clang<'f> {
    /// The options that clang gets.
    pub options: ClangOptions,
    /// The programs that are run.
    pub programs: Programs,
    /// Temporary files.
    pub files: &'f Files,
    /// The inputs, by number.
    pub sources: &'f [Payload],
    /// The name of the program that is linked.
    pub output: OsString,
    /// The number of links at a time.
    pub jobs: NonZeroUsize,
    /// `true` if bundles are compressed, which needs them in memory.
    pub compresses: bool,
    /// The files of the images, in the order of the plan. Images that are not in memory are inputs with these numbers.
    pub images: Vec<PathBuf>,
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
        let [triple, arch] = [target.triple(), target.arch()].map(file_part);
        let name = format!("{}-{triple}-{arch}", code.stem());
        let new = self.sources.get(code.input()).map(Payload::permissions);
        let new = NewPermissions::of_all(new);
        self.files.write(OsStr::new(&name), ".o", new, |out| match (source, code.range()) {
            (Some(source), Some(range)) => source.copy_to(range, out),
            _ => match code.bytes() {
                Some(bytes) => out.write_all(bytes),
                None => Err(io::Error::other(internal!("code of no input"))),
            },
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
        let [architecture, processor] = [target.architecture(), target.processor()].map(file_part);
        start.push(format!(".{architecture}.{processor}"));
        let inputs = group.inputs().iter().filter_map(|input| written.get(&input.code().index()));
        let inputs: Vec<_> = inputs.cloned().collect();
        let image = self.files.name(&start, ".img")?;
        let files = LinkFiles::new(&inputs, image.as_os_str()).with_program(&self.output);
        let arguments = self.options.arguments(group, files);
        let clang = self.programs.find("clang", &[])?;
        Ok((Call::new(clang, arguments), image))
    }

    /// Returns a linked image. Its bytes are read only if the container of a kind needs them.
    fn image(&self, number: usize, group: &Group<'_>, path: &Path) -> io::Result<Parts> {
        let is_needed = |kind: &OffloadKind| match *kind {
            OffloadKind::HIP => self.compresses,
            OffloadKind::OPENMP => false,
            _ => true,
        };
        let image = if group.kinds().iter().any(is_needed) {
            fs::read(path).map(Parts::from)
        } else {
            path.metadata().map(|found| Parts::from_input(number, 0..found.len()))
        };
        image.map_err(|error| at(path, &error))
    }
}

impl DeviceLinker for Clang<'_> {
    type Error = io::Error;

    fn link(&mut self, group: &Group<'_>) -> io::Result<Parts> {
        let groups = std::slice::from_ref(group);
        let image = self.link_all(groups)?.pop();
        image.ok_or_else(|| io::Error::other(internal!("a group without an image")))
    }

    /// Links several images at the same time. The commands are shown in the order of the plan.
    fn link_all(&mut self, groups: &[Group<'_>]) -> io::Result<Vec<Parts>> {
        let written = self.write_inputs(groups)?;
        let first = self.images.len();
        let mut calls = Vec::new();
        for group in groups {
            let (call, image) = self.prepare(group, &written)?;
            self.programs.show(&call);
            self.images.push(image.clone());
            calls.push((call, image));
        }
        if self.programs.is_dry {
            return Ok(vec![Parts::new(); groups.len()]);
        }
        parallel::in_order(self.jobs, &calls, |(call, _)| call.run(self.files), |_, done| done)?;
        let images = groups.iter().zip(&calls).enumerate();
        images.map(|(number, (group, (_, path)))| self.image(first + number, group, path)).collect()
    }
}
