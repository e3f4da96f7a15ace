//! The end of the help of `offload`, and what all manual pages have.

pub(crate) use tool_kit::help::More;
use tool_kit::help::Terms;

/// The end of `offload -h`.
pub(crate) const SHORT: &str = "`offload COMMAND --help` shows examples of each command.";

/// The end of `offload --help`. [`TERMS`] precede the last paragraph.
pub(crate) const START: More = More {
    examples: &[
        ("offload ls libfoo.so", "list the GPUs that a library has code for"),
        (
            "offload match --gpu gfx1031 libfoo.so",
            "show what this GPU would load, or why it loads nothing",
        ),
        ("offload thin libfoo.so --keep gfx1100 -o small.so", "keep only the code for one GPU"),
    ],
    notes: &[
        "`offload COMMAND --help` shows examples of each command; `offload man COMMAND | man -l -` shows its \
         manual page. Output files appear complete or not at all, even if a command fails or is interrupted.",
        "The drop-in replacements for LLVM's, AMD's and NVIDIA's tools have their own --help: clang-offload-bundler, \
         llvm-offload-binary (also called clang-offload-packager), llvm-offload-wrapper, clang-offload-wrapper, \
         clang-linker-wrapper, roc-obj-ls, roc-obj-extract and fatbinary.",
    ],
};

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
            ("CLICOLOR_FORCE", "if set, print colours even to files and pipes"),
            ("COLUMNS", "width of help texts if standard output is not a terminal"),
            ("TMPDIR", "directory for temporary files, such as a copy of standard input"),
        ],
    ),
];
