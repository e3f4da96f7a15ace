source_filename = "offload.entries.module"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%struct.__tgt_offload_entry = type { i64, i16, i16, i32, ptr, ptr, i64, i64, ptr }

@scale = external global i8
@.offloading.entry_name = internal unnamed_addr constant [6 x i8] c"scale\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.scale = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 2, i32 0, ptr @scale, ptr @.offloading.entry_name, i64 0, i64 0, ptr null }, section "llvm_offload_entries_a1", align 8
@llvm.compiler.used = appending global [1 x ptr] [ptr @.offloading.entry.scale], section "llvm.metadata"
