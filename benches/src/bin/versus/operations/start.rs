//! Start-up times of tools and libraries.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use byte_parts::Part;
use offload_benches::median;
use offload_binary::{FormatVersion, ImageEntry, OffloadBinary, OffloadKind};

use super::{Done, Operation};
use crate::bench::{Bench, theirs};
use crate::record::{Command, Who};

pub(super) fn version(bench: &mut Bench, operation: &Operation, size: u64) -> Done {
    let args = || vec!["--version".into()];
    let mut commands = vec![bench.our("offload --version", "offload", args())];
    let bundler = "clang-offload-bundler";
    commands.push(bench.our("clang-offload-bundler --version", bundler, args()));
    commands.push(theirs("LLVM 22's clang-offload-bundler --version", bundler, args()));
    let nothing = "true, which does nothing".to_owned();
    commands.push(Command {
        who: Who::Cp,
        name: nothing,
        program: "/bin/true".into(),
        args: Vec::new(),
    });
    bench.compare(operation, "", size, commands, |_, _| Ok(None))?;
    Ok(())
}

/// No process: this very program reads headers.
pub(super) fn parse(bench: &mut Bench, _: &Operation, _: u64) -> Result<(), Box<dyn Error>> {
    let small = nanoseconds_per_entry(1 << 10)?;
    let large = nanoseconds_per_entry(1 << 30)?;
    println!("\n  {small:.1} ns per entry of 1 KiB, {large:.1} ns per entry of 1 GiB");
    bench.judge("parse", Some(large))?;
    bench.judge("parse growth", Some(large / small))
}

/// Parses an offload binary of version 2, which holds all images.
fn nanoseconds_per_entry(size: u64) -> Result<f64, Box<dyn Error>> {
    const ENTRIES: u32 = 1000;
    const TIMES: u32 = 20;
    const RUNS: usize = 21;
    let archs: Vec<_> = (0..ENTRIES).map(|n| format!("gfx{n}")).collect();
    let entries: Vec<_> = archs
        .iter()
        .map(|arch| {
            let entry = ImageEntry::new(size).with_string("triple", "amdgcn-amd-amdhsa");
            entry.with_string("arch", arch).with_offload_kind(OffloadKind::HIP)
        })
        .collect();
    let layout = offload_binary::layout(FormatVersion::V2, &entries)?;
    let Some((_, Part::Bytes(header))) = layout.parts().at(0) else {
        return Err("no header".into());
    };
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        for _ in 0..TIMES {
            let binary = OffloadBinary::parse_prefix(black_box(header), layout.size())?;
            let found = binary.entries().filter_map(|entry| entry.arch()).count();
            if found != archs.len() {
                return Err("entries are missing".into());
            }
        }
        seconds.push(start.elapsed().as_secs_f64());
    }
    Ok(median(seconds.into_iter()) / f64::from(TIMES * ENTRIES) * 1e9)
}
