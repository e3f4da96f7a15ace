//! The differences on purpose between the modules of LLVM's `llvm-offload-wrapper` and ours.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    reason = "included by tests; a panic fails the test"
)]

use wrapper_ir::Target;

/// Text without comments.
pub fn plain(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with(';'));
    lines.map(|line| line.split(" ; preds").next().unwrap().trim_end().to_owned() + "\n").collect()
}

/// `text` with each difference there is on purpose; all of them have to be there.
pub fn with(text: String, differences: &[(&str, &str)]) -> String {
    differences.iter().fold(text, |text, (theirs, ours)| {
        assert!(text.contains(theirs), "LLVM has no {theirs:?} in\n{text}");
        text.replace(theirs, ours)
    })
}

/// LLVM's module has no data layout, ours has.
pub fn with_data_layout(text: String, triple: &str) -> String {
    let target = Target::new(triple).unwrap();
    let line = format!("target triple = \"{triple}\"");
    let layout = format!("target datalayout = \"{}\"\n{line}", target.data_layout());
    with(text, &[(&line, &layout)])
}

/// LLVM's modules have no data layout, so that it does not know the alignments of integers.
pub const LOADS: [(&str, &str); 2] = [
    ("%size = load i64, ptr %6, align 4", "%size = load i64, ptr %6, align 8"),
    ("%data = load i64, ptr %8, align 4", "%data = load i64, ptr %8, align 8"),
];

/// Functions that are declared, and not called. LLVM does not align fatbinaries; a runtime that maps what is in them wants it.
pub const HIP: [(&str, &str); 2] = [
    ("declare void @__cudaRegisterFatBinaryEnd(ptr)\n\n", ""),
    (", section \".hip_fatbin\"", ", section \".hip_fatbin\", align 4096"),
];
pub const CUDA: [(&str, &str); 3] = [
    ("declare void @__cudaRegisterSurface(ptr, ptr, ptr, ptr, i32, i32)\n\n", ""),
    ("declare void @__cudaRegisterTexture(ptr, ptr, ptr, ptr, i32, i32, i32)\n\n", ""),
    (", section \".nv_fatbin\"", ", section \".nv_fatbin\", align 8"),
];

/// LLVM calls CUDA's function for managed variables with the arguments of HIP's.
pub const CUDA_MANAGED: [(&str, &str); 2] = [
    (
        "ManagedVar(ptr, ptr, ptr, ptr, i64, i32)",
        "ManagedVar(ptr, ptr, ptr, ptr, i32, i64, i32, i32)",
    ),
    ("ptr %name, i64 %size, i32 %9)", "ptr %name, i32 %extern, i64 %size, i32 %constant, i32 0)"),
];

/// Without something in the section COFF linkers drop it, and its bounds.
pub const COFF: (&str, &str) = (
    ", section \"llvm_offload_entries$OZ\"\n",
    ", section \"llvm_offload_entries$OZ\"\n\
     @__dummy.llvm_offload_entries = internal constant [8 x i8] zeroinitializer, section \"llvm_offload_entries$A\", align 8\n\
     @llvm.compiler.used = appending global [1 x ptr] [ptr @__dummy.llvm_offload_entries], section \"llvm.metadata\"\n",
);
