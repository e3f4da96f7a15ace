//! Serialization of answers, as `offload match --json` prints them.

use alloc::string::String;
use alloc::vec::Vec;

use fat_object::FileFormat;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use target_id::OffloadKind;

use crate::answer::{Answer, Condition, Given, Judged, Note, Selection};
use crate::candidate::Candidate;
use crate::device::Device;
use crate::machine::Gpu;
use crate::needs::Need;
use crate::packs::PackAnswer;
use crate::products::Product;
use crate::shrunk::{Shrunk, Stay};
use crate::tally::CodeSizes;
use crate::unit::Unit;
use crate::vendor::Vendor;

/// `software`, `since`, `what`.
impl Serialize for Need {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Need", 3)?;
        fields.serialize_field("software", &format_args!("{}", self.software()))?;
        fields.serialize_field("since", &format_args!("{}", self.since()))?;
        fields.serialize_field("what", &format_args!("{}", self.what()))?;
        fields.end()
    }
}

/// One object of `offload gpus --json`: `name`, `vendor`, `processor`, `pci_ids`.
impl Serialize for Product {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Product", 4)?;
        fields.serialize_field("name", self.name())?;
        fields.serialize_field("vendor", &self.vendor().map(Vendor::as_str))?;
        fields.serialize_field("processor", self.processor())?;
        fields.serialize_field("pci_ids", &Vec::from_iter(self.pci_ids()))?;
        fields.end()
    }
}

/// One object of `offload gpus --native --json`: `target`, `source`.
impl Serialize for Gpu {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Gpu", 2)?;
        fields.serialize_field("target", self.id())?;
        fields.serialize_field("source", self.source())?;
        fields.end()
    }
}

/// `machine_code`, `ptx`, `lto_ir`, `other`.
impl Serialize for CodeSizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("CodeSizes", 4)?;
        fields.serialize_field("machine_code", &self.machine_code)?;
        fields.serialize_field("ptx", &self.ptx)?;
        fields.serialize_field("lto_ir", &self.lto_ir)?;
        fields.serialize_field("other", &self.other)?;
        fields.end()
    }
}

/// `reason`, `bytes`, `files`.
impl Serialize for Stay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Stay", 3)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.serialize_field("bytes", &self.bytes)?;
        fields.serialize_field("files", &self.files)?;
        fields.end()
    }
}

/// The sums of `offload shrink --json`: `size_before`, `size_after`, `kept`, `removed`, `stays`.
impl Serialize for Shrunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ([before, after], tally) = (self.sizes(), self.tally());
        let mut fields = serializer.serialize_struct("Shrunk", 6)?;
        fields.serialize_field("size_before", &before)?;
        fields.serialize_field("size_after", &after)?;
        fields.serialize_field("kept", &tally.kept)?;
        fields.serialize_field("kept_anyway", &tally.kept_anyway)?;
        fields.serialize_field("removed", &tally.removed)?;
        fields.serialize_field("stays", &self.reasons())?;
        fields.end()
    }
}

/// A unit with its answer: one object of `offload match --json`, without the name of the file.
#[derive(Debug)]
pub struct AnswerRecord<'a> {
    unit: &'a Unit,
    device: &'a Device,
    selection: &'a Selection,
    answer: &'a Answer,
}

impl Selection {
    /// Returns the record of a unit, by its number; `units` and `device` are those of the question.
    #[must_use]
    pub fn record<'a>(
        &'a self,
        units: &'a [Unit],
        device: &'a Device,
        unit: usize,
    ) -> Option<AnswerRecord<'a>> {
        let (unit, answer) = units.get(unit).zip(self.answers().get(unit))?;
        Some(AnswerRecord { unit, device, selection: self, answer })
    }
}

/// `path`, `runtime`, `gpu`, `answer` about the file as a whole, `result`, `condition`, `counted`, `note`, `images`.
impl Serialize for AnswerRecord<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let AnswerRecord { unit, device, selection, answer } = self;
        let images: Vec<_> = unit
            .candidates()
            .iter()
            .zip(&answer.images)
            .map(|(one, judged)| Row(one, judged))
            .collect();
        let mut fields = serializer.serialize_struct("AnswerRecord", 9)?;
        fields.serialize_field("path", unit.path())?;
        fields.serialize_field("runtime", &unit.runtime().as_str())?;
        fields.serialize_field("gpu", &device.name())?;
        fields.serialize_field("answer", selection.support().as_str())?;
        fields.serialize_field("result", answer.given.as_str())?;
        fields.serialize_field("condition", &condition(&answer.given))?;
        fields.serialize_field("counted", &answer.counts())?;
        fields.serialize_field("note", &answer.note.map(Note::as_str))?;
        fields.serialize_field("images", &images)?;
        fields.end()
    }
}

/// An image of a unit, with its answer.
struct Row<'a>(&'a Candidate, &'a Judged);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Row(candidate, judged) = self;
        let target = candidate.target();
        let id = Some(candidate.stored_id()).filter(|id| !id.is_empty());
        let format = Some(candidate.format()).filter(|format| *format != FileFormat::NotRead);
        let mut fields = serializer.serialize_struct("Candidate", 11)?;
        fields.serialize_field("index", &candidate.index())?;
        fields.serialize_field("kind", &target.kind().map(OffloadKind::as_str))?;
        fields.serialize_field("triple", &target.triple_text())?;
        fields.serialize_field("target", &id)?;
        fields.serialize_field("id", &candidate.id())?;
        fields.serialize_field("image_format", &format.map(FileFormat::as_str))?;
        fields.serialize_field("size", &candidate.size())?;
        fields.serialize_field("holds_code", &candidate.holds_code())?;
        fields.serialize_field("given", judged.given.as_str())?;
        fields.serialize_field("condition", &condition(&judged.given))?;
        fields.serialize_field("reason", &format_args!("{}", judged.reason()))?;
        fields.end()
    }
}

/// The answer for a library whose code lies in kernel packs: one object of `offload match --json`, without the name of the file.
#[derive(Debug)]
pub struct PackRecord<'a, P> {
    answer: &'a PackAnswer<P>,
    tried: Vec<Tried<'a>>,
}

#[derive(Debug)]
struct Tried<'a>(String, &'a str);

impl<P: Clone + Ord> PackAnswer<P> {
    /// Returns the record of the answer, with paths as `show` writes them.
    #[must_use]
    pub fn record(&self, show: impl Fn(&P) -> String) -> PackRecord<'_, P> {
        let tried = self.tried().iter().map(|(path, result)| Tried(show(path), result));
        PackRecord { answer: self, tried: tried.collect() }
    }
}

/// `gpu`, `served`, `conditions`, `wrappers`, `missing`, `early_loaders`, `tried`.
impl<P: Clone + Ord> Serialize for PackRecord<'_, P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let PackRecord { answer, tried } = self;
        let mut fields = serializer.serialize_struct("PackRecord", 7)?;
        fields.serialize_field("gpu", answer.gpu())?;
        fields.serialize_field("served", &answer.is_served())?;
        fields.serialize_field("conditions", answer.conditions())?;
        fields.serialize_field("wrappers", &answer.wrappers())?;
        fields.serialize_field("missing", answer.missing())?;
        fields.serialize_field("early_loaders", &!answer.is_later())?;
        fields.serialize_field("tried", tried)?;
        fields.end()
    }
}

impl Serialize for Tried<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Tried", 2)?;
        fields.serialize_field("path", &self.0)?;
        fields.serialize_field("result", self.1)?;
        fields.end()
    }
}

fn condition(given: &Given) -> Option<&str> {
    given.condition().map(Condition::as_str)
}
