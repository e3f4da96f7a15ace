//! The end of the help of `offload`, and what all manual pages have.

use tool_kit::help::{More, Terms};

/// The end of `offload -h`.
pub(crate) const SHORT: &str = "`offload COMMAND --help` shows examples of each command.";

/// The end of `offload --help`. [`TERMS`] precede the last paragraph.
pub(crate) const START: More = More(include_str!("help/offload.md"));

/// Exit statuses and environment variables of all commands.
pub(crate) const TERMS: [Terms; 2] = [
    (
        "Exit status",
        &[
            ("0", "success"),
            ("1", "a file is malformed or unreadable, match found no image, or a check failed"),
            ("2", "the command line is invalid"),
            ("141", "standard output was closed early (broken pipe)"),
        ],
    ),
    (
        "Environment",
        &[
            ("NO_COLOR", "if set, never print colours"),
            ("CLICOLOR_FORCE, FORCE_COLOR", "if set, print colours even to files and pipes"),
            ("COLUMNS", "width of help texts if standard output is not a terminal"),
            ("TMPDIR", "directory for temporary files, such as a copy of standard input"),
        ],
    ),
];
