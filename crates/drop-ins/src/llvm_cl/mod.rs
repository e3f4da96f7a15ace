//! Command lines as LLVM's tools read them: one table of options, `-x` and `--x` alike, response files, the help
//! texts and the complaints in LLVM's words. Our own tools use clap; build systems that call drop-ins rely on
//! LLVM's exact behaviour.
//!
//! Nothing here prints or exits: `parse` returns the texts, which makes them testable.

mod help;
mod number;
pub(crate) mod response;
mod suggest;
mod table;

use std::fmt::Write;
use std::path::Path;

use table::dashes;

pub(crate) use help::{help, help_list};
pub(crate) use table::split_at_equals;
pub use table::{Kind, Opt, Print, Tool, Visibility};

/// The name and the arguments of this process.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    /// The first argument as typed; errors of the tool start with it.
    pub(crate) typed: String,
    /// Last path component of the tool; errors of the command line start with it.
    pub(crate) program: String,
}

impl Invocation {
    pub(crate) fn new(typed: String) -> Self {
        let name = Path::new(&typed).file_name();
        let program = name.map_or_else(|| typed.clone(), |n| n.to_string_lossy().into_owned());
        Invocation { typed, program }
    }
}

/// The options and arguments of a command line that is in order.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    values: Vec<(&'static str, Vec<u8>)>,
    bools: Vec<(&'static str, bool)>,
    pub positionals: Vec<Vec<u8>>,
}

impl Matches {
    /// Returns whether a [`Kind::Bool`] was switched on, by the last of its uses.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.switch(name).unwrap_or(false)
    }

    /// Returns the value of the last use of a [`Kind::Bool`], if it was used.
    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.bools.iter().rev().find(|(n, _)| *n == name).map(|(_, on)| *on)
    }

    /// Returns the last value of a [`Kind::Unsigned`].
    pub(crate) fn unsigned(&self, name: &str) -> Option<u32> {
        number::unsigned(self.value(name)?)
    }

    /// Returns the last value of a [`Kind::Signed`].
    pub(crate) fn signed(&self, name: &str) -> Option<i32> {
        number::signed(self.value(name)?)
    }

    /// Returns the last value of an option.
    pub(crate) fn value(&self, name: &str) -> Option<&[u8]> {
        self.values(name).last()
    }

    /// Returns the last value of an option; empty without one, as LLVM's options of strings are.
    pub(crate) fn text(&self, name: &str) -> &[u8] {
        self.value(name).unwrap_or_default()
    }

    /// Returns all values of an option, in order.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.values.iter().filter(move |(n, _)| *n == name).map(|(_, value)| &value[..])
    }

    /// Returns all values of some options, with their names, in order.
    pub(crate) fn values_of(&self, names: &[&str]) -> impl Iterator<Item = (&'static str, &[u8])> {
        let is_one = |name: &str| names.contains(&name);
        self.values
            .iter()
            .filter(move |(name, _)| is_one(name))
            .map(|(name, value)| (*name, &value[..]))
    }
}

/// A command line that ends the run: what to print, and how to exit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) success: bool,
}

/// Reads the arguments after the first. Response files are expanded at any place, even as values.
pub(crate) fn parse(
    tool: &'static Tool,
    invocation: &Invocation,
    args: Vec<Vec<u8>>,
) -> Result<Matches, Stop> {
    let mut parser = Parser {
        tool,
        invocation,
        matches: Matches::default(),
        refused: Vec::new(),
        errors: String::new(),
    };
    match response::expand(args) {
        Ok(args) => parser.arguments(args)?,
        Err(error) => parser.complain(&error),
    }
    parser.missing();
    let Parser { matches, errors, .. } = parser;
    if errors.is_empty() { Ok(matches) } else { Err(Stop { stderr: errors, ..Stop::default() }) }
}

struct Parser<'a> {
    tool: &'static Tool,
    invocation: &'a Invocation,
    matches: Matches,
    /// Options that were given values which will not do.
    refused: Vec<&'static str>,
    errors: String,
}

