//! Properties of any input: the oracles of the fuzz targets.
//!
//! A fuzz target is one call of a function here. The tests run each function over the example files with any compiler.
//! The functions panic when something does not hold.

#![forbid(unsafe_code)]
// A judge panics on failure, and runs where `usize` has 64 bits.
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

pub mod agreement;
pub mod ar;
pub mod archives;
pub mod bare;
pub mod bitcode;
pub mod bundles;
pub mod compressed;
pub mod edits;
pub mod faults;
pub mod fields;
pub mod hcf;
pub mod hosts;
pub mod ids;
pub mod linked;
pub mod load;
pub mod model;
pub mod objects;
pub mod packages;
pub mod streams;
pub mod sycl;
pub mod walks;
pub mod wrappers;

/// Bitcode that the tests of `llvm-bitcode` are made of.
#[path = "../../llvm-bitcode/tests/bits/mod.rs"]
mod bits;

/// Parses ever longer prefixes of `data`, as long as `parse` asks for more. `parse` gets the prefix and says
/// how many bytes it needs, or `None` when it is done. Returns the last prefix and the number of calls.
fn grow_prefix(data: &[u8], parse: impl Fn(&[u8]) -> Option<u64>) -> (&[u8], usize) {
    let mut prefix = &data[..0];
    for calls in 1.. {
        let Some(needed) = parse(prefix) else {
            return (prefix, calls);
        };
        let needed = usize::try_from(needed).expect("asks for no more than there is");
        assert!(needed > prefix.len(), "asks for {needed} bytes and has {}", prefix.len());
        assert!(needed <= data.len(), "asks for {needed} bytes of {}", data.len());
        prefix = &data[..needed];
    }
    unreachable!("each call has a longer prefix");
}

/// Returns bytes without any order, the same for the same state.
#[cfg(test)]
fn noise(state: &mut u64, len: usize) -> Vec<u8> {
    let next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_le_bytes()[6]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Returns whether a message is one line that a terminal shows as it is.
fn assert_message(error: &impl std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every example file, and what follows each container magic in it.
    fn samples() -> Vec<Vec<u8>> {
        let magics: [&[u8]; 3] = [&bundle_format::MAGIC, &ccob::MAGIC, &offload_binary::MAGIC];
        let mut samples = vec![Vec::new()];
        for file in std::fs::read_dir("../../examples/data").unwrap() {
            let path = file.unwrap().path();
            if !path.is_file() {
                continue;
            }
            let file = std::fs::read(path).unwrap();
            for at in 0..file.len() {
                if magics.iter().any(|magic| file[at..].starts_with(magic)) {
                    samples.push(file[at..].to_vec());
                }
            }
            samples.push(file);
        }
        assert!(samples.len() > 50, "only {}", samples.len());
        samples
    }

    fn over_samples(mut check: impl FnMut(&[u8])) {
        samples().iter().for_each(|sample| check(sample));
    }

    #[test]
    fn archive_samples() {
        over_samples(archives::check);
    }

    #[test]
    fn bare_samples() {
        over_samples(|sample| {
            for at in (0..sample.len()).step_by(997) {
                bare::check(&sample[at..]);
            }
        });
    }

    #[test]
    fn load_samples() {
        let mut loaded = 0;
        over_samples(|sample| loaded += load::check(sample));
        assert!(loaded > 20, "only {loaded}");
        over_samples(|sample| {
            for at in (0..sample.len().min(4096)).step_by(61) {
                let mut damaged = sample.to_vec();
                damaged[at] ^= 1;
                load::check(&damaged);
                load::check(&sample[..at]);
            }
        });
    }

    #[test]
    fn bitcode_samples() {
        over_samples(bitcode::check);
    }

    #[test]
    fn bundle_samples() {
        over_samples(bundles::check_binary);
        over_samples(bundles::check_text);
        over_samples(bundles::check_end_marked);
    }

    #[test]
    fn compressed_samples() {
        over_samples(compressed::check_header);
        over_samples(compressed::check);
    }

    #[test]
    fn edit_samples() {
        over_samples(edits::check);
        over_samples(|sample| {
            for at in (0..sample.len()).step_by(997) {
                edits::check_model(&sample[at..]);
            }
        });
    }

    #[test]
    fn object_samples() {
        over_samples(objects::check);
    }

    #[test]
    fn package_samples() {
        over_samples(packages::check);
    }

    /// A length of 0 is not a request to remove.
    #[test]
    fn edits_of_bundles_that_claim_to_be_empty() {
        let mut claims = 0;
        for mut sample in samples().into_iter().filter(|sample| sample.starts_with(&ccob::MAGIC)) {
            let size = match sample[4] {
                2 => 12..16,
                3 => 16..24,
                _ => continue,
            };
            sample[size].fill(0);
            claims += 1;
            (0..100_u64).for_each(|n| {
                let seed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                edits::check_seeded(&sample, seed, &|_| {});
            });
        }
        assert!(claims > 4, "only {claims}");
    }

    #[test]
    fn faulty_samples() {
        over_samples(faults::check);
    }

    #[test]
    fn id_samples() {
        over_samples(|sample| {
            let text = String::from_utf8_lossy(sample);
            ids::check_entry_ids(&text);
            ids::check_targets(&text);
        });
    }

    #[test]
    fn names_of_processors() {
        let ids = [
            "gfx1250-strict:xnack+",
            "gfx12-5-generic",
            "amdgpu12.50s",
            "amdgpu12.50s-amd-amdhsa-unknown-gfx1250-strict:xnack-",
            "xe-bmg-g21",
            "20.1.4",
            "intel_gpu_bmg",
            "sm_107f",
            "generic",
        ];
        for arch in ["amdgcn", "amdgpu12.50s", "amdgpu99", "spir64_gen", "nvptx64"] {
            for pair in ids.windows(2) {
                let lines = pair.iter().map(|id| format!("? ? {id}\nhip {arch}-amd-amdhsa {id}\n"));
                ids::check_targets(&lines.collect::<String>());
            }
        }
    }

    #[test]
    fn walk_samples() {
        over_samples(walks::check);
    }

    #[test]
    fn wrapper_samples() {
        over_samples(|sample| {
            wrappers::check_image(sample);
            // Any bytes are images and options.
            for at in (0..sample.len()).step_by(997) {
                wrappers::check(&sample[at..]);
            }
        });
    }

    #[test]
    fn models_have_packages_of_every_form() {
        let mut forms = std::collections::BTreeSet::new();
        over_samples(|sample| {
            let models = (0..sample.len()).step_by(997).filter_map(|at| model::make(&sample[at..]));
            for file in models {
                for package in file.windows(40).filter(|w| w.starts_with(&offload_binary::MAGIC)) {
                    let version = package[4];
                    forms.insert((version, version == 3 && package[32..] != [0; 8]));
                }
            }
        });
        for form in [(1, false), (2, false), (3, false), (3, true)] {
            assert!(forms.contains(&form), "{form:?} in {forms:?}");
        }
    }

    #[test]
    fn model_samples() {
        // Any bytes are a model.
        over_samples(|sample| {
            for at in (0..sample.len()).step_by(997) {
                agreement::check(&sample[at..]);
                model::check_walk(&sample[at..]);
                model::check_bundle(&sample[at..]);
                packages::check_layout(&sample[at..]);
                streams::check(&sample[at..]);
            }
            // These take longer.
            for at in (0..sample.len()).step_by(3989) {
                ar::check(&sample[at..]);
                faults::check_model(&sample[at..]);
                hosts::check(&sample[at..]);
                linked::check(&sample[at..]);
            }
        });
    }
}
