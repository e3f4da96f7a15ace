//! Names of devices and targets as typed, and why they are none.

use bundle_format::EntryId;
use device_select::{Device, NotADevice, Wanted};
use target_id::near::did_you_mean;
use tool_kit::report;

/// Reads the name of a GPU.
///
/// # Errors
///
/// The reason why the text names none, with suggestions.
pub fn gpu(typed: &str) -> Result<Device, String> {
    Device::parse(typed).map_err(|reason| refused(&reason, &reason.near(typed)))
}

/// Notes the target ID of each GPU that was given by another name, such as a product, a PCI ID, or another spelling.
pub fn explain(gpus: &[Device], has_notes: bool) {
    note_all(gpus.iter().filter_map(Device::explained), has_notes);
}

/// Notes the target ID of each target that was given by another name.
pub fn explain_wanted(wanted: &[Wanted], has_notes: bool) {
    note_all(wanted.iter().filter_map(Wanted::explained), has_notes);
}

fn note_all(texts: impl Iterator<Item = String>, has_notes: bool) {
    texts.filter(|_| has_notes).for_each(|text| report::note(&text));
}

/// Reads a target.
///
/// # Errors
///
/// The reason why the text names none, with suggestions.
pub fn wanted(typed: &str) -> Result<Wanted, String> {
    Wanted::parse(typed).map_err(|reason| not_wanted(typed, &reason))
}

/// Reads a target that is known, for destructive commands.
///
/// # Errors
///
/// The reason why the text names none, with suggestions.
pub fn known(typed: &str) -> Result<Wanted, String> {
    Wanted::parse_known(typed).map_err(|reason| not_wanted(typed, &reason))
}

/// Returns the bundle entry ID of HIP for a target ID alone; any other text as it is.
///
/// # Errors
///
/// It is a target ID of CUDA, whose code is in no bundle.
pub fn bundled(typed: &str, instead: &str) -> Result<String, String> {
    match EntryId::of_code_for(typed) {
        Some(id) if id.starts_with("cuda-") => {
            Err(format!("'{typed}': bundles hold no code for CUDA; {instead}"))
        }
        Some(id) => Ok(id),
        None => Ok(typed.to_owned()),
    }
}

fn not_wanted(typed: &str, reason: &NotADevice) -> String {
    match reason {
        NotADevice::Empty => {
            "expected a target ID such as gfx90a:xnack+ or a bundle entry ID".to_owned()
        }
        NotADevice::Malformed(_) | NotADevice::Unknown(_) => {
            refused(reason, &Wanted::near_to(typed))
        }
        reason => refused(reason, &reason.near(typed)),
    }
}

/// Returns the reason why a text names nothing, with suggestions, and the command that lists names.
fn refused(reason: &NotADevice, near: &[String]) -> String {
    let more = match reason {
        NotADevice::Several { choices, .. } if choices.len() > NotADevice::MOST_CHOICES => {
            " (see `offload gpus`)"
        }
        NotADevice::UnknownPciId(_) => ", or an ID of `offload gpus`",
        _ => "",
    };
    format!("{reason}{more}{}", did_you_mean(near))
}
