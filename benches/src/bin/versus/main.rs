//! Our tools beside LLVM 22's, `cp`, `zstd` and `llc`, on the same inputs, in one run, alternating:
//! `cargo run --release -p offload-benches --bin versus`. `--help` says what it can be asked for.
//!
//! Every figure is the median of runs; ratios are medians of the ratios of runs side by side. Compare ratios, not
//! milliseconds. Outputs are compared, once for each input, outside of the time that is measured. A missed target
//! is reported and is not a failure: the exit status shows only whether commands worked and outputs are right. The output is
//! the Markdown of `docs/details/performance.md`.
#![forbid(unsafe_code)]

mod bench;
mod machine;
mod operations;
mod options;
mod record;
mod report;
mod targets;

use std::error::Error;
use std::process::ExitCode;

use bench::Bench;
use operations::Operation;
use options::Options;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("versus: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    if offload_benches::child()? {
        return Ok(());
    }
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        options::help();
        return Ok(());
    };
    let chosen: Vec<&Operation> =
        operations::OPERATIONS.iter().filter(|operation| options.chooses(operation.name)).collect();
    let mut bench = Bench::new(options)?;
    bench.check_space(&chosen)?;
    println!("Measured on: {}.", bench.machine);
    for operation in chosen {
        println!("\n### `{}`\n\n{}.\n", operation.name, capitalized(operation.about));
        println!("{}", report::head(operation.name));
        for size in operation.chosen_sizes(bench.options.max_size) {
            bench.clear()?;
            (operation.run)(&mut bench, operation, size)?;
        }
    }
    bench.clear()?;
    println!("\n{}", report::targets(&bench.targets));
    Ok(())
}

fn capitalized(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}
