//! Argument parsing that commands share and clap does not do.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, FromArgMatches};

use crate::{input, report, style};

/// Values of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On terminals.
    Auto,
    /// To files and pipes, too.
    Always,
    /// Nowhere.
    Never,
}

/// Returns whether there are colours always or never, by the last `--color` of a command line that is not parsed yet: its errors have
/// colours, too.
pub fn color(arguments: &[OsString]) -> Option<bool> {
    let mut values = arguments.iter().enumerate().filter_map(|(at, argument)| {
        match argument.to_str()?.strip_prefix("--color")? {
            "" => arguments.get(at + 1)?.to_str(),
            value => value.strip_prefix('='),
        }
    });
    match values.next_back()? {
        "always" => Some(true),
        "never" => Some(false),
        _ => None,
    }
}

/// Parses the arguments of `offload`. Prints help if it is asked for, and what is wrong, with advice; then there is an exit status.
pub fn parse<T: FromArgMatches>(
    command: Command,
    arguments: impl IntoIterator<Item = OsString>,
    advice: impl Fn(&clap::Error) -> Option<String>,
) -> Result<T, ExitCode> {
    let parsed = command.try_get_matches_from(arguments);
    let mut error = match parsed.and_then(|matches: ArgMatches| T::from_arg_matches(&matches)) {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    if let Some(advice) = advice(&error) {
        error.remove(ContextKind::SuggestedSubcommand);
        if error.remove(ContextKind::SuggestedArg).is_some() {
            // It has the guess, too.
            error.remove(ContextKind::Usage);
        }
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![advice.into()]));
    }
    Err(match error.kind() {
        // Help and versions are asked for, and are the output then.
        ErrorKind::DisplayHelp => {
            report::print_help(report::OFFLOAD, &error.render().ansi().to_string())
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::from(2)
        }
        _ if !error.use_stderr() => match error.print() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report::end(report::OFFLOAD, &error),
        },
        _ => {
            // It may contain names of files.
            let text = error.render();
            match style::printable_lines(&text.to_string()) {
                Cow::Borrowed(_) => report::say_styled_lines(&text.ansi().to_string()),
                Cow::Owned(text) => report::say_lines(&format!("{}\n", text.trim_end())),
            }
            ExitCode::from(2)
        }
    })
}

/// Ends the process: the command line makes no sense.
pub fn usage(fault: &str) -> ! {
    clap::Error::raw(ErrorKind::ArgumentConflict, format!("{}\n", style::printable(fault))).exit()
}

/// Returns an argument `ID=FILE`.
pub fn split(argument: &OsString) -> Result<(Vec<u8>, PathBuf), String> {
    let bytes = input::bytes(argument.clone());
    let mut parts = bytes.splitn(2, |&byte| byte == b'=');
    match (parts.next(), parts.next()) {
        (Some(id), Some(file)) if !id.is_empty() && !file.is_empty() => {
            Ok((id.to_vec(), input::path(file)))
        }
        _ => Err(format!("'{}': expected ID=FILE", argument.display())),
    }
}
