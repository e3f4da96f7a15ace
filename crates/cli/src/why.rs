//! `offload why`: the explanation of a message that a program printed.

use std::io::{self, Read};

use tool_kit::Outcome;
use tool_kit::explain::explain;

/// The page of docs with a section for each message.
const PAGE: &str = include_str!("why/messages.md");

/// The most bytes of a program's output that are looked at.
const MOST: u64 = 16 << 20;

/// Explain an error message about device code, and what helps
///
/// Prints what the message means, the command that finds the cause, and what helps. Exits with 1 if no message is known.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The message, a part of it, or the name of an error; - is standard input
    #[arg(required = true, value_name = "MESSAGE")]
    message: Vec<String>,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let text = match &args.message[..] {
        [only] if only == "-" => {
            let mut bytes = Vec::new();
            io::stdin().lock().take(MOST).read_to_end(&mut bytes)?;
            String::from_utf8_lossy(&bytes).into_owned()
        }
        words => words.join(" "),
    };
    explain(PAGE, &text)
}
