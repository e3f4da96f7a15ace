//! Answers about GPUs: the image that each container gives one, and the verdicts about files, packages and directories.

mod together;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use device_select::{Device, FileSet, PackAnswer, Runtime, Selection, Support, Vendor, few};
use fat_object::{FileFormat, Summary};
use kpack::Toc;

use together::Together;
pub use together::{Matcher, PackFile, Reporter, VariantAnswer};
use tool_inputs::complaint::{Complaint, violation};
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::limits::Limits;
use tool_inputs::package::HEADS;
use tool_inputs::split_library::Host;
use tool_inputs::units::{FileUnits, Walk};
use tool_inputs::variants::{self, InstalledVariant};
use tool_kit::finding::Finding;
use tool_kit::looked::{Looked, Seen};
use tool_kit::report;

/// Returns the words for the code that a question about GPUs seeks: `code for gfx1100, sm_90`.
pub fn sought(gpus: &[Device]) -> String {
    format!("code for {}", few(gpus.iter().map(Device::name)))
}

/// Prepares inputs for a question about GPUs: container images are sets of files.
pub fn prepared(inputs: Inputs, gpus: &[Device]) -> Inputs {
    inputs.merging().seeking(sought(gpus))
}

/// Answers a question about [prepared](prepared()) inputs. Returns the look, whether an answer is one for exit status 1, and who took
/// the answers.
///
/// # Errors
///
/// Errors of printing.
pub fn answer<R: Reporter>(
    question: &Question<'_>,
    inputs: &Inputs,
    reporter: R,
) -> io::Result<(Looked, bool, R)> {
    let mut matcher = Matcher::new(question, inputs, reporter);
    let (check, limits) = (question.check, question.limits);
    let read = |file: &Input, threads| {
        Read::of(question, file, |file| Walk::through(file, (check, limits), threads))
    };
    let looked =
        inputs.look((limits, HEADS), "matching", read, |input, read| matcher.take(input, read))?;
    let (fails, reporter) = matcher.end()?;
    Ok((looked, fails, reporter))
}

/// Returns what is wrong with the declarations of variants that are installed in environments among `arguments`, and in container
/// images of `inputs`, which were looked into.
pub fn declared(arguments: &[PathBuf], inputs: &Inputs, gpus: &[Device]) -> Vec<Finding> {
    let (distributions, faults) = variants::distributions_in(arguments);
    let faults = faults.iter().map(|fault| Finding::error("file/error", "", fault));
    let installed = distributions.iter().filter_map(|one| InstalledVariant::of(one, gpus));
    let of_images = inputs.take_image_variants();
    let of_images = of_images.iter().map(|one| InstalledVariant::of_image(one, gpus));
    let found = installed.chain(of_images).flat_map(InstalledVariant::into_found).map(violation);
    faults.chain(found).collect()
}

/// The answer about a library whose device code is in kernel packs, for a GPU.
pub type SplitAnswer = PackAnswer<PathBuf>;

/// A question about files.
#[derive(Debug)]
pub struct Question<'a> {
    /// The GPUs.
    pub gpus: Vec<Device>,
    /// Only containers of these kinds; of all kinds if there are none.
    pub kinds: &'a [Runtime],
    /// `true` if images are compared with the names of their entries.
    pub check: bool,
    /// `true` if some of the code is not enough.
    pub is_strict: bool,
    /// The bounds.
    pub limits: &'a Limits,
}

impl Question<'_> {
    /// Returns whether an answer is one for exit status 1.
    pub fn fails(&self, support: Support) -> bool {
        match support {
            Support::Yes => false,
            Support::Partly => self.is_strict,
            Support::Unknown | Support::No => true,
        }
    }
}

/// The result of reading a file.
#[derive(Debug)]
pub enum Read {
    /// A file, unless it could not be read, and what is wrong with it.
    File(Option<File>, Vec<Complaint>),
    /// A library whose device code is in kernel packs, with an answer for each GPU of AMD's.
    Split(Arc<Host>, Vec<SplitAnswer>),
    /// A kernel pack of such a library, which speaks for it.
    Passed,
    /// Such a library in a package.
    Member(Arc<Host>),
    /// Such a library on a server, or of a program.
    OffDisk(Arc<Host>),
    /// A kernel pack in a package.
    Pack(Box<PackFile>),
}

