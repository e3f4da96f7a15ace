//! `roc-obj-extract`: the bytes that URIs name, into files.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::uri::{Uri, UriSource};
use crate::drop_in;
use crate::llvm_cl::{Kind, Opt, Print, Tool};
use tool_kit::opened::Opened;
use tool_kit::output::{self, Outputs};
use tool_kit::style::{show, text};
use tool_kit::{input, report, standard, style};

/// The options of `roc-obj-extract`.
pub static TOOL: Tool = Tool {
    overview: "Extract the bytes that URIs name, such as file://libfoo.so#offset=8192&size=3208 or memory://1234#offset=0x20000&size=3000. Without URIs, they are read from standard input: one in each line, or lines of roc-obj-ls.",
    positionals: "<URIs>",
    min_positionals: 0,
    max_positionals: usize::MAX,
    heading: "roc-obj-extract options:",
    options: &[
        Opt {
            is_joined: true,
            ..Opt::new(
                "o",
                Kind::Value,
                "path",
                "Write FILE-offsetN-sizeN.co or pidN-offsetN-sizeN.co to this directory (default: the current one); - is standard output",
            )
        },
        Opt::new("v", Kind::Bool, "", "Print what is extracted"),
        Opt::new(
            "h",
            Kind::Print(Print::Help { list: false, hidden: false }),
            "",
            "Alias for --help",
        ),
    ],
    version: concat!(
        "offload ",
        env!("CARGO_PKG_VERSION"),
        ", in place of roc-obj-extract of ROCm\n"
    ),
};

const NAME: &str = "roc-obj-extract";

/// Bound on what is read of standard input.
const MAX_LINES: u64 = 64 << 20;

/// Runs `roc-obj-extract` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let (invocation, matches) = match drop_in::start(&TOOL, NAME) {
        Ok(started) => started,
        Err(exit) => return exit,
    };
    let tool = &*invocation.typed;
    let fail = |what: &dyn std::fmt::Display| {
        report::error_of(tool, what);
        ExitCode::FAILURE
    };
    let output = input::path(matches.value("o").unwrap_or(b"."));
    if output.as_os_str() != "-" && !output.is_dir() {
        return fail(&format_args!("{}: expected a directory", output.display()));
    }
    let mut uris = matches.positionals.clone();
    if uris.is_empty() {
        uris = match lines() {
            Ok(lines) => lines,
            Err(error) => return fail(&format_args!("<stdin>: {}", report::reason(&error))),
        };
    }
    if uris.is_empty() {
        return fail(&"no URIs: expected arguments, or lines on standard input");
    }
    let mut failed: u8 = 0;
    for text in uris {
        let uri = Uri::parse(&text).map_err(io::Error::other);
        let extracted = uri.and_then(|uri| extract(&uri, &output));
        let told = extracted
            .and_then(|what| if matches.is_on("v") { tell(&what, &output) } else { Ok(()) });
        if let Err(error) = told {
            if error.kind() == io::ErrorKind::BrokenPipe {
                return report::end(tool, &error);
            }
            let text = String::from_utf8_lossy(&text);
            fail(&format_args!("{text}: {}", report::reason(&error)));
            // The exit status has no larger number.
            failed = failed.saturating_add(1);
        }
    }
    ExitCode::from(failed)
}

/// Returns the lines of standard input that should hold URIs: not the text that `roc-obj-ls -v` prints around bundles.
fn lines() -> io::Result<Vec<Vec<u8>>> {
    let file = standard::input()?;
    if file.is_terminal() {
        return Ok(Vec::new());
    }
    let mut text = Vec::new();
    if file.take(MAX_LINES + 1).read_to_end(&mut text)? as u64 > MAX_LINES {
        return Err(io::Error::other(format!("exceeds the limit of {}", style::size(MAX_LINES))));
    }
    let lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"Bundle#"));
    Ok(lines.map(<[u8]>::to_vec).collect())
}

/// Extracts the bytes of a URI, and returns a message about it. Writes nothing for a URI of no bytes.
fn extract(uri: &Uri, output: &Path) -> io::Result<String> {
    let (path, mut name) = match &uri.place {
        // A path without a name is a directory, which is refused below.
        UriSource::File(path) => (path.clone(), path.file_name().unwrap_or_default().to_owned()),
        UriSource::Memory(pid) => {
            (PathBuf::from(format!("/proc/{pid}/mem")), OsString::from(format!("pid{pid}")))
        }
    };
    let opened = Opened::regular(&path)?;
    let offset = uri.offset;
    let length = match uri.place {
        UriSource::File(_) => opened.file.metadata()?.len(),
        UriSource::Memory(_) => u64::MAX,
    };
    // An offset past the end is refused, with any size.
    let size = uri.size.unwrap_or(length.saturating_sub(offset));
    let Some(end) = offset.checked_add(size).filter(|end| *end <= length) else {
        return Err(io::Error::other(format!(
            "range of {size} bytes at offset {offset}: exceeds the file of {length} bytes"
        )));
    };
    let from = path.display();
    if size == 0 {
        return Ok(format!("{from}: offset {offset}: nothing to extract"));
    }
    let what = format!("{from}: offset {offset}: {size} bytes");
    let write = |file: &mut File| output::copy_part(&opened.file, offset..end, file);
    let mut outputs = Outputs::default();
    if output.as_os_str() == "-" {
        outputs.write_or_print(output, opened.permissions().of_part(), write)?;
        return Ok(what);
    }
    name.push(format!("-offset{offset}-size{size}.co"));
    let shown = output.join(&name);
    let file = outputs.make_directory(output)?.file(name);
    outputs.write(&file, opened.permissions().of_part().into(), write)?;
    outputs.commit()?;
    Ok(format!("{what} to {}", shown.display()))
}

/// Prints a message about the extracted data: on standard error if the data is written to standard output.
fn tell(what: &str, output: &Path) -> io::Result<()> {
    if output.as_os_str() == "-" {
        report::say(&text!("{what}"));
        return Ok(());
    }
    let mut out = style::stdout();
    show!(out, "{what}").and_then(|()| out.flush()).map_err(|error| {
        io::Error::new(error.kind(), format!("<stdout>: {}", report::reason(&error)))
    })
}
