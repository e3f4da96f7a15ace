//! Rules that are applied to all kernels of files.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::difference::{KernelPair, KernelTotals};
use super::list::KernelList;
use super::{KernelRule, Measure, Version};

/// Rules, with what they hit.
///
/// ```
/// use device_code::{KernelCollector, KernelGate, kernels};
///
/// let ptx = b".version 8.0\n.target sm_90\n.entry scale() .maxntid 256 { ret; }\n";
/// let mut collector = KernelCollector::default();
/// collector.add("sm_90", 0, ptx.len() as u64, &kernels(ptx).ok_or("no image")?);
/// let rules = ["workgroup>=256".parse()?, "registers>64".parse()?];
/// let mut gate = KernelGate::new(&rules, false);
/// gate.check("foo.ptx", &collector.finish());
/// let faults: Vec<String> = gate.faults().iter().map(ToString::to_string).collect();
/// assert_eq!(
///     faults,
///     [
///         "workgroup>=256: foo.ptx: sm_90: scale: workgroup 256",
///         "registers>64: no selected kernel stores registers",
///     ]
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KernelGate<'r> {
    rules: Vec<Hits<'r>>,
    mangled: bool,
    kernels: usize,
    has_cubins: bool,
}

/// A hit of a rule, or the reason why a rule could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GateFault {
    /// The rule.
    pub rule: KernelRule,
    /// The file of the kernel; `None` if the rule compares files.
    pub file: Option<String>,
    /// Target, kernel and number, or the reason.
    pub text: String,
    /// `false` if the rule could not be applied.
    pub is_hit: bool,
}

impl GateFault {
    /// Returns a code for machine-readable output: `kernel/spill`, `kernel/rule`, or `kernel/not-stored` for a rule that could
    /// not be applied.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self.rule.measure() {
            _ if !self.is_hit => "kernel/not-stored",
            measure if is_spills(measure) => "kernel/spill",
            _ => "kernel/rule",
        }
    }
}

impl fmt::Display for GateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.rule)?;
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        f.write_str(&self.text)
    }
}

#[derive(Debug)]
struct Hits<'r> {
    rule: &'r KernelRule,
    /// Patterns of the names of kernels that the rule does not hit.
    allowed: &'r [String],
    /// `true` if a kernel has the number.
    is_stored: bool,
    offenders: Vec<(Option<String>, String)>,
}

impl<'r> KernelGate<'r> {
    /// Makes a gate of rules. It says names as stored if `mangled` is set.
    #[must_use]
    pub fn new(rules: &'r [KernelRule], mangled: bool) -> Self {
        let rules = rules.iter();
        let rules =
            rules.map(|rule| Hits { rule, allowed: &[], is_stored: false, offenders: Vec::new() });
        KernelGate { rules: rules.collect(), mangled, kernels: 0, has_cubins: false }
    }

    /// Adds a rule that does not hit kernels whose names match one of these patterns (`*` and `?`).
    #[must_use]
    pub fn with_exceptions(mut self, rule: &'r KernelRule, allowed: &'r [String]) -> Self {
        self.rules.push(Hits { rule, allowed, is_stored: false, offenders: Vec::new() });
        self
    }

    /// Applies the rules about single kernels to those of a file.
    pub fn check(&mut self, file: &str, list: &KernelList) {
        self.kernels += list.kernels.len();
        self.has_cubins |=
            list.images.iter().any(|image| matches!(image.version, Some(Version::CubinAbi(_))));
        for hits in self.rules.iter_mut().filter(|hits| !hits.rule.is_relative()) {
            let measure = hits.rule.measure();
            for kernel in list.distinct() {
                let Some(is_hit) = hits.rule.hits(&kernel.kernel) else { continue };
                hits.is_stored = true;
                if is_hit && !hits.allowed.iter().any(|glob| kernel.is_like(glob)) {
                    let (target, name, value) =
                        (list.target(kernel), kernel.name(self.mangled), kernel.text(measure));
                    let text = format!("{target}: {name}: {measure} {value}");
                    hits.offenders.push((Some(file.to_owned()), text));
                }
            }
        }
    }

    /// Applies the rules about growth: to the code of each GPU as a whole, to other measures of each pair of kernels.
    pub fn check_growth(
        &mut self,
        pairs: &[KernelPair<'_>],
        totals: &BTreeMap<&str, [KernelTotals; 2]>,
    ) {
        for (target, [old, new]) in totals {
            if let (Some(old), Some(new)) = (old.code, new.code) {
                self.grows(Measure::Code, old, new, target);
            }
        }
        for KernelPair { target, old, new } in pairs {
            let (Some(old), Some(new)) = (old, new) else { continue };
            for measure in Measure::all().filter(|measure| *measure != Measure::Code) {
                if let (Some(before), Some(after)) =
                    (old.of(measure).known(), new.of(measure).known())
                {
                    let what = format!("{target}: {}", new.name(self.mangled));
                    self.grows(measure, before, after, &what);
                }
            }
        }
    }

    fn grows(&mut self, measure: Measure, old: u64, new: u64, what: &str) {
        let relative = self.rules.iter_mut().filter(|hits| hits.rule.is_relative());
        for hits in relative.filter(|hits| hits.rule.measure() == measure) {
            hits.is_stored = true;
            if hits.rule.hits_change(old, new) {
                hits.offenders.push((None, format!("{what}: {measure} {old} -> {new}")));
            }
        }
    }

    /// Returns the hits of the rules, and the rules that could not be applied.
    #[must_use]
    pub fn faults(&self) -> Vec<GateFault> {
        let mut faults = Vec::new();
        for Hits { rule, is_stored, offenders, .. } in &self.rules {
            let rule = **rule;
            if !is_stored {
                let text = self.not_stored(&rule);
                faults.push(GateFault { rule, file: None, text, is_hit: false });
            }
            faults.extend(offenders.iter().map(|(file, text)| GateFault {
                rule,
                file: file.clone(),
                text: text.clone(),
                is_hit: true,
            }));
        }
        faults
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
        let instead = if is_spills(measure) && self.has_cubins {
            "; a cubin stores frame, which holds local arrays as well"
        } else {
            ""
        };
        format!("no selected kernel stores {measure}{instead}")
    }
}

fn is_spills(measure: Measure) -> bool {
    matches!(measure, Measure::Spills | Measure::VectorSpills | Measure::ScalarSpills)
}
