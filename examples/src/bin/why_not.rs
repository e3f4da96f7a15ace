//! Why does this image not run on my GPU? `cargo run -p offload-examples --bin why_not -- gfx90a:xnack+ ENTRY-ID...`
#![forbid(unsafe_code)]

use std::process::ExitCode;

use bundle_format::EntryId;
use target_id::{Target, compatible};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let Some(gpu) = args.next() else {
        eprintln!("usage: why_not TARGET-ID ENTRY-ID...");
        return ExitCode::from(2);
    };
    let device = Target::new(None, None, &gpu);
    for text in args {
        match EntryId::parse(&text) {
            Ok(id) => println!("{text}: {}", compatible(&id.target(), &device)),
            Err(error) => println!("{text}: {error}"),
        }
    }
    ExitCode::SUCCESS
}
