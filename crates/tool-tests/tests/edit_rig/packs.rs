//! A stand-in for ROCm's loader of kernel packs: it finds the code objects of a split file as the loader does, from what its
//! wrappers told the stand-in for the runtime.

use std::fs;
use std::path::Path;

use kpack::search::{self, Loader, Variables};
use kpack::{Kpack, Marker, Scheme, Toc};

use super::Complaints;
use super::check::difference;
use super::hip::Bundle;
use super::observe::Seen;

/// A GPU, by its targets in the order of the runtime.
#[derive(Debug)]
pub struct Gpu {
    targets: &'static [&'static str],
    /// The targets of code that it takes, the best first.
    takes: &'static [&'static str],
}

/// GPUs that take the code of each target in the files, and one that takes none of it.
pub const GPUS: [Gpu; 7] = [
    Gpu { targets: &["amdgcn-amd-amdhsa--gfx1100", "gfx11-generic"], takes: &["gfx1100"] },
    Gpu {
        targets: &["amdgcn-amd-amdhsa--gfx906:sramecc+:xnack-", "gfx9-generic:xnack-"],
        takes: &["gfx906", "gfx9-generic"],
    },
    Gpu {
        targets: &["amdgcn-amd-amdhsa--gfx900:xnack-", "gfx9-generic:xnack-"],
        takes: &["gfx9-generic"],
    },
    Gpu { targets: &["amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack+"], takes: &["gfx90a:xnack+"] },
    Gpu { targets: &["amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-"], takes: &["gfx90a:xnack-"] },
    Gpu {
        targets: &["amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-", "gfx9-4-generic:xnack-"],
        takes: &["gfx942"],
    },
    Gpu { targets: &["amdgcn-amd-amdhsa--gfx1030", "gfx10-3-generic"], takes: &[] },
];

/// A wrapper of a split file.
struct Wrapper {
    index: u64,
    marker: Marker,
}

/// The words of the log about a wrapper of a split file, before its index.
const SPLIT: &str = "magic HIPK, version 1, index ";

/// Returns the behaviour of a split file as its log would have it with a bundle for each wrapper, and of the pages of
/// markers the markers only.
pub fn as_before(seen: &Seen) -> Seen {
    let line = |line: &str| match line.split_once(SPLIT) {
        Some((start, _)) => format!("{start}magic FPIH, version 1, unused 0\n"),
        None => format!("{line}\n"),
    };
    let marker = |page: &Vec<u8>| {
        let size = Marker::parse(page).map_or(0, |(_, size)| size);
        page[..size].to_vec()
    };
    Seen {
        log: seen.log.lines().map(line).collect(),
        containers: seen.containers.iter().map(marker).collect(),
        ..seen.clone()
    }
}

fn wrappers(seen: &Seen) -> Result<Vec<Wrapper>, String> {
    let indices =
        seen.log.lines().filter_map(|line| line.split_once(SPLIT)).map(|(_, n)| n.parse());
    let indices: Vec<u64> = indices.collect::<Result<_, _>>().map_err(|_| seen.log.clone())?;
    if indices.len() != seen.containers.len() {
        return Err(format!("{} markers: {}", indices.len(), seen.log));
    }
    let wrapper = |(n, page): (usize, &Vec<u8>)| {
        let marker = Marker::parse(page).map_err(|error| format!("marker {n}: {error}"))?.0;
        Ok(Wrapper { index: indices[n], marker })
    };
    seen.containers.iter().enumerate().map(wrapper).collect()
}

/// Returns the code objects that the wrappers of a file in a directory get for a GPU.
fn found(
    directory: &Path,
    wrappers: &[Wrapper],
    gpu: &Gpu,
    loader: Loader,
) -> Result<Vec<Option<Vec<u8>>>, String> {
    let mut codes = Vec::new();
    for one in wrappers.chunk_by(|one, other| one.marker == other.marker) {
        let marker = &one[0].marker;
        let places = search::places(marker.search_paths(), &Variables::default(), gpu.targets);
        let paths = places.iter().map(|place| directory.join(place.path()));
        let bytes: Vec<Vec<u8>> = paths.filter_map(|path| fs::read(path).ok()).collect();
        let packs = bytes.iter().map(|bytes| Kpack::parse(bytes)).collect::<Result<Vec<_>, _>>();
        let packs = packs.map_err(|error| error.to_string())?;
        let tables: Vec<&Toc> = packs.iter().map(Kpack::toc).collect();
        for wrapper in one {
            let key = search::key(marker.kernel_name(), wrapper.index);
            let hit = search::lookup(&tables, gpu.targets, &key, loader).ok();
            let code = hit.map(|hit| {
                let stored = packs[hit.pack].stored(hit.entry).ok_or("no code object")?;
                match packs[hit.pack].toc().scheme() {
                    Scheme::Plain => Ok(stored.to_vec()),
                    Scheme::Zstd => kpack::decompress(stored, hit.entry.original_size())
                        .map_err(|error| error.to_string()),
                }
            });
            codes.push(code.transpose()?);
        }
    }
    Ok(codes)
}

/// Returns the complaints about the code objects that the wrappers of a split file get: each gets what a GPU takes of the
/// bundle that it had, and nothing else. `directory` is where the file lies.
pub fn check(directory: &Path, seen: &Seen, bundles: &[Bundle]) -> Complaints {
    let wrappers = match wrappers(seen) {
        Ok(wrappers) => wrappers,
        Err(error) => return vec![error],
    };
    let mut complaints = Complaints::new();
    if wrappers.len() != bundles.len() {
        complaints.push(format!("{} wrappers, not {}", wrappers.len(), bundles.len()));
    }
    for gpu in &GPUS {
        for loader in [Loader::First, Loader::Later] {
            let codes = match found(directory, &wrappers, gpu, loader) {
                Ok(codes) => codes,
                Err(error) => {
                    complaints.push(format!("{}: {error}", gpu.targets[0]));
                    continue;
                }
            };
            for (n, (code, bundle)) in codes.iter().zip(bundles).enumerate() {
                let name = format!("wrapper {n}: {}", gpu.targets[0]);
                let right = gpu.takes.iter().find_map(|target| bundle.image(target));
                complaints.extend(match (code, right) {
                    (Some(code), Some(right)) => difference(&name, code, right),
                    (Some(_), None) => Some(format!("{name}: code of another wrapper or GPU")),
                    (None, Some(_)) => Some(format!("{name}: no code")),
                    (None, None) => None,
                });
            }
        }
    }
    complaints
}
