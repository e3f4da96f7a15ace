//! Advice about command lines that make no sense.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Names of commands in other tools, with the command here.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["list", "info", "show", "inspect", "dump", "cat", "print", "view"],
        "`offload ls` lists images",
    ),
    (&["tree"], "`offload ls --tree` prints images below their containers"),
    (&["strip", "prune", "slim"], "`offload thin --keep ID` removes code for other GPUs"),
    (
        &["grep", "find", "search"],
        "`offload kernels --name PATTERN` finds kernels, `offload ls --target ID` images",
    ),
    (
        &["has", "supports", "run", "can-run"],
        "`offload match --gpu GPU` says whether a file runs there",
    ),
    (&["merge", "combine"], "`offload add` adds images to a file"),
    (&["delete", "rm", "drop"], "`offload remove` removes images"),
    (&["unpack", "dump-images"], "`offload extract` writes images to files"),
    (&["validate", "test", "lint"], "`offload verify` checks files"),
    (&["gpu", "devices", "device", "targets"], "`offload gpus` lists GPUs"),
];

/// Options of compilers that name GPUs.
const GPU_OPTIONS: &[&str] =
    &["--arch", "--offload-arch", "--cuda-gpu-arch", "--gpu-arch", "--gpu-architecture", "--gfx"];
/// The options of commands that do.
const OWN_OPTIONS: &[(&str, &[&str])] = &[
    ("--gpu", &["match", "doctor", "shrink"]),
    ("--target", &["ls", "kernels", "diff", "extract"]),
    ("--keep", &["thin"]),
];

/// Returns what the user of a command line that makes no sense may have meant.
pub(crate) fn about(error: &clap::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = text(error, ContextKind::InvalidSubcommand)?;
            if Path::new(typed).exists() {
                return Some(format!("'{typed}' is a file: `offload ls {typed}` lists its images"));
            }
            let (_, advice) = COMMANDS.iter().find(|(names, _)| names.contains(&typed))?;
            Some((*advice).to_owned())
        }
        ErrorKind::UnknownArgument => {
            let typed = text(error, ContextKind::InvalidArg)?;
            GPU_OPTIONS.contains(&typed).then_some(())?;
            let usage = error.get(ContextKind::Usage)?.to_string();
            let command = usage.split_once("offload ")?.1.split_whitespace().next()?;
            let (own, _) = OWN_OPTIONS.iter().find(|(_, commands)| commands.contains(&command))?;
            Some(format!("GPUs are named by {own}"))
        }
        ErrorKind::MissingRequiredArgument => {
            let ContextValue::Strings(missing) = error.get(ContextKind::InvalidArg)? else {
                return None;
            };
            missing.iter().any(|one| one.starts_with("--output <OUT>")).then(|| {
                "--in-place replaces the file itself, --dry-run shows what would change".to_owned()
            })
        }
        _ => None,
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}
