//! `native` in place of a target ID: the GPUs of this machine, as its kernel shows them.

use std::ffi::{OsStr, OsString};

use device_select::Device;

use tool_inputs::native::{NATIVE, Root};

/// The options that take a target ID of a GPU.
const OPTIONS: [&str; 3] = ["--gpu", "--target", "--keep"];
/// Arguments with the GPUs of a machine in the place of its name, and the text that says which.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Expanded {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) note: Option<String>,
}

/// Replaces `native` in the options that take the target ID of a GPU by the IDs of this machine's GPUs, each once.
///
/// # Errors
///
/// As [`Root::gpus`].
pub(crate) fn expand(arguments: impl IntoIterator<Item = OsString>) -> Result<Expanded, String> {
    let mut expanded = Expanded::default();
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let is_match = arguments.get(1).is_some_and(|command| command == "match");
    if is_match && asks_about_this(&arguments) {
        arguments.splice(2..2, ["--gpu", NATIVE].map(OsString::from));
    }
    let has = |option: &str| {
        let is_it = |text: &str| {
            text.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        arguments.iter().any(|argument| argument.to_str().is_some_and(is_it))
    };
    let mut arguments = arguments.clone().into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            expanded.arguments.push(argument);
            expanded.arguments.extend(arguments.by_ref());
            break;
        }
        let (name, value) = match argument.to_str().and_then(|text| text.split_once('=')) {
            Some((name, value)) => (OsStr::new(name), Some(OsString::from(value))),
            None => (argument.as_os_str(), None),
        };
        if !OPTIONS.iter().any(|option| name == *option) {
            expanded.arguments.push(argument);
            continue;
        }
        let is_apart = value.is_none();
        let Some(value) = value.or_else(|| arguments.next()) else {
            expanded.arguments.push(argument);
            break;
        };
        let typed: Vec<&str> =
            value.to_str().into_iter().flat_map(|text| text.split(',')).collect();
        let words: Vec<&str> = typed.iter().copied().flat_map(Device::listed).collect();
        let is_list = words.len() > typed.len();
        if !is_list && !words.iter().any(|word| Root::named(word).is_some()) {
            if is_apart {
                expanded.arguments.extend([argument, value]);
            } else {
                expanded.arguments.push(argument);
            }
            continue;
        }
        let mut ids: Vec<String> = Vec::new();
        for word in words {
            let Some(machine) = Root::named(word) else {
                ids.push(word.to_owned());
                continue;
            };
            let found = machine.found(word)?;
            let mut note = found.described;
            for setting in &found.settings {
                let (option, value) = setting.option();
                if is_match && !has(option) {
                    note.push_str(&format!("; {setting}"));
                    expanded.arguments.push(format!("{option}={value}").into());
                }
            }
            expanded.note = Some(note);
            for id in found.ids {
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
        for id in ids {
            expanded.arguments.extend([name.to_owned(), id.into()]);
        }
    }
    Ok(expanded)
}

/// Returns whether `match` is asked about files without a GPU: about this machine.
fn asks_about_this(arguments: &[OsString]) -> bool {
    let words = || arguments.iter().skip(2).filter_map(|argument| argument.to_str());
    let is_about_gpu = |word: &str| word == "--gpu" || word.starts_with("--gpu=");
    let asks_for_help = |word: &str| matches!(word, "-h" | "--help");
    arguments.len() > 2 && !words().any(|word| is_about_gpu(word) || asks_for_help(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn match_without_gpus_asks_about_this_machine() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert!(asks_about_this(&words("offload match -q dir")));
        for text in ["offload match", "offload match --help", "offload match --gpu=sm_86 x"] {
            assert!(!asks_about_this(&words(text)), "{text}");
        }
    }
}
