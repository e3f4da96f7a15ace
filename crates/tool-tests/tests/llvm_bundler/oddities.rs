//! Runs that end otherwise on purpose.

use super::harness::Outcome;

/// Expected end of a run: its exit status, and words on standard error or output; or a crash.
#[derive(Clone, Copy, Debug)]
pub enum End {
    Succeeds(&'static str),
    Fails(&'static str),
    Crashes,
}

use End::{Crashes, Fails, Succeeds};

impl End {
    pub fn is_that_of(self, outcome: &Outcome) -> bool {
        let says = |words: &str| {
            outcome.stderr.contains(words)
                || String::from_utf8_lossy(&outcome.stdout).contains(words)
        };
        match self {
            Succeeds(words) => outcome.status == Some(0) && says(words),
            Fails(words) => outcome.status == Some(1) && says(words),
            Crashes => outcome.status.is_none(),
        }
    }
}

/// Runs that end otherwise here than with LLVM 22, each on purpose: the line, theirs, ours, why.
pub const ODDITIES: &[(&str, End, End, &str)] = &[
    (
        "-type=bc -targets=H,D -input=in/text0 -input=in/text1 -output=out -bundle-align=0",
        Crashes,
        Fails("-bundle-align must be at least 1"),
        "division by zero",
    ),
    (
        "-type=o -targets=D -input=in/device.o -output=out",
        Crashes,
        Succeeds(""),
        "HIP images alone, which are objects: a binary bundle",
    ),
    (
        "-type=bc -list -input=cut-in-table",
        Succeeds(""),
        Fails("'cut-in-table': "),
        "damage is told",
    ),
    (
        "-type=bc -list -input=cut-in-count",
        Succeeds(""),
        Fails("'cut-in-count': "),
        "damage is told",
    ),
    ("-type=bc -list -input=cut-in-image", Crashes, Fails("'cut-in-image': "), "damage is told"),
    (
        "-type=bc -unbundle -targets=H -input=cut-in-image -output=out",
        Crashes,
        Fails("'cut-in-image': "),
        "damage is told",
    ),
    (
        "-type=bc -list -input=wrong-hash",
        Succeeds("host-"),
        Succeeds("host-"),
        "tables are listed without the hash",
    ),
    (
        "-type=bc -list -verbose -input=wrong-hash",
        Succeeds("host-"),
        Fails("hash"),
        "the hash is checked",
    ),
    (
        "-type=bc -unbundle -targets=H -input=wrong-hash -output=out",
        Succeeds(""),
        Fails("hash"),
        "the hash is checked",
    ),
    (
        "-type=bc -list -input=two-packed",
        Fails("Src size is incorrect"),
        Succeeds("host-"),
        "several compressed bundles, as in any HIP program of several units",
    ),
    (
        "-type=bc -list -input=packed-and-zeros",
        Fails("Src size is incorrect"),
        Succeeds("host-"),
        "zeros after a compressed bundle",
    ),
    (
        "-type=s -list -input=first-line",
        Succeeds("hip-"),
        Succeeds("host-"),
        "a marker on the first line",
    ),
    (
        "-type=bc -unbundle -targets=openmp-amdgcn-amd-amdhsa--gfx906 -input=three-fields -output=out",
        Fails("Can't find bundles for openmp-amdgcn-amd-amdhsa--gfx906"),
        Succeeds(""),
        "triples of three fields, as clang wrote them once",
    ),
    (
        "-type=s -targets=H,hip-nvptx64-nvidia-cuda-sm_70 -input=in/text0 -input=in/text1 -output=-",
        Succeeds("hip-nvptx64-nvidia-cuda-sm_70-\n"),
        Succeeds("hip-nvptx64-nvidia-cuda-unknown-sm_70\n"),
        "LLVM takes the target ID after three fields for an environment",
    ),
    (
        "-type=s -targets=host-x86_64-unknown-linux-gnu-foo -input=in/text0 -output=-",
        Succeeds("host-x86_64-unknown-linux-gnu-\n"),
        Succeeds("unknown processor 'foo', kept as it is"),
        "what LLVM does not know it drops",
    ),
    (
        "-type=s -targets=H,hip-amdgcn-amd-amdhsa--gfx940 -input=in/text0 -input=in/text1 -output=-",
        Succeeds("START__ hip-amdgcn-amd-amdhsa--\n"),
        Succeeds("START__ hip-amdgcn-amd-amdhsa--gfx940\n"),
        "what LLVM does not know it drops",
    ),
    (
        "-type=s -targets=H,hip-amdgpu-amd-amdhsa--gfx906 -input=in/text0 -input=in/text1 -output=-",
        Fails("unknown target triple 'amdgpu-amd-amdhsa-'"),
        Succeeds("hip-amdgpu-amd-amdhsa--gfx906"),
        "an architecture of LLVM 23",
    ),
    (
        "-type=s -targets=H,hip-amdgcn-amd-amdhsa--gfx906,hip-amdgcn-amd-amdhsa-unknown-gfx906 -input=in/text0 -input=in/text1 -input=in/text2 -output=out",
        Succeeds(""),
        Fails("Duplicate targets are not allowed"),
        "two spellings of one ID make a bundle with an entry that nobody gets",
    ),
    (
        "-type=s -targets=H,hip-amdgcn-amd-amdhsa--gfx906:sramecc+:xnack+,hip-amdgcn-amd-amdhsa--gfx906:xnack- -input=in/text0 -input=in/text1 -input=in/text2 -output=out",
        Succeeds(""),
        Fails("Cannot bundle inputs with conflicting targets: "),
        "LLVM looks for a feature in one only of the two",
    ),
    (
        "-type=s -targets=H,D -input=in/text0 -input=bundle.s -output=out",
        Succeeds(""),
        Fails("marker line in its content"),
        "what could not be taken apart again",
    ),
    (
        "-type=s -targets=H,D -input=- -input=- -output=out",
        Succeeds(""),
        Fails("standard input can be one input only"),
        "the second would be empty",
    ),
    (
        "-type=bc -unbundle -targets=H,D -input=bundle.bc -output=a -output=a",
        Succeeds(""),
        Fails("'a': is the output for more than one target"),
        "one of the two would be lost",
    ),
    (
        "-type=s -list -input=bundle.bc",
        Succeeds(""),
        Fails("found a binary bundle"),
        "not nothing, but another form",
    ),
    (
        "-type=bc -list -input=bundle.s",
        Succeeds(""),
        Fails("found a text bundle"),
        "not nothing, but another form",
    ),
    (
        "-type=ll -list -input=bundle.s",
        Succeeds(""),
        Fails("found a text bundle"),
        "not nothing, but another form",
    ),
    (
        "-type=bc -list -input=bundle.o",
        Succeeds(""),
        Fails("found an object"),
        "not nothing, but another form",
    ),
    (
        "-type=s -list -input=bundle.ccob",
        Succeeds(""),
        Fails("found a binary bundle"),
        "not nothing, but another form",
    ),
    (
        "-type=a -list -input=in/text0",
        Succeeds(""),
        Fails("not an archive"),
        "not nothing, but no archive",
    ),
    (
        "-type=a -unbundle -targets=D -input=lib.a -output=missing/out",
        Fails("TOOL: error: No such file or directory"),
        Fails("TOOL: error: 'missing/out': No such file or directory"),
        "which file",
    ),
    (
        "-type=s -targets=H,hip-amdgcn-amd-amdhsa--gfx906:xnack+:sramecc- -input=in/text0 -input=in/text1 -output=-",
        Succeeds("--gfx906:xnack+:sramecc-\n"),
        Succeeds("--gfx906:sramecc-:xnack+\n"),
        "target IDs are written in their canonical form",
    ),
    (
        "-### -type=o -targets=H,D -input=in/host.o -input=in/device.o -output=out",
        Succeeds("\"--add-section=__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-="),
        Succeeds("\"--add-section=__CLANG_OFFLOAD_BUNDLE__host-x86_64-unknown-linux-gnu-="),
        "nothing is written in a dry run",
    ),
];
