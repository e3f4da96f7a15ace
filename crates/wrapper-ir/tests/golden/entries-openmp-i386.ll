source_filename = "offload.entries.module"
target datalayout = "e-m:e-p:32:32-p270:32:32-p271:32:32-p272:64:64-i128:128-f64:32:64-f80:32-n8:16:32-S128"
target triple = "i386-linux-gnu"

%struct.__tgt_offload_entry = type { i64, i16, i16, i32, ptr, ptr, i64, i64, ptr }

@scale_handle = external global i8
@table = external global i8
@.offloading.entry_name = internal unnamed_addr constant [6 x i8] c"scale\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.scale = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 1, i32 0, ptr @scale_handle, ptr @.offloading.entry_name, i64 0, i64 0, ptr null }, section "llvm_offload_entries", align 4
@.offloading.entry_name.1 = internal unnamed_addr constant [6 x i8] c"table\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.table = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 1, i32 0, ptr @table, ptr @.offloading.entry_name.1, i64 1024, i64 0, ptr null }, section "llvm_offload_entries", align 4
@llvm.used = appending global [2 x ptr] [ptr @.offloading.entry.scale, ptr @.offloading.entry.table], section "llvm.metadata"
