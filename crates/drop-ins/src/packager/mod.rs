//! `llvm-offload-binary`, also called `clang-offload-packager`: packs device images, and extracts them.

mod bundle;
mod candidates;
mod extract;
mod names;
mod options;

use std::io;
use std::process::ExitCode;

use crate::drop_in;
use crate::llvm_cl;
pub use bundle::Package;
pub(crate) use candidates::llvm_words;
pub use options::ImageSpec;
use options::Options;
pub use options::{TOOL, TOOL_24};
use tool_kit::opened::MaxInput;
use tool_kit::output::{Name, Outputs};
use tool_kit::{input, report, standard};

/// Runs the packager with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    // Help texts are printed while the command line is read.
    let tool = if is_for_24() { &TOOL_24 } else { &TOOL };
    let (invocation, options) = match drop_in::start(tool, "llvm-offload-binary") {
        Ok((invocation, matches)) => (invocation, Options::new(matches)),
        Err(exit) => return exit,
    };
    // As LLVM decides it: the end of the name without its extension.
    let stem = invocation.program.rsplit_once('.').map_or(&*invocation.program, |(stem, _)| stem);
    if stem.ends_with("clang-offload-packager") {
        report::deprecated("clang-offload-packager", "llvm-offload-binary");
    }
    if options.help || (options.input.is_empty() && options.output.is_empty()) {
        let help = llvm_cl::help_list(tool, &invocation.program, false);
        return report::print_help(&invocation.typed, &help);
    }
    run(&invocation.typed, &options)
}

/// Returns whether the arguments of this process ask for LLVM 24.
fn is_for_24() -> bool {
    let mut args = std::env::args_os().skip(1);
    let mut last = None;
    while let Some(arg) = args.next() {
        match arg.to_str().map(|arg| arg.trim_start_matches('-')) {
            Some("release") => last = args.next(),
            Some(text) => last = text.strip_prefix("release=").map(Into::into).or(last),
            None => {}
        }
    }
    last.is_some_and(|release| release == "24")
}

fn run(tool: &str, options: &Options) -> ExitCode {
    if !options.input.is_empty() && !options.output.is_empty() {
        report::error_of(
            tool,
            &"Packaging to an output file and extracting from an input file are mutually exclusive.",
        );
        return ExitCode::FAILURE;
    }
    if options.output.is_empty() {
        let mut report = extract::Report::default();
        let done = extract::extract(options, &mut report);
        report.warnings.iter().for_each(|warning| report::warning_of(tool, warning));
        report.errors.iter().for_each(|error| report::error_of(tool, error));
        return match done {
            Ok(()) if report.errors.is_empty() => ExitCode::SUCCESS,
            Ok(()) => ExitCode::FAILURE,
            Err(error) => report::end(tool, &error),
        };
    }
    for spec in &options.images {
        if let Err(kind) = spec.kind() {
            let text = spec.text();
            let message =
                format!("'--image={text}': unknown offload kind '{kind}' is stored as none");
            report::warning_of(tool, &message);
        }
        if spec.get("triple").is_none() && spec.get("file").is_some() {
            report::warning_of(tool, &format_args!("'--image={}' has no 'triple'", spec.text()));
        }
    }
    match bundle(options).map_err(report::reason_first) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::end(tool, &error),
    }
}

fn bundle(options: &Options) -> io::Result<()> {
    let mut package =
        Package::new(&options.images, options.version, options.release, MaxInput::default())?;
    if let Some(how) = &options.compression {
        package.compress(how)?;
    }
    if options.output == b"-" {
        return package.write_to(&mut standard::output()?);
    }
    let mut outputs = Outputs::default();
    let (output, how) = (Name::Typed(input::path(&options.output)), package.permissions().into());
    outputs.write(&output, how, |file| package.write_to(file))?;
    outputs.commit()
}
