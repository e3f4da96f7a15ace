//! `offload explain`: the explanation of the code of a finding.

use std::io;

use tool_kit::Outcome;
use tool_kit::explain::{explain_title, titles};
use tool_kit::style::{self, show};

/// The page of docs with a section for each code.
const PAGE: &str = include_str!("explain/codes.md");

/// Explain the code of a finding, and what helps
///
/// Findings of check, match, verify, doctor, variant check, kernels --fail-on and diff --fail-on have codes such as
/// targets/missing. Without a code, lists all.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The code of a finding
    #[arg(value_name = "CODE")]
    code: Option<String>,
}

/// Returns all codes.
pub(crate) fn codes() -> impl Iterator<Item = &'static str> {
    titles(PAGE)
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    if let Some(code) = &args.code {
        return explain_title(PAGE, code);
    }
    let mut out = style::stdout();
    codes().try_for_each(|title| show!(out, "{title}"))?;
    out.flush().map(|()| Outcome::Clean)
}
