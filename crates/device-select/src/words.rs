//! Answers in words.

use alloc::borrow::{Cow, ToOwned};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::answer::{Answer, Condition, Given, Note, Selection};
use crate::candidate::Candidate;
use crate::device::Device;
use crate::few::{each_once, few};
use crate::needs::{Need, Software};
use crate::overrides::Override;
use crate::support::{Support, of_part};
use crate::unit::Unit;

/// The quality of an answer.
///
/// Exhaustive: an answer is good, bad, or between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All is there.
    Good,
    /// Something is there, on a condition or in part.
    Mixed,
    /// Nothing is there, or not what is needed.
    Bad,
}

/// An answer in words, whose subject is the file, or what else was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Conclusion {
    /// Its quality.
    pub tone: Tone,
    /// The words: `has code for gfx1100`.
    pub text: String,
}

impl Conclusion {
    pub(crate) fn new(tone: Tone, text: String) -> Self {
        Conclusion { tone, text }
    }

    /// Returns the conclusion about the whole, by this one about the part that was read.
    pub(crate) fn of_part(self) -> Self {
        Conclusion { text: of_part(&self.text), ..self }
    }
}

impl Selection {
    /// Returns the answer in words: `2 of 3 containers have code for gfx1100; section:.hip_fatbin/bundle:1 has none: built for gfx906`.
    /// `units` and `gpu` are those of the question.
    ///
    /// ```
    /// use device_select::{Device, Tone, select, units};
    ///
    /// let units = units(std::fs::File::open("../../examples/data/hip.o").unwrap()).unwrap();
    /// let gpu = Device::parse("gfx1031")?;
    /// let conclusion = select(&units, &gpu).conclusion(&units, &gpu);
    /// assert_eq!(conclusion.tone, Tone::Bad);
    /// assert!(conclusion.text.starts_with("has no code for gfx1031: built for gfx"));
    /// # Ok::<(), device_select::NotADevice>(())
    /// ```
    #[must_use]
    pub fn conclusion(&self, units: &[Unit], gpu: &Device) -> Conclusion {
        let conclusion = self.conclusion_of_read(units, gpu);
        // The only way to another answer.
        if self.support() == self.of_read() { conclusion } else { conclusion.of_part() }
    }

