source_filename = "offload.entries.module"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%__tgt_offload_entry = type { ptr, ptr, i64, i32, i32 }

@scale_handle = external global i8
@table = external global i8
@.omp_offloading.entry_name = internal unnamed_addr constant [6 x i8] c"scale\00", align 1
@.omp_offloading.entry.scale = weak constant %__tgt_offload_entry { ptr @scale_handle, ptr @.omp_offloading.entry_name, i64 0, i32 0, i32 0 }, section "omp_offloading_entries", align 8
@.omp_offloading.entry_name.1 = internal unnamed_addr constant [6 x i8] c"table\00", align 1
@.omp_offloading.entry.table = weak constant %__tgt_offload_entry { ptr @table, ptr @.omp_offloading.entry_name.1, i64 1024, i32 0, i32 0 }, section "omp_offloading_entries", align 8
@llvm.used = appending global [2 x ptr] [ptr @.omp_offloading.entry.scale, ptr @.omp_offloading.entry.table], section "llvm.metadata"
