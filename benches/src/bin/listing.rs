//! How fast `offload` starts and lists, and how much memory that takes, beside LLVM's tools where they are
//! installed: `cargo run --release -p offload-benches --bin listing`.
//!
//! Each row is the median of alternating runs in one go; compare ratios, not milliseconds.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use bundle_format::Layout;
use offload_benches::{Measured, build, child, heading, llvm, measure};

const RUNS: usize = 15;

fn main() -> Result<(), Box<dyn Error>> {
    if child()? {
        return Ok(());
    }
    let offload = build("offload")?;
    let place = tempfile::tempdir()?;
    heading(RUNS);
    measure(RUNS, &[("offload --version", &offload, vec!["--version".into()])], || Ok(()))?;
    for mib in [1, 64, 1024] {
        let bundle = place.path().join(format!("bundle-{mib}-MiB"));
        make_bundle(&bundle, mib << 20)?;
        println!("\nplain bundle of {mib} MiB, 10 entries");
        let name = bundle.display();
        let mut commands: Vec<Measured<'_>> =
            vec![("offload ls", &offload, vec!["ls".into(), bundle.clone().into()])];
        let peer = llvm("clang-offload-bundler");
        if let Some(peer) = &peer {
            let args = ["--list".to_owned(), "--type=o".to_owned(), format!("--input={name}")];
            commands.push(("clang-offload-bundler --list", peer, args.map(Into::into).into()));
        }
        measure(RUNS, &commands, || Ok(()))?;
    }
    Ok(())
}

/// A HIP fat binary: an empty host entry and nine code objects of equal size. Only headers are read, so the payloads
/// may be holes.
fn make_bundle(path: &Path, size: u64) -> Result<(), Box<dyn Error>> {
    let archs = [
        "gfx803",
        "gfx900",
        "gfx906:xnack-",
        "gfx908:xnack-",
        "gfx90a:xnack+",
        "gfx90a:xnack-",
        "gfx942",
        "gfx1030",
        "gfx1100",
    ];
    let mut entries = vec![("host-x86_64-unknown-linux-gnu-".to_owned(), 0)];
    entries.extend(archs.map(|arch| (format!("hipv4-amdgcn-amd-amdhsa--{arch}"), size / 9)));
    let layout = Layout::new(entries.iter().map(|(id, size)| (id.as_bytes(), *size)), 4096)?;
    let mut file = File::create(path)?;
    file.write_all(layout.header_bytes())?;
    for i in 1..entries.len() {
        file.seek(SeekFrom::Start(layout.offset(i).ok_or("no such entry")?))?;
        file.write_all(b"\x7fELF\x02\x01\x01\x40\x03\0\0\0\0\0\0\0\x03\0\xe0\0")?;
    }
    file.set_len(layout.total_size())?;
    Ok(())
}
