//! A tool's table of options.

/// The value that an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no, with an optional `=` and value: `--archive`, `--archive=false`.
    Bool,
    /// A value after `=` or as the next argument; the last one counts.
    Value,
    /// A value that must be one of these.
    Choice(&'static [&'static str]),
    /// A value that must be one of these; the help text explains each.
    Named(&'static [(&'static str, &'static str)]),
    /// A value each time it is given.
    List,
    /// Values with commas between them, each time it is given. Empty ones count.
    CommaList,
    /// A number of 32 bits: see `Matches::unsigned`.
    Unsigned,
    /// A number of 32 bits with a sign: see `Matches::signed`.
    Signed,
    /// Prints something and ends the run, where it stands on the command line.
    Print(Print),
}

/// The text that an option prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    /// The help text.
    Help {
        /// `true` for one list, without categories.
        list: bool,
        /// `true` to list hidden options, too.
        hidden: bool,
    },
    /// The version.
    Version,
}

/// The help texts that list an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// In every help text.
    Shown,
    /// In `--help-hidden` and `--help-list-hidden`.
    Hidden,
    /// Nowhere, and not suggested either.
    Never,
}

/// One row of a table of options.
#[derive(Debug)]
pub struct Opt {
    /// The name, without dashes.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// The value in help texts: `file` becomes `<file>`.
    pub value_name: &'static str,
    /// The description. Lines after the first are indented as it is.
    pub help: &'static str,
    /// The lists that show it.
    pub visibility: Visibility,
    /// `true` if a command line without it is wrong.
    pub required: bool,
    /// `true` if the value of a letter may follow without a space: `-oFILE`.
    pub(crate) is_joined: bool,
}

impl Opt {
    /// Creates an option that is always visible and never required.
    pub const fn new(
        name: &'static str,
        kind: Kind,
        value_name: &'static str,
        help: &'static str,
    ) -> Self {
        Opt {
            name,
            kind,
            value_name,
            help,
            visibility: Visibility::Shown,
            required: false,
            is_joined: false,
        }
    }
}

/// The command line of a tool.
#[derive(Debug)]
pub struct Tool {
    /// The sentence at the start of the help.
    pub overview: &'static str,
    /// The positional arguments in the usage line.
    pub positionals: &'static str,
    pub(crate) min_positionals: usize,
    /// The largest number of positional arguments. With 0, each is an unknown argument.
    pub(crate) max_positionals: usize,
    /// Heading of the tool's own options.
    pub(crate) heading: &'static str,
    /// The options.
    pub options: &'static [Opt],
    pub(crate) version: &'static str,
}

/// The options that every tool of LLVM has.
pub(super) const GENERIC: [Opt; 8] = [
    generic(
        "help",
        Kind::Print(Print::Help { list: false, hidden: false }),
        "Display available options (--help-hidden for more)",
        Visibility::Shown,
    ),
    generic(
        "help-hidden",
        Kind::Print(Print::Help { list: false, hidden: true }),
        "Display all available options",
        Visibility::Hidden,
    ),
    generic(
        "print-all-options",
        Kind::Bool,
        "Print all option values after command line parsing",
        Visibility::Hidden,
    ),
    generic(
        "version",
        Kind::Print(Print::Version),
        "Display the version of this program",
        Visibility::Shown,
    ),
    generic(
        "help-list-hidden",
        Kind::Print(Print::Help { list: true, hidden: true }),
        "Display list of all available options",
        Visibility::Hidden,
    ),
    generic(
        "help-list",
        Kind::Print(Print::Help { list: true, hidden: false }),
        "Display list of available options (--help-list-hidden for more)",
        Visibility::Hidden,
    ),
    generic(
        "print-options",
        Kind::Bool,
        "Print non-default options after command line parsing",
        Visibility::Hidden,
    ),
    generic("color", Kind::Bool, "Use colors in output (default=autodetect)", Visibility::Never),
];

const fn generic(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    visibility: Visibility,
) -> Opt {
    Opt { visibility, ..Opt::new(name, kind, "", help) }
}

impl Tool {
    /// Returns its own options, and the options that every tool has.
    pub fn all(&self) -> impl Iterator<Item = &Opt> {
        self.options.iter().chain(&GENERIC)
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<&Opt> {
        self.all().find(|option| option.name.as_bytes() == name)
    }
}

impl Opt {
    pub(super) fn takes_value(&self) -> bool {
        !matches!(self.kind, Kind::Bool | Kind::Print(_))
    }
}

/// Returns the bytes before the first `=`, and the bytes after it.
pub(crate) fn split_at_equals(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&byte| byte == b'=') {
        Some(at) => {
            let (name, value) = text.split_at(at);
            (name, value.get(1..))
        }
        None => (text, None),
    }
}

/// Returns one dash for a letter, two for a word.
pub(super) fn dashes(name: &str) -> &'static str {
    if name.len() == 1 { "-" } else { "--" }
}
