//! The GPUs that a file serves, and why not the others.

use std::io::{self, Read, Seek};
use std::sync::Arc;

use device_select::{AnswerRecord, Device, FileSet, Selection, Support, select};
use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::fault::Fault;
use crate::options::Options;
use crate::survey::{Containers, Survey, survey};

/// The answer about a file or a package as a whole, for a GPU.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The name of the container image, of an archive with several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
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
    /// One for each GPU, for each container image of an archive with several. Where something could not be read, none is `no`.
    pub verdicts: Vec<Verdict>,
    /// Everything that is wrong.
    pub findings: Vec<Fault>,
    is_package: bool,
    gpus: Vec<Device>,
    files: Arc<Vec<Containers>>,
    images: Arc<[String]>,
    /// The answers of each file, one for each GPU.
    answers: Vec<Vec<Selection>>,
}

impl Survey {
    /// Judges whether the file has code for GPUs, by the rules of their runtimes.
    #[must_use]
    pub fn judge(&self, gpus: &[Device]) -> Verdicts {
        let listed = self.listing.findings.iter().filter(|fault| !fault.is_in_answers);
        let findings: Vec<Fault> = listed.chain(&self.findings).cloned().collect();
        let is_partial = findings.iter().any(Fault::hides_code);
        let select =
            |file: &Containers, gpu: &Device| select(&file.units, gpu).with_unread(is_partial);
        let answers = self.files.iter().map(|file| {
            let answers = gpus.iter().map(|gpu| select(file, gpu));
            answers.collect()
        });
        let (answers, files) = (answers.collect(), Arc::clone(&self.files));
        let images = Arc::clone(&self.images);
        let (gpus, is_package) = (gpus.to_vec(), self.listing.is_package);
        let verdicts = Vec::new();
        let mut found = Verdicts { verdicts, findings, is_package, gpus, files, images, answers };
        let has_code = found.files.iter().any(|file| !file.units.is_empty());
        found.verdicts = if !has_code && found.images.is_empty() {
            let nothing = Containers::default();
            let verdict = |gpu: &Device| Verdict::new(&select(&nothing, gpu), &nothing, gpu);
            found.gpus.iter().map(verdict).collect()
        } else if is_package {
            found.of_package(is_partial)
        } else {
            found.of_file()
        };
        found
    }
}

impl Verdict {
    fn new(answers: &Selection, file: &Containers, gpu: &Device) -> Self {
        Verdict {
            image: None,
            gpu: gpu.name(),
            answer: answers.support().as_str(),
            message: answers.conclusion(&file.units, gpu).text,
        }
    }
}

impl Verdicts {
    /// Returns the answers about each container, in the order of the file.
    pub fn rows(&self) -> impl Iterator<Item = AnswerRow<'_>> {
        let files = self.files.iter().zip(&self.answers);
        files.filter(|(file, answers)| self.is_shown(file, answers)).flat_map(
            move |(file, answers)| {
                (0..file.units.len()).flat_map(move |unit| {
                    self.gpus.iter().zip(answers).filter_map(move |(gpu, answers)| {
                        let answer = answers.record(&file.units, gpu, unit)?;
                        Some(AnswerRow { member: &file.member, answer })
                    })
                })
            },
        )
    }

    /// Returns whether a file has rows: a sound member without code for the vendors of the GPUs has none.
    fn is_shown(&self, file: &Containers, answers: &[Selection]) -> bool {
        let concerns = |(gpu, one): (&Device, &Selection)| one.concerns(&file.units, gpu);
        let is_fault = |one: &Fault| one.level == "error" && one.member == file.member;
        !self.is_package
            || self.gpus.iter().zip(answers).any(concerns)
            || self.findings.iter().any(is_fault)
    }

    fn of_file(&self) -> Vec<Verdict> {
        let files = self.files.iter().zip(&self.answers);
        let files = files.filter(|(file, _)| !file.units.is_empty());
        let verdicts = files.flat_map(|(file, answers)| {
            self.gpus.iter().zip(answers).map(|(gpu, answers)| Verdict::new(answers, file, gpu))
        });
        verdicts.collect()
    }

    fn of_package(&self, is_partial: bool) -> Vec<Verdict> {
        match &*self.images {
            [] => self.of_set(None, is_partial).collect(),
            names => {
                let of_image = |(number, name): (usize, &String)| {
                    let verdicts = self.of_set(Some(number), is_partial);
                    let image = |it| Verdict { image: Some(name.clone()), ..it };
                    verdicts.map(image).collect::<Vec<_>>()
                };
                names.iter().enumerate().flat_map(of_image).collect()
            }
        }
    }

    /// Judges the files of a package, or of a container image of several.
    fn of_set(&self, image: Option<usize>, is_partial: bool) -> impl Iterator<Item = Verdict> {
        let mut set = FileSet::new(self.gpus.iter().cloned()).with_package("package");
        if is_partial {
            set.add_failed("package");
        }
        for (file, answers) in self.files.iter().zip(&self.answers) {
            let gpus = self.gpus.iter().zip(answers).enumerate();
            // A member for GPUs of another vendor is not asked.
            let asked = gpus.filter(|(_, (gpu, answers))| answers.concerns(&file.units, gpu));
            let asked: Vec<_> = asked.map(|(n, (_, answers))| (n, answers)).collect();
            let here =
                file.places.iter().filter(|(number, _)| image.is_none_or(|it| it == *number));
            let paths = here.map(|(_, path)| &**path);
            let alone = (file.places.is_empty() && image.is_none()).then_some(&*file.member);
            for path in paths.chain(alone) {
                set.add(path, &file.units, asked.iter().copied());
            }
        }
        let answers = set.answers();
        let answer = |(n, gpu): (usize, &Device)| {
            let known = answers.iter().find(|answer| answer.gpu.name() == gpu.name());
            let (answer, message) = match known {
                Some(answer) => (answer.support, answer.conclusion.text.clone()),
                None => {
                    let answer = if is_partial { Support::Unknown } else { Support::No };
                    (answer, set.verdict(n).why)
                }
            };
            Verdict { image: None, gpu: gpu.name(), answer: answer.as_str(), message }
        };
        self.gpus.iter().enumerate().map(answer).collect::<Vec<_>>().into_iter()
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

/// Judges whether a file, or a package, has code for GPUs: a [`survey`] for one question.
///
/// # Errors
///
/// Errors of reading. Damaged files are findings.
pub fn judge<R: Read + Seek + Clone>(
    reader: R,
    options: &Options,
    gpus: &[Device],
) -> io::Result<Verdicts> {
    Ok(survey(reader, options)?.judge(gpus))
}
