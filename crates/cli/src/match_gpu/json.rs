//! The JSON output of `match`.

use device_select::{Answer, Condition, Device, Given, Note, Support, Unit};
use fat_object::FileFormat;
use serde::Serialize;
use target_id::OffloadKind;

/// A unit and a GPU; the fields of one JSON object, in this order.
#[derive(Debug, Serialize)]
pub(super) struct Record<'a> {
    file: &'a str,
    path: &'a [String],
    runtime: Option<&'static str>,
    gpu: String,
    /// The answer about the file as a whole.
    answer: &'static str,
    result: &'static str,
    condition: Option<&'a str>,
    counted: bool,
    note: Option<&'static str>,
    images: Vec<Row<'a>>,
}

/// An image of the unit.
#[derive(Debug, Serialize)]
struct Row<'a> {
    index: usize,
    kind: Option<&'a str>,
    triple: Option<&'a str>,
    target: Option<&'a str>,
    id: Option<&'a str>,
    image_format: Option<&'static str>,
    size: u64,
    holds_code: Option<bool>,
    given: &'static str,
    condition: Option<&'a str>,
    reason: String,
}

impl<'a> Record<'a> {
    pub(super) fn new(
        file: &'a str,
        unit: &'a Unit,
        gpu: &Device,
        (support, answer): (Support, &'a Answer),
    ) -> Self {
        let images = unit.candidates().iter().zip(&answer.images).map(|(candidate, judged)| {
            let target = candidate.target();
            Row {
                index: candidate.index(),
                kind: target.kind().map(OffloadKind::as_str),
                triple: target.triple_text(),
                target: Some(candidate.stored_id()).filter(|id| !id.is_empty()),
                id: candidate.id(),
                image_format: Some(candidate.format())
                    .filter(|format| *format != FileFormat::NotRead)
                    .map(FileFormat::as_str),
                size: candidate.size(),
                holds_code: candidate.holds_code(),
                given: judged.given.as_str(),
                condition: condition(&judged.given),
                reason: judged.reason().to_string(),
            }
        });
        Record {
            file,
            path: unit.path(),
            runtime: unit.runtime().as_str(),
            gpu: gpu.name(),
            answer: support.as_str(),
            result: answer.given.as_str(),
            condition: condition(&answer.given),
            counted: answer.counts(),
            note: answer.note.map(Note::as_str),
            images: images.collect(),
        }
    }
}

fn condition(given: &Given) -> Option<&str> {
    given.condition().map(Condition::as_str)
}
