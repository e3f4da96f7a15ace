//! "Did you mean": names and IDs near to what was typed.
//!
//! The drop-in tools say nothing of it: they suggest what LLVM's do, options.

mod entry_id;
mod nearest;
mod target_id;

use ::target_id::{TargetId, is_known_processor};
use bundle_format::EntryId;

use device_select::{Device, NotADevice};

pub(crate) use entry_id::{entry_id, triple};
pub(crate) use nearest::{distance, nearest};
pub(crate) use target_id::{generic, gpus, processor, target_id};

/// Returns the IDs of a file that are nearest to the typed one. If that is for a known device, IDs for other devices
/// are left out.
pub(crate) fn stored<'n>(typed: &str, ids: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wanted = device(typed);
    let is_other = |id: &str| {
        let known = wanted.as_ref().filter(|wanted| is_known_processor(wanted.processor()));
        known.is_some_and(|wanted| device(id).is_some_and(|id| id != *wanted))
    };
    nearest(typed, ids.into_iter().filter(|id| !is_other(id)))
}

/// Returns the target ID at the end of a bundle entry ID, or by itself.
fn device(id: &str) -> Option<TargetId> {
    let entry = EntryId::parse(id).ok().map(|id| id.target_id()).filter(|id| !id.is_empty());
    TargetId::parse(entry.unwrap_or(id)).ok()
}

/// Returns a text like `; did you mean A or B?`, or nothing.
pub(crate) fn did_you_mean<T: AsRef<str>>(names: &[T]) -> String {
    match names {
        [] => String::new(),
        names => {
            let names: Vec<_> = names.iter().map(T::as_ref).collect();
            format!("; did you mean {}?", names.join(" or "))
        }
    }
}

/// Returns the reason why a text does not name a device, with the command that lists those that are known.
pub(crate) fn why_not(reason: &NotADevice) -> String {
    match reason {
        NotADevice::Several { choices, .. } if choices.len() > NotADevice::MOST_CHOICES => {
            format!("{reason} (see `offload gpus`)")
        }
        NotADevice::UnknownPciId(_) => format!("{reason}, or an ID of `offload gpus`"),
        reason => reason.to_string(),
    }
}

/// Returns the reason why a text does not name a device, with suggestions.
pub(crate) fn not_a_device(typed: &str, reason: &NotADevice) -> String {
    let near = match reason {
        NotADevice::Malformed(_) => target_id(Device::target_id_in(typed)),
        NotADevice::Unknown(name) => gpus(name),
        _ => Vec::new(),
    };
    format!("{}{}", why_not(reason), did_you_mean(&near))
}

/// Returns the doubt about a device that this program does not know, with suggestions.
pub(crate) fn doubt(device: &Device) -> Option<String> {
    let name = device.id().processor();
    device.is_unknown().then(|| {
        format!(
            "unknown processor {name}: only images with exactly that name, or portable ones, can match{}",
            did_you_mean(&gpus(name))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(nearest("zstdd", ["zlib", "zstd"]), ["zstd"]);
        assert_eq!(nearest("hpi", ["hip", "hipv4", "host"]), ["hip"]);
        assert_eq!(nearest("hip", ["hip", "hipv4"]), ["hipv4"; 0]);
        assert!(nearest("it", ["is", "hip"]).is_empty());
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean a or b?");
        assert_eq!(did_you_mean::<&str>(&[]), "");
    }

    #[test]
    fn ids_of_other_devices_are_not_suggested() {
        let ids = ["hipv4-amdgcn-amd-amdhsa--gfx1100", "hipv4-amdgcn-amd-amdhsa--gfx906:xnack+"];
        for (typed, meant) in [
            ("hip-amdgcn-amd-amdhsa--gfx1100", &ids[..1]),
            ("hipv4-amdgcn-amd-amdhsa--gfx110A", &ids[..1]),
            ("hipv4-amdgcn-amd-amdhas--gfx906:xnack+", &ids[1..]),
            ("hipv4-amdgcn-amd-amdhsa--gfx1101", &[]),
            ("hipv4-amdgcn-amd-amdhsa--gfx906:xnack-", &[]),
        ] {
            assert_eq!(stored(typed, ids), meant, "{typed}");
        }
        assert_eq!(stored("gfx110A", ["gfx1100"]), ["gfx1100"]);
        assert!(stored("gfx1101", ["gfx1100"]).is_empty());
    }
}