    fn conclusion_of_read(&self, units: &[Unit], gpu: &Device) -> Conclusion {
        if units.is_empty() {
            return Conclusion::new(Tone::Bad, "has no device code".to_owned());
        }
        let name = gpu.name();
        let all = || units.iter().zip(self.answers());
        let left_out = |note| all().filter(move |(_, answer)| answer.note == Some(note));
        let counted: Vec<_> = all().filter(|(_, answer)| answer.counts()).collect();
        let lacks = counted.iter().filter(|(_, answer)| answer.lacks_code());
        let missing: Vec<&Unit> = lacks.map(|(unit, _)| *unit).collect();
        let elsewhere: Vec<&Unit> = left_out(Note::OtherGpus).map(|(unit, _)| unit).collect();
        let containers = match left_out(Note::NoKernels).next() {
            Some(_) if counted.is_empty() => {
                return Conclusion::new(Tone::Bad, format!("has no kernels for {name}"));
            }
            Some(_) => "containers with kernels",
            None if counted.iter().all(|(unit, _)| unit.module().is_some()) => "modules",
            None => "containers",
        };
        let conditions: Vec<&str> = (counted.iter())
            .filter_map(|(_, answer)| answer.given.condition().map(Condition::as_str))
            .collect();
        let all = counted.len() + elsewhere.len();
        let without = missing.len() + elsewhere.len();
        let tone = match (self.of_read(), &conditions[..]) {
            (Support::Yes, []) if elsewhere.is_empty() => Tone::Good,
            (Support::Yes | Support::Partly, _) => Tone::Mixed,
            (Support::Unknown | Support::No, _) => Tone::Bad,
        };
        let is_unlinked = |(_, answer): &(_, &Answer)| answer.note == Some(Note::Unlinked);
        if all == without && counted.iter().any(is_unlinked) {
            let words =
                format!("has code for {name} that is not linked: it needs the offload link step");
            return Conclusion::new(tone, words);
        }
        let is_lost = |(_, answer): &&(_, &Answer)| answer.note == Some(Note::Lost);
        let lost = counted.iter().filter(is_lost).count();
        if lost > 0 && lost == missing.len() {
            let of = if lost == all {
                String::new()
            } else {
                format!(" in {lost} of {all} {containers}")
            };
            let words =
                format!("has code for {name}{of} that no runtime finds: no wrapper leads to it");
            return Conclusion::new(tone, words);
        }
        if self.of_read() == Support::Unknown {
            let words = format!("unknown for {name}: LTO-IR only, which a linker compiles");
            return Conclusion::new(tone, words);
        }
        let needs: Option<Vec<_>> = counted
            .iter()
            .filter(|(_, answer)| answer.lacks_code())
            .map(|(_, answer)| answer.need())
            .collect();
        if let Some(need) = needs.and_then(|needs| needs.into_iter().max()) {
            let words = format!("has code for {name} that needs {need}");
            return Conclusion::new(tone, words);
        }
        let mut words = match (all, without) {
            (1, 0) => format!("has code for {name}{}", instead(&counted, &name)),
            (2, 0) => format!("both {containers} have code for {name}"),
            (all, 0) => format!("all {all} {containers} have code for {name}"),
            (all, without) if all == without => format!("has no code for {name}"),
            (all, without) => {
                let have = if all - without == 1 { "has" } else { "have" };
                let partly = if self.of_read() == Support::Partly { "partly: " } else { "" };
                format!("{partly}{} of {all} {containers} {have} code for {name}", all - without)
            }
        };
        if let Some(condition) = conditions.first() {
            let same = conditions.iter().all(|other| other == condition);
            words.push_str(&match (all - without, same) {
                (1, _) => format!(", if {condition}"),
                (n, true) if n == conditions.len() => format!(", if {condition}"),
                (_, true) => format!(", {} of them if {condition}", conditions.len()),
                (_, false) => format!(", {} of them on a condition", conditions.len()),
            });
        }
        if all == without {
            words.push_str(&built_for(&missing, gpu));
        } else {
            words.push_str(&lacking(&missing));
            words.push_str(&only(&elsewhere));
        }
        Conclusion::new(tone, words)
    }

    /// Returns a suggestion in words: a processor of the family of the GPU for which there is code, if the GPU has no
    /// code.
    #[must_use]
    pub fn hint(&self, units: &[Unit], gpu: &Device) -> Option<String> {
        let setting = Override::of(gpu)?;
        let mut missing =
            units.iter().zip(self.answers()).filter(|(_, answer)| answer.lacks_code()).peekable();
        missing.peek()?;
        let (base, version) = (setting.processor(), setting.version());
        let has_it =
            |unit: &Unit| unit.candidates().iter().any(|image| image.target().id() == base);
        missing.all(|(unit, _)| has_it(unit)).then(|| {
            let name = gpu.id().processor();
            let likeness = match base {
                "gfx1030" => format!("{name} has the instructions of {base}"),
                _ => format!("{name} is of the family of {base}"),
            };
            format!(
                "{likeness}, for which there is code; on Linux some run that with HSA_OVERRIDE_GFX_VERSION={version}, which AMD does \
                 not support"
            )
        })
    }

    /// Returns what the images need that the device gets: for each software the latest version, except where the version that is
    /// installed is known, and what all maintained releases have.
    #[must_use]
    pub fn needs(&self, units: &[Unit], gpu: &Device) -> Vec<Need> {
        let judged = units.iter().zip(self.answers());
        let judged = judged.flat_map(|(unit, answer)| unit.candidates().iter().zip(&answer.images));
        let given = judged.filter(|(_, judged)| judged.given != Given::No);
        let needs = given.flat_map(|(candidate, _)| candidate.needs());
        let needs = needs.filter(|need| !need.is_old() && !gpu.has_version_of(need.software()));
        // The needs of the latest version are enough for the others.
        let mut latest: BTreeMap<Software, Need> = BTreeMap::new();
        for need in needs {
            let known = latest.entry(need.software()).or_insert(*need);
            if known.since() < need.since() {
                *known = *need;
            }
        }
        latest.into_values().collect()
    }
}

