//! `offload completions`: what makes shells complete command lines.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use clap_complete::Shell;
use wrapper_ir::Abi;

use crate::explain;
use device_code::Measure;
use device_select::Product;
use drop_ins::wrapper::kind_names;
use tool_inputs::native::NATIVE;
use tool_kit::Outcome;

/// Print a shell completion script
///
/// The script completes commands, options, processors, GPUs and file names. It depends on this version of offload
/// only, so packages can include it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shell to complete for
    shell: Shell,
}

/// An edit of clap_complete's script for bash: offer options only after a dash, and values also after a comma. Without an offer, bash
/// completes files.
const FILES_IN_BASH: &str = include_str!("completions.bash");

pub(crate) fn run(args: &Args, command: Command, pages: &[&'static str]) -> io::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut with_values(command, pages), "offload", &mut script);
    let mut script = with_lists(args.shell, &String::from_utf8_lossy(&script));
    if args.shell == Shell::Bash {
        script.push_str(FILES_IN_BASH);
    }
    let mut out = io::stdout().lock();
    out.write_all(script.as_bytes())?;
    out.flush()?;
    Ok(Outcome::Clean)
}

/// The first value of an option whose values are separated by commas: `clap_complete` completes the first of them only.
const LISTED: &str = "a-list";

/// Has a script complete each value of lists. Scripts for other shells than these have no values.
fn with_lists(shell: Shell, script: &str) -> String {
    // The texts before and after the values, and the texts in their place.
    let (start, end, list) = match shell {
        Shell::Bash => ("compgen -W \"a-list ", "\"", ["_offload_listed \"", "\""]),
        Shell::Zsh => ("(a-list ", ")", ["_sequence compadd - ", ""]),
        Shell::Fish => {
            ("\"a-list\\t''\n", "\"", ["\"(__fish_complete_list , 'printf %s\\\\\\n ", "')\""])
        }
        _ => return script.to_owned(),
    };
    let mut pieces = script.split(start);
    let mut edited = pieces.next().unwrap_or(script).to_owned();
    for piece in pieces {
        let (values, rest) = piece.split_once(end).unwrap_or((piece, ""));
        let values = values.replace("\\t''\n", " ").replace("\\t''", "");
        edited.extend([list[0], &values, list[1], rest]);
    }
    edited
}

/// Returns the commands, with known values of options that also accept other values.
fn with_values(mut command: Command, pages: &[&'static str]) -> Command {
    // The options of the commands are there only then.
    command.build();
    command.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|arg| match values(&name, &arg, pages) {
            Some(names) => {
                let list = Some(LISTED).filter(|_| arg.get_value_delimiter() == Some(','));
                arg.value_parser(PossibleValuesParser::new(list.into_iter().chain(names)))
            }
            None if arg.get_value_names().is_some_and(|names| names == ["DIR"]) => {
                arg.value_hint(ValueHint::DirPath)
            }
            None => arg,
        })
    })
}

fn values(command: &str, arg: &Arg, pages: &[&'static str]) -> Option<Vec<&'static str>> {
    Some(match (command, arg.get_long()) {
        (_, Some("gpu" | "require")) => {
            let gpus =
                device_select::processors().filter_map(|(name, is_gpu)| is_gpu.then_some(name));
            gpus.chain(products()).chain([NATIVE]).collect()
        }
        (_, Some("target" | "keep" | "only" | "dead")) => {
            processors().chain(products()).chain([NATIVE]).collect()
        }
        (_, Some("drop")) => processors().chain(products()).collect(),
        (_, Some("offload-arch")) => processors().collect(),
        ("kernels", Some("sort")) => measures().chain(["name"]).collect(),
        (_, Some("fail-on")) => measures().collect(),
        ("explain", None) if arg.is_positional() => explain::codes().collect(),
        ("wrap", Some("kind")) => kind_names().collect(),
        ("wrap", Some("abi")) => Abi::ALL.map(Abi::name).to_vec(),
        (_, Some("type")) => crate::bundle::TYPES.to_vec(),
        ("man", None) if arg.is_positional() => pages.to_vec(),
        _ => return None,
    })
}

/// Returns the names of the measures of kernels.
fn measures() -> impl Iterator<Item = &'static str> {
    Measure::all().map(Measure::name)
}

/// Returns the names of processors.
fn processors() -> impl Iterator<Item = &'static str> {
    device_select::processors().map(|(name, _)| name)
}

/// Returns the shortest accepted names of products, each once: `rx7600xt`.
fn products() -> impl Iterator<Item = &'static str> {
    let keys = BTreeSet::from_iter(Product::all().map(|product| product.key()));
    // The definitions of options live as long as the process.
    keys.into_iter().filter(|key| !key.is_empty()).map(|key| &*key.leak())
}
