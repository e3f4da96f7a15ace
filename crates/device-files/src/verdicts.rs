//! The GPUs that a file serves, and why not the others.

use std::io::{self, Read, Seek};

use device_select::{AnswerRecord, Collector, Device, FileSet, Selection, Unit, select};
use fat_edit::Registrable;
use fat_object::{Container, ErrorKind, Finding, Image, Visitor};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::fault::Fault;
use crate::files::{DeviceFile, FileVisitor, each_file};
use crate::options::Options;

/// The answer about a file or a package as a whole, for a GPU.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The target ID of the GPU.
    pub gpu: String,
    /// `yes`, `partly`, `unknown` or `no`.
    pub answer: &'static str,
    /// The reason, whose subject is the file.
    pub message: String,
}

/// The answer about a container: one object of `offload match --json`, with the member instead of the file.
#[derive(Debug, serde::Serialize)]
#[non_exhaustive]
pub struct AnswerRow<'a> {
    /// The member of the package; empty for the file itself.
    pub member: &'a str,
    /// The answer.
    #[serde(flatten)]
    pub answer: AnswerRecord<'a>,
}

/// The answers about a file or a package.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Verdicts {
    /// One for each GPU.
    pub verdicts: Vec<Verdict>,
    /// Everything that is wrong.
    pub findings: Vec<Fault>,
    gpus: Vec<Device>,
    files: Vec<Judged>,
}

#[derive(Debug)]
struct Judged {
    member: String,
    units: Vec<Unit>,
    /// One for each GPU.
    answers: Vec<Selection>,
}

impl Verdicts {
    /// Returns the answers about each container, in the order of the file.
    pub fn rows(&self) -> impl Iterator<Item = AnswerRow<'_>> {
        self.files.iter().flat_map(move |file| {
            (0..file.units.len()).flat_map(move |unit| {
                self.gpus.iter().zip(&file.answers).filter_map(move |(gpu, answers)| {
                    let answer = answers.record(&file.units, gpu, unit)?;
                    Some(AnswerRow { member: &file.member, answer })
                })
            })
        })
    }
}

/// `answers`, `verdicts`, `findings`.
impl Serialize for Verdicts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Verdicts", 3)?;
        fields.serialize_field("answers", &Vec::from_iter(self.rows()))?;
        fields.serialize_field("verdicts", &self.verdicts)?;
        fields.serialize_field("findings", &self.findings)?;
        fields.end()
    }
}

/// Judges whether a file, or a package, has code for GPUs.
///
/// # Errors
///
/// Errors of reading. Damaged files are findings.
pub fn judge<R: Read + Seek + Clone>(
    reader: R,
    options: &Options,
    gpus: &[Device],
) -> io::Result<Verdicts> {
    let mut judge =
        Judge { found: Verdicts { gpus: gpus.to_vec(), ..Verdicts::default() }, is_package: false };
    each_file(reader, options, &mut judge)?;
    Ok(judge.finish())
}

struct Judge {
    found: Verdicts,
    is_package: bool,
}

impl Judge {
    fn finish(self) -> Verdicts {
        let Judge { mut found, is_package } = self;
        if is_package {
            let mut set = FileSet::new(found.gpus.clone()).with_package("package");
            for file in &found.files {
                let gpus = found.gpus.iter().zip(&file.answers).enumerate();
                // A member for GPUs of another vendor is not asked.
                let asked = gpus.filter(|(_, (gpu, answers))| answers.concerns(&file.units, gpu));
                set.add(&file.member, &file.units, asked.map(|(n, (_, answers))| (n, answers)));
            }
            let verdict = |answer: device_select::SetAnswer<'_>| Verdict {
                gpu: answer.gpu.name(),
                answer: answer.support.as_str(),
                message: answer.conclusion.text,
            };
            found.verdicts = set.answers().into_iter().map(verdict).collect();
        } else if let Some(file) = found.files.first().filter(|file| !file.units.is_empty()) {
            let verdict = |(gpu, answers): (&Device, &Selection)| Verdict {
                gpu: gpu.name(),
                answer: answers.support().as_str(),
                message: answers.conclusion(&file.units, gpu).text,
            };
            found.verdicts = found.gpus.iter().zip(&file.answers).map(verdict).collect();
        }
        found
    }
}

impl FileVisitor for Judge {
    fn package(&mut self) {
        self.is_package = true;
    }

    fn file(&mut self, file: &mut DeviceFile<'_>) -> io::Result<()> {
        let options = file.options().clone().with_tables_only(true);
        let member = file.member();
        if let Some((marker, _)) = fat_edit::moved_out(file.reader())? {
            let text = format!(
                "its device code lies in kernel packs, which are not read: {}",
                marker.kernel_name()
            );
            self.found.findings.push(Fault::error(member, "file/unknown", text));
            return Ok(());
        }
        let mut units = Units { member, ..Units::default() };
        let summary = file.walk(&options, &mut units)?;
        let Units { collector, registrable, mut findings, .. } = units;
        let mut units = collector.finish();
        let registration = registrable.registration(summary.format, file.reader())?;
        let error = |fault: String| Fault::error(member, "verify/registration", fault);
        findings.extend(registration.faults().into_iter().map(error));
        for unit in &mut units {
            if unit.offset().is_some_and(|at| registration.loses(at)) {
                unit.set_lost();
            }
        }
        let is_alone = file.package_member().is_none();
        if units.is_empty() && is_alone && findings.is_empty() {
            findings.push(match summary.no_images() {
                Ok(why) => Fault::error(member, "targets/nothing", why),
                Err(why) => Fault::error(member, "file/unknown", why),
            });
        }
        self.found.findings.append(&mut findings);
        let answers = self.found.gpus.iter().map(|gpu| select(&units, gpu)).collect();
        self.found.files.push(Judged { member: member.to_owned(), units, answers });
        Ok(())
    }

    fn fault(&mut self, fault: Fault) -> io::Result<()> {
        self.found.findings.push(fault);
        Ok(())
    }
}

/// The containers of a file, and what is wrong in it.
#[derive(Default)]
struct Units<'u> {
    member: &'u str,
    collector: Collector,
    registrable: Registrable,
    findings: Vec<Fault>,
}

impl Visitor for Units<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        self.registrable.enter(container);
        self.collector.enter(container)
    }

    fn leave(&mut self) -> io::Result<()> {
        self.collector.leave()
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.collector.image(image)
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        // The answers say it of the image.
        if finding.error().kind() != ErrorKind::Disagreement {
            self.findings.push(Fault::new(self.member, finding));
        }
        Ok(())
    }
}