impl Parser<'_> {
    fn arguments(&mut self, args: Vec<Vec<u8>>) -> Result<(), Stop> {
        let mut args = args.into_iter();
        let mut only_positionals = false;
        while let Some(arg) = args.next() {
            let is_positional = only_positionals || !arg.starts_with(b"-") || arg == b"-";
            if is_positional && self.tool.max_positionals == 0 {
                self.complain_unknown(&arg);
            } else if is_positional {
                self.matches.positionals.push(arg);
            } else if arg == b"--" {
                only_positionals = true;
            } else {
                let name = arg.strip_prefix(b"--").or_else(|| arg.strip_prefix(b"-"));
                self.option(&arg, name.unwrap_or(&arg), &mut args)?;
            }
        }
        let most = self.tool.max_positionals;
        if most > 0 && self.matches.positionals.len() > most {
            let typed = &self.invocation.typed;
            self.complain(&format_args!(
                "Too many positional arguments specified!\n\
                 Can specify at most {most} positional arguments: See: {typed} --help"
            ));
        }
        let least = self.tool.min_positionals;
        if self.matches.positionals.len() < least {
            let typed = &self.invocation.typed;
            let plural = if least == 1 { "" } else { "s" };
            self.complain(&format_args!(
                "Not enough positional command line arguments specified!\n\
                 Must specify at least {least} positional argument{plural}: See: {typed} --help"
            ));
        }
        Ok(())
    }

    /// Reads one argument that starts with a dash: `arg` as typed, `text` without dashes.
    fn option(
        &mut self,
        arg: &[u8],
        text: &[u8],
        rest: &mut impl Iterator<Item = Vec<u8>>,
    ) -> Result<(), Stop> {
        let (name, value) = split_at_equals(text);
        if let Some(option) = self.tool.find(name) {
            return self.provide(option, value, rest);
        }
        // Options of one letter can be put together: -ho is -h -o. Options with a value only at the end.
        let mut group = text;
        while text.len() > 1
            && let Some((letter, more)) = group.split_first()
            && let Some(option) = self.tool.find(&[*letter])
        {
            match more.first() {
                None => return self.provide(option, None, rest),
                Some(b'=') => return self.provide(option, more.get(1..), rest),
                Some(_) if option.is_joined => return self.provide(option, Some(more), rest),
                Some(_) if option.takes_value() => {
                    self.complain_of(option, "may not occur within a group!");
                    break;
                }
                Some(_) => self.provide(option, None, &mut std::iter::empty())?,
            }
            group = more;
        }
        self.complain_unknown(arg);
        if let Some(nearest) = suggest::nearest(self.tool, text) {
            self.complain(&format_args!("Did you mean '{nearest}'?"));
        }
        Ok(())
    }

    /// Complains of required options that were not given.
    fn missing(&mut self) {
        for option in self.tool.options.iter().filter(|option| option.required) {
            let name = option.name;
            if self.matches.value(name).is_none() && !self.refused.contains(&name) {
                self.complain_of(option, "must be specified at least once!");
            }
        }
    }

    fn complain_unknown(&mut self, arg: &[u8]) {
        let arg = String::from_utf8_lossy(arg);
        let typed = &self.invocation.typed;
        self.complain(&format_args!(
            "Unknown command line argument '{arg}'.  Try: '{typed} --help'"
        ));
    }

    fn provide(
        &mut self,
        option: &'static Opt,
        value: Option<&[u8]>,
        rest: &mut impl Iterator<Item = Vec<u8>>,
    ) -> Result<(), Stop> {
        let name = option.name;
        match option.kind {
            Kind::Bool => match value {
                None | Some(b"" | b"1" | b"true" | b"TRUE" | b"True") => {
                    self.matches.bools.push((name, true));
                }
                Some(b"0" | b"false" | b"FALSE" | b"False") => {
                    self.matches.bools.push((name, false));
                }
                Some(value) => self.complain_of(
                    option,
                    format_args!(
                        "'{}' is invalid value for boolean argument! Try 0 or 1",
                        String::from_utf8_lossy(value)
                    ),
                ),
            },
            Kind::Print(what) => match value {
                Some(value) => {
                    let value = String::from_utf8_lossy(value);
                    self.complain_of(
                        option,
                        format_args!("does not allow a value! '{value}' specified."),
                    );
                }
                None => return Err(self.print(what)),
            },
            _ => {
                let Some(value) = value.map(<[u8]>::to_vec).or_else(|| rest.next()) else {
                    self.complain_of(option, "requires a value!");
                    return Ok(());
                };
                if let Err(complaint) = option.kind.check(&value) {
                    self.complain_of(option, complaint);
                    self.refused.push(name);
                } else if option.kind == Kind::CommaList {
                    let parts = value.split(|&byte| byte == b',');
                    self.matches.values.extend(parts.map(|part| (name, part.to_vec())));
                } else {
                    self.matches.values.push((name, value));
                }
            }
        }
        Ok(())
    }

    fn print(&mut self, what: Print) -> Stop {
        let stdout = match what {
            Print::Version => self.tool.version.to_owned(),
            Print::Help { list: false, hidden } => {
                help(self.tool, &self.invocation.program, hidden)
            }
            Print::Help { list: true, hidden } => {
                help_list(self.tool, &self.invocation.program, hidden)
            }
        };
        Stop { stdout, stderr: std::mem::take(&mut self.errors), success: true }
    }

    fn complain_of(&mut self, option: &Opt, what: impl std::fmt::Display) {
        let dashes = dashes(option.name);
        self.complain(&format_args!("for the {dashes}{} option: {what}", option.name));
    }

    fn complain(&mut self, what: &dyn std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.errors, "{}: {what}", self.invocation.program);
    }
}

impl Kind {
    /// Returns whether a value will do.
    fn check(self, value: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(value);
        match self {
            Kind::Choice(choices) if !choices.iter().any(|choice| choice.as_bytes() == value) => {
                Err(format!("Cannot find option named '{text}'!"))
            }
            Kind::Named(choices) if !choices.iter().any(|(name, _)| name.as_bytes() == value) => {
                Err(format!("Cannot find option named '{text}'!"))
            }
            Kind::Unsigned if number::unsigned(value).is_none() => {
                Err(format!("'{text}' value invalid for uint argument!"))
            }
            Kind::Signed if number::signed(value).is_none() => {
                Err(format!("'{text}' value invalid for integer argument!"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
