//! The rules of `--fail-on`.

use device_code::{KernelRule, Measure, Version};

use super::collect::Collected;
use tool_kit::report;

/// The rules of `--fail-on`, with what they hit.
pub(super) struct Rules<'a> {
    rules: Vec<Hits<'a>>,
    mangled: bool,
    kernels: usize,
    has_cubins: bool,
}

struct Hits<'a> {
    rule: &'a KernelRule,
    /// `true` if a kernel has the number.
    is_stored: bool,
    offenders: Vec<String>,
}

impl<'a> Rules<'a> {
    pub(super) fn new(rules: impl IntoIterator<Item = &'a KernelRule>, mangled: bool) -> Self {
        let rules = rules.into_iter();
        let rules = rules.map(|rule| Hits { rule, is_stored: false, offenders: Vec::new() });
        Rules { rules: rules.collect(), mangled, kernels: 0, has_cubins: false }
    }

    /// Applies rules to each kernel of a file.
    pub(super) fn add(&mut self, file: &str, collected: &Collected) {
        self.kernels += collected.rows.len();
        self.has_cubins |= collected
            .images
            .iter()
            .any(|image| matches!(image.version, Some(Version::CubinAbi(_))));
        for hits in self.rules.iter_mut().filter(|hits| !hits.rule.is_relative()) {
            let measure = hits.rule.measure();
            for row in collected.distinct() {
                let Some(is_hit) = row.hits(hits.rule) else { continue };
                hits.is_stored = true;
                if is_hit {
                    let (target, name, value) =
                        (collected.target(row), row.name(self.mangled), row.text(measure));
                    hits.offenders.push(format!("{file}: {target}: {name}: {measure} {value}"));
                }
            }
        }
    }

    /// Applies relative rules to numbers of which `what` tells where they are from.
    pub(super) fn add_change(&mut self, measure: Measure, old: u64, new: u64, what: &str) {
        let relative = self.rules.iter_mut().filter(|hits| hits.rule.is_relative());
        for hits in relative.filter(|hits| hits.rule.measure() == measure) {
            hits.is_stored = true;
            if hits.rule.hits_change(old, new) {
                hits.offenders.push(format!("{what}: {measure} {old} -> {new}"));
            }
        }
    }

    /// Reports what the rules hit; returns `true` if there is anything.
    pub(super) fn report(&self) -> bool {
        for Hits { rule, is_stored, offenders } in &self.rules {
            if !is_stored {
                report::error(&format_args!("--fail-on {rule}: {}", self.not_stored(rule)));
            }
            for offender in offenders {
                report::error(&format_args!("--fail-on {rule}: {offender}"));
            }
        }
        self.rules.iter().any(|hits| !hits.is_stored || !hits.offenders.is_empty())
    }

    /// Returns why a rule could not be applied.
    fn not_stored(&self, rule: &KernelRule) -> String {
        let measure = rule.measure();
        if self.kernels == 0 {
            return "no kernel is selected".to_owned();
        }
        if rule.is_relative() {
            return format!("nothing that is in both files stores {measure}");
        }
        let is_spills =
            matches!(measure, Measure::Spills | Measure::VectorSpills | Measure::ScalarSpills);
        let instead = match is_spills && self.has_cubins {
            true => "; a cubin stores frame, which holds local arrays as well",
            false => "",
        };
        format!("no selected kernel stores {measure}{instead}")
    }
}
