//! A run of steps: which ones, and what could not be checked.

use std::time::Instant;

use crate::STEPS;
use crate::process::{Result, Stop};
use crate::workspace::Workspace;

/// When a step runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    /// Before every change.
    Gate,
    /// Every night: all that the gate leaves out.
    Nightly,
}

/// Name, when it runs, what it checks, and how.
pub(crate) type Step = (&'static str, Part, &'static str, fn(&mut Ci) -> Result);

/// A run of steps.
#[derive(Debug)]
pub(crate) struct Ci {
    pub workspace: Workspace,
    /// Checks that this machine could not run. Printed again at the end.
    unchecked: Vec<String>,
}

impl Ci {
    /// Says what this machine cannot check.
    pub(crate) fn not_checked(&mut self, what: impl Into<String>) {
        let what = what.into();
        println!("NOT CHECKED: {what}");
        self.unchecked.push(what);
    }

    /// Turns a lack into a line of the summary.
    pub(crate) fn may_lack(&mut self, what: impl Into<String>, end: Result) -> Result {
        match end {
            Err(Stop::Lacking | Stop::Status(3)) => {
                self.not_checked(what);
                Ok(())
            }
            end => end,
        }
    }
}

/// Runs the steps that the arguments name.
pub(crate) fn run(workspace: Workspace, arguments: &[String]) -> Result {
    let steps = chosen(arguments)?;
    let mut ci = Ci { workspace, unchecked: Vec::new() };
    let start = Instant::now();
    for (name, _, _, step) in steps {
        println!("\n=== {name} (at {} s)", start.elapsed().as_secs());
        step(&mut ci)?;
    }
    println!("\nall green after {} s", start.elapsed().as_secs());
    for what in &ci.unchecked {
        println!("but NOT CHECKED here: {what}");
    }
    Ok(())
}

/// Returns the names of all steps, as `--list` prints them.
pub(crate) fn list() -> String {
    let names = |part| of(part).iter().map(|step| step.0).collect::<Vec<_>>().join(" ");
    format!("gate: {}\nnightly: {}\n", names(Part::Gate), names(Part::Nightly))
}

/// Returns the names of all steps, and what they check.
pub(crate) fn about() -> String {
    STEPS.iter().map(|(name, _, about, _)| format!("  {name:<12} {about}\n")).collect()
}

fn of(part: Part) -> Vec<&'static Step> {
    STEPS.iter().filter(|step| step.1 == part).collect()
}

fn chosen(arguments: &[String]) -> Result<Vec<&'static Step>> {
    match arguments.first().map(String::as_str) {
        None => Ok(of(Part::Gate)),
        Some("nightly") => Ok(of(Part::Nightly)),
        Some("all") => Ok(STEPS.iter().collect()),
        Some(_) => arguments.iter().map(|name| named(name)).collect(),
    }
}

fn named(name: &str) -> Result<&'static Step> {
    let found = STEPS.iter().find(|step| step.0 == name);
    found.ok_or_else(|| Stop::Misused(format!("no step '{name}': .ci/run --list")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(arguments: &[&str]) -> Vec<&'static str> {
        let arguments: Vec<_> = arguments.iter().map(|&word| word.to_owned()).collect();
        chosen(&arguments).unwrap().into_iter().map(|step| step.0).collect()
    }

    #[test]
    fn arguments_choose_steps() {
        assert_eq!(names(&[]).first(), Some(&"tests"));
        assert_eq!(names(&["nightly"]).first(), Some(&"msrv"));
        assert_eq!(names(&["all"]), [names(&[]), names(&["nightly"])].concat());
        assert_eq!(names(&["trees", "fmt"]), ["trees", "fmt"]);
    }

    #[test]
    fn unknown_steps_are_refused_before_any_runs() {
        let error = chosen(&["fmt".to_owned(), "lint".to_owned()]).unwrap_err();
        assert!(matches!(error, Stop::Misused(text) if text == "no step 'lint': .ci/run --list"));
    }

    #[test]
    fn the_list_has_each_step_once() {
        let list = list();
        let (gate, nightly) = list.trim_end().split_once('\n').unwrap();
        assert!(gate.starts_with("gate: tests fmt clippy "));
        assert!(nightly.starts_with("nightly: msrv features "));
        let mut words: Vec<_> = list.split_whitespace().collect();
        assert_eq!(words.len(), STEPS.len() + 2);
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), STEPS.len() + 2);
    }

    #[test]
    fn what_is_lacking_is_no_failure() {
        let workspace = Workspace { root: "/".into(), target: "/".into(), packages: Vec::new() };
        let mut ci = Ci { workspace, unchecked: Vec::new() };
        assert!(ci.may_lack("one", Ok(())).is_ok());
        assert!(ci.may_lack("two", Err(Stop::Lacking)).is_ok());
        assert!(ci.may_lack("three", Err(Stop::Status(3))).is_ok());
        assert!(matches!(ci.may_lack("four", Err(Stop::Status(1))), Err(Stop::Status(1))));
        assert_eq!(ci.unchecked, ["two", "three"]);
    }
}