impl Read {
    /// Reads a file; `walked` walks through it, if that is needed.
    pub fn of<'f>(
        question: &Question<'_>,
        file: &'f Input,
        walked: impl FnOnce(&'f Input) -> (Walk<'f>, io::Result<Summary>),
    ) -> Self {
        if file.is_pack_of_library() {
            return Read::Passed;
        }
        // Rests of device code may be left in a split library: no loader looks there.
        match file.split_library() {
            Err(text) => {
                Read::File(None, vec![Complaint::error(file.name(), "verify/kernel-packs", text)])
            }
            Ok(Some(host)) if file.is_in_package() => Read::Member(host),
            Ok(Some(host)) if file.is_off_disk() => Read::OffDisk(host),
            Ok(Some(host)) => {
                let gpus = question.gpus.iter();
                let gpus = gpus.filter(|gpu| file.is_named() || gpu.vendor() == Vendor::Amd);
                let answers = gpus.map(|gpu| host.answer(gpu)).collect();
                Read::Split(host, answers)
            }
            Ok(None) => {
                let (found, mut complaints) = File::of(question, file, walked(file));
                let is_pack = |found: &File| found.is_pack_in(file) || found.is_pack_off_disk(file);
                let table = found.as_ref().filter(|found| is_pack(found));
                let table = match table.map(|_| file.pack_table(question.limits.max_input)) {
                    Some(Err(error)) => {
                        let reason = report::reason(&error);
                        complaints.push(Complaint::error(file.name(), "file/error", reason));
                        return Read::File(None, complaints);
                    }
                    Some(Ok(table)) => table,
                    None => None,
                };
                match found {
                    Some(found) if file.is_off_disk() => {
                        Read::File(Some(File { pack: table, ..found }), complaints)
                    }
                    Some(found) if found.is_pack_in(file) => match table {
                        Some((path, toc)) => {
                            let mut input = file.clone();
                            input.take_bytes();
                            Read::Pack(Box::new(PackFile { input, file: found, toc, path }))
                        }
                        None => Read::File(Some(found), complaints),
                    },
                    found => Read::File(found, complaints),
                }
            }
        }
    }
}

/// A file and what becomes of its units.
#[derive(Debug)]
pub struct File {
    /// Its units, and what is wrong with it.
    pub read: FileUnits,
    /// One for each GPU of the question.
    pub answers: Vec<Selection>,
    /// The table of a kernel pack on a server, or of a program, with its place.
    pack: Option<(PathBuf, Arc<Toc>)>,
}

impl File {
    /// Completes what a walk found.
    fn of(
        question: &Question<'_>,
        file: &Input,
        walked: (Walk<'_>, io::Result<Summary>),
    ) -> (Option<File>, Vec<Complaint>) {
        let (read, complaints) = FileUnits::of(file, (question.kinds, question.limits), walked);
        (read.map(|read| File::with_answers(question, read)), complaints)
    }

    /// Returns a file that was read, with the answers for the GPUs.
    pub fn with_answers(question: &Question<'_>, read: FileUnits) -> Self {
        let gpus = question.gpus.iter();
        let select = |gpu| device_select::select(&read.units, gpu).with_unread(read.is_partial);
        let answers = gpus.map(select).collect();
        File { read, answers, pack: None }
    }

    /// Returns what came of a file; an error if nothing is worth a word.
    fn seen(together: &Together<'_>, input: &Input, file: Option<&File>) -> Result<Seen, Seen> {
        let question = together.question;
        let Some(file) = file else { return Ok(Seen::Faults) };
        let mut asked = file.asked(question, input).map(|(_, answers)| answers).peekable();
        if !input.is_named() && !file.is_damaged() && asked.peek().is_none() {
            return Err(input.nothing(&file.read.summary));
        }
        let fails = |answers: &Selection| question.fails(answers.support());
        let is_alone = !together.is_about(input);
        Ok(Seen::faults(!file.is_sound() || is_alone && asked.any(fails)))
    }

    /// Adds it to others, under a name.
    pub fn add_to(&self, set: &mut FileSet, name: &str, question: &Question<'_>, input: &Input) {
        set.add(name, &self.read.units, self.asked(question, input));
    }

    /// Returns the numbers of the GPUs that the file is to have code for, with the answers. Directories have files for GPUs of several
    /// vendors: each is only asked about GPUs of its own. LLVM bitcode there is a library for compilers.
    pub fn asked<'a>(
        &'a self,
        question: &'a Question<'_>,
        input: &'a Input,
    ) -> impl Iterator<Item = (usize, &'a Selection)> {
        let is_pack = self.read.summary.format == FileFormat::Kpack;
        let gpus = question.gpus.iter().zip(&self.answers).enumerate();
        let asked = gpus.filter(move |(_, (gpu, answers))| {
            input.is_named()
                || answers.concerns(&self.read.units, gpu)
                    && (!is_pack
                        || input.package().is_some()
                        || answers.support() < Support::Unknown)
        });
        asked.map(|(n, (_, answers))| (n, answers))
    }

    /// Returns whether it is a kernel pack in a package, and in order.
    fn is_pack_in(&self, input: &Input) -> bool {
        let is_pack = self.read.summary.format == FileFormat::Kpack;
        is_pack && input.is_in_package() && !input.is_named() && !self.is_damaged()
    }

    /// Returns whether it is a kernel pack on a server, or of a program, and in order.
    fn is_pack_off_disk(&self, input: &Input) -> bool {
        let is_pack = self.read.summary.format == FileFormat::Kpack;
        is_pack && input.is_off_disk() && !self.is_damaged()
    }

    /// Returns whether something is wrong with its containers.
    pub fn is_damaged(&self) -> bool {
        self.read.is_damaged()
    }

    /// Returns whether there is device code, and nothing is wrong with its containers.
    fn is_sound(&self) -> bool {
        !self.is_damaged() && !self.read.units.is_empty()
    }
}