impl Answer {
    /// Returns the answer in a few words, for a table: the images of the unit that the device loads, or why there is none.
    #[must_use]
    pub fn in_short(&self, unit: &Unit) -> String {
        let images = unit.candidates().iter().zip(&self.images);
        let given = images.filter_map(|(candidate, judged)| match &judged.given {
            Given::Yes => Some(candidate.label().to_owned()),
            Given::If(condition) => {
                Some(format!("{} if {}", candidate.label(), condition.as_str()))
            }
            Given::No => None,
        });
        let given: Vec<String> = given.collect();
        match &self.given {
            _ if self.note == Some(Note::NoKernels) => "no kernels".to_owned(),
            _ if self.note == Some(Note::Unlinked) => "not linked".to_owned(),
            _ if !given.is_empty() => given.join(", "),
            Given::Yes => "linked when loaded".to_owned(),
            Given::If(condition) => format!("if {}", condition.as_str()),
            Given::No if self.counts() => "none".to_owned(),
            Given::No => "-".to_owned(),
        }
    }
}

/// Returns the image that is given, if it is not called like the GPU.
fn instead(counted: &[(&Unit, &Answer)], name: &str) -> String {
    let Some((unit, answer)) = counted.first() else { return String::new() };
    let mut judged = unit.candidates().iter().zip(&answer.images);
    let given =
        judged.find(|(_, judged)| judged.given == Given::Yes).map(|(candidate, _)| candidate);
    match given.map(Candidate::label) {
        Some(label) if label != name => format!(" ({label})"),
        _ => String::new(),
    }
}

/// Most lists of containers without code that a conclusion names.
const MOST_NAMED: usize = 3;

/// Groups units by their lists of targets: the first unit of each list, and the number of the others. Returns at most
/// as many lists as a conclusion names.
fn by_labels<'u>(units: &[&'u Unit]) -> Vec<(Vec<Cow<'u, str>>, &'u Unit, usize)> {
    let mut groups: Vec<(Vec<Cow<'_, str>>, &Unit, usize)> = Vec::new();
    for unit in units {
        let labels = unit.built_for();
        let is_full = groups.len() >= MOST_NAMED;
        match groups.iter_mut().find(|(other, ..)| *other == labels) {
            Some((_, _, more)) => *more += 1,
            None if is_full => {}
            None => groups.push((labels, unit, 0)),
        }
    }
    groups
}

/// Returns a text like `; 9 are for sm_120a only`.
fn only(elsewhere: &[&Unit]) -> String {
    let mut words = String::new();
    let mut named = 0;
    for (labels, _, more) in by_labels(elsewhere) {
        let are = if more == 0 { "is" } else { "are" };
        words.push_str(&format!("; {} {are} for {} only", more + 1, few(&labels)));
        named += more + 1;
    }
    if named < elsewhere.len() {
        words.push_str(&format!("; {} more are for other GPUs only", elsewhere.len() - named));
    }
    words
}

fn lacking(missing: &[&Unit]) -> String {
    let groups = by_labels(missing);
    let mut words = String::new();
    let mut named = 0;
    for (labels, first, more) in &groups {
        named += 1 + more;
        let place = first.place();
        let who = match more {
            0 if first.is_loose() => format!("{place} have none"),
            0 => format!("{place} has none"),
            n => format!("{place} and {n} more have none"),
        };
        words.push_str(&format!("; {who}: {}", listed(labels)));
    }
    if named < missing.len() {
        words.push_str(&format!("; {} more have none", missing.len() - named));
    }
    words
}

fn built_for(missing: &[&Unit], gpu: &Device) -> String {
    let labels = each_once(missing.iter().flat_map(|unit| unit.built_for()));
    let mut vendors = missing.iter().map(|unit| unit.vendor());
    match vendors.next() {
        Some(Some(vendor)) if vendor != gpu.vendor() && vendors.all(|v| v == Some(vendor)) => {
            format!(": built for {} GPUs, {}", vendor.as_str(), few(&labels))
        }
        _ => format!(": {}", listed(&labels)),
    }
}

fn listed(labels: &[Cow<'_, str>]) -> String {
    match labels {
        [] => "holds host code only".to_owned(),
        labels => format!("built for {}", few(labels)),
    }
}
