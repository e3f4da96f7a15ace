//! What `offload thin` would do to a file, for each of its GPUs.

use std::collections::BTreeMap;

use device_account::Account;
use device_report::{Tried, choices};
use device_select::{Rule, Wanted};

use crate::thin::{Permits, Thinning};
use tool_edits::{Options, Trial, Uneditable};
use tool_inputs::inputs::Input;
use tool_inputs::limits::Limits;
use tool_kit::failure::Failure;
use tool_kit::format::ListFormat;
use tool_kit::parallel::Threads;

/// Tries `offload thin --keep` for each GPU of a file, by its name. Of a member of a package, only whether it can be edited: it would be
/// compressed again.
pub(super) fn tries(
    file: &Input,
    account: &Account,
    limits: &Limits,
    threads: Threads,
) -> BTreeMap<String, Tried> {
    let gpus = choices(account);
    let tried = tries_of(file, &gpus, limits, threads);
    let tried = tried.unwrap_or_else(|failure| vec![refused(failure); gpus.len()]);
    gpus.into_iter().map(|(name, _)| name).zip(tried).collect()
}

fn tries_of(
    file: &Input,
    gpus: &[(String, Wanted)],
    limits: &Limits,
    threads: Threads,
) -> Result<Vec<Tried>, Failure> {
    let walk = file.walk_options(limits)?;
    let options = Options::strict(None, (true, ListFormat::default()), limits);
    let tried = file.with_reader(limits.max_input, |reader| {
        let trial = match Trial::new(reader, &walk, &options) {
            Ok(trial) => trial,
            Err(failure) => return Ok(Err(failure)),
        };
        let subject = trial.subject(!file.is_in_package(), threads);
        let keep = |wanted: &Wanted| {
            let rule = Rule::keep([wanted.clone()]);
            let permits = Permits {
                is_environment: false,
                missing: false,
                // The page says so, and its command line has the option.
                empty: true,
                unserved: false,
                databases: false,
                uneditable: Uneditable::default(),
            };
            let wishes = Thinning { rule: &rule, permits, options: &options }.decide(&subject)?;
            if file.is_in_package() {
                return trial.check(&wishes).map(|()| Tried::Unknown);
            }
            let before = subject.contents.size();
            // What is aligned anew may take more.
            let saves = |size| Tried::Saves(before.checked_sub(size).unwrap_or(0));
            Ok(trial.size(&wishes)?.map_or(Tried::Unknown, saves))
        };
        Ok(Ok(gpus.iter().map(|(_, wanted)| keep(wanted).unwrap_or_else(refused)).collect()))
    });
    tried?
}

/// Returns the first error of a failure. Files without code for a GPU are left out.
fn refused(failure: Failure) -> Tried {
    let complaints = match failure {
        Failure::NotConcerned(_) => return Tried::Unknown,
        failure => failure.complaints().unwrap_or_else(|error| vec![error.to_string()]),
    };
    Tried::Refused(complaints.into_iter().next().unwrap_or_default())
}
