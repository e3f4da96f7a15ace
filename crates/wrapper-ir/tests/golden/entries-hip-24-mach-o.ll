source_filename = "offload.entries.module"
target datalayout = "e-m:o-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-n32:64-S128-Fn32"
target triple = "aarch64-apple-darwin"

%struct.__tgt_offload_entry = type { i64, i16, i16, i32, ptr, ptr, i64, i64, ptr }

@scale_handle = external global i8
@table = external global i8
@pool.managed = external global i8
@pool = external global i8
@surf = external global i8
@tex = external global i8
@.offloading.entry_name = internal unnamed_addr constant [12 x i8] c"_Z5scalePff\00", align 1
@.offloading.entry._Z5scalePff = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 4, i32 0, ptr @scale_handle, ptr @.offloading.entry_name, i64 0, i64 0, ptr null }, section "__LLVM,offload_entries", align 8
@.offloading.entry_name.1 = internal unnamed_addr constant [6 x i8] c"table\00", align 1
@.offloading.entry.table = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 4, i32 16, ptr @table, ptr @.offloading.entry_name.1, i64 4886718345, i64 0, ptr null }, section "__LLVM,offload_entries", align 8
@.offloading.entry_name.2 = internal unnamed_addr constant [5 x i8] c"pool\00", align 1
@.offloading.entry.pool = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 4, i32 1, ptr @pool.managed, ptr @.offloading.entry_name.2, i64 8, i64 16, ptr @pool }, section "__LLVM,offload_entries", align 8
@.offloading.entry_name.3 = internal unnamed_addr constant [5 x i8] c"surf\00", align 1
@.offloading.entry.surf = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 4, i32 2, ptr @surf, ptr @.offloading.entry_name.3, i64 4, i64 2, ptr null }, section "__LLVM,offload_entries", align 8
@.offloading.entry_name.4 = internal unnamed_addr constant [4 x i8] c"tex\00", align 1
@.offloading.entry.tex = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 4, i32 35, ptr @tex, ptr @.offloading.entry_name.4, i64 4, i64 2, ptr null }, section "__LLVM,offload_entries", align 8
@llvm.used = appending global [5 x ptr] [ptr @.offloading.entry._Z5scalePff, ptr @.offloading.entry.table, ptr @.offloading.entry.pool, ptr @.offloading.entry.surf, ptr @.offloading.entry.tex], section "llvm.metadata"
