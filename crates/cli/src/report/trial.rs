//! Trials of `offload thin` with a file, for each of its GPUs.

use device_account::Account;
use device_report::{Tried, Tries, choices};
use device_select::{Rule, Wanted};

use tool_edits::{Options, Trial, Uneditable};
use tool_edits::{Permits, Thinning};
use tool_inputs::inputs::Input;
use tool_inputs::limits::Limits;
use tool_kit::failure::Failure;
use tool_kit::format::ListFormat;
use tool_kit::parallel::Threads;

/// Tries `offload thin --keep` for each GPU of a file. In packages it only finds the images that cannot be edited: other members may have
/// more GPUs, and the size of a member is not its size in the package.
pub(super) fn tries(file: &Input, account: &Account, limits: &Limits, threads: Threads) -> Tries {
    // A pack may have code of other libraries, too.
    if file.is_pack_of_library() {
        return Tries::default();
    }
    tries_of(file, account, limits, threads)
        .unwrap_or_else(|failure| Tries::refused(&complaint(failure)))
}

fn tries_of(
    file: &Input,
    account: &Account,
    limits: &Limits,
    threads: Threads,
) -> Result<Tries, Failure> {
    let walk = file.walk_options(limits)?;
    let options = Options::strict(None, (true, ListFormat::default()), limits);
    file.with_reader(limits.max_input, |reader| {
        let trial = match Trial::new(reader, &walk, &options) {
            Ok(trial) => trial,
            Err(failure) => return Ok(Err(failure)),
        };
        let subject = trial.subject(!file.is_in_package(), threads);
        let mut tries = Tries::default();
        if file.is_in_package() {
            for container in subject.contents.containers() {
                if let Some(why) = container.refusal() {
                    let why = format!("{why} (--allow-uneditable leaves it as it is)");
                    tries = tries.with_uneditable(container.images(), &why);
                }
            }
            return Ok(Ok(tries));
        }
        let keep = |wanted: Wanted| {
            let rule = Rule::keep([wanted]);
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
            trial.size(&wishes)
        };
        let before = subject.contents.size();
        for (name, wanted) in choices(account) {
            let tried = match keep(wanted) {
                // A file may grow by padding.
                Ok(Some(size)) => Tried::Saves(before - size.min(before)),
                Ok(None) => Tried::Unknown,
                Err(failure) => Tried::Refused(complaint(failure)),
            };
            tries = tries.with_gpu(name, tried);
        }
        Ok(Ok(tries))
    })?
}

/// Returns the first error of a failure.
fn complaint(failure: Failure) -> String {
    let complaints = failure.complaints().unwrap_or_else(|error| vec![error.to_string()]);
    complaints.into_iter().next().unwrap_or_else(|| "it fails".to_owned())
}
