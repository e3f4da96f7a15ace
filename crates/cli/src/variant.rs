//! `offload variant`: variants of wheels (PEP 825, a draft), and the code that they declare.

mod check;
mod index;
mod make;
mod making;
mod show;
mod split;

use std::io;

use tool_kit::Outcome;

/// Show, check, make, split and index variants of wheels
///
/// A variant of a wheel declares the GPUs that it is for, so that installers choose it. PEP 825 describes variants; it is a draft, and
/// this is version 0.1.1 of its form. The properties of GPUs are `nvidia :: sm_arch :: 90_real` (machine code), `nvidia :: sm_arch :: 90_virtual` (PTX) and
/// `amd :: gfx_arch :: gfx1100`. Others are kept as they are.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Show(show::Args),
    Check(check::Args),
    Make(make::Args),
    Split(split::Args),
    Index(index::Args),
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    match &args.action {
        Action::Show(args) => show::run(args),
        Action::Check(args) => check::run(args),
        Action::Make(args) => make::run(args),
        Action::Split(args) => split::run(args),
        Action::Index(args) => index::run(args),
    }
}
