source_filename = "offload.entries.module"
target datalayout = "e-m:w-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-windows-msvc"

%struct.__tgt_offload_entry = type { i64, i16, i16, i32, ptr, ptr, i64, i64, ptr }

@.__omp_offloading_1_main_l8.region_id = external global i8
@sum = external global i8
@far_decl_tgt_ref_ptr = external global i8
@call = external global i8
@.offloading.entry_name = internal unnamed_addr constant [27 x i8] c"__omp_offloading_1_main_l8\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.__omp_offloading_1_main_l8 = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 1, i32 0, ptr @.__omp_offloading_1_main_l8.region_id, ptr @.offloading.entry_name, i64 0, i64 0, ptr null }, section "llvm_offload_entries$OE", align 8
@.offloading.entry_name.1 = internal unnamed_addr constant [6 x i8] c"sum\22\0A\00", section ".llvm.rodata.offloading", align 1
@".offloading.entry.sum\22\0A" = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 1, i32 0, ptr @sum, ptr @.offloading.entry_name.1, i64 4, i64 0, ptr null }, section "llvm_offload_entries$OE", align 8
@.offloading.entry_name.2 = internal unnamed_addr constant [21 x i8] c"far_decl_tgt_ref_ptr\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.far_decl_tgt_ref_ptr = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 1, i32 1, ptr @far_decl_tgt_ref_ptr, ptr @.offloading.entry_name.2, i64 8, i64 0, ptr null }, section "llvm_offload_entries$OE", align 8
@.offloading.entry_name.3 = internal unnamed_addr constant [27 x i8] c"__omp_offloading_1_call_l5\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.__omp_offloading_1_call_l5 = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 1, i32 8, ptr @call, ptr @.offloading.entry_name.3, i64 8, i64 0, ptr null }, section "llvm_offload_entries$OE", align 8
@.offloading.entry_name.4 = internal unnamed_addr constant [10 x i8] c".requires\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry..requires = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 1, i32 16, ptr null, ptr @.offloading.entry_name.4, i64 0, i64 8, ptr null }, section "llvm_offload_entries$OE", align 8
@llvm.compiler.used = appending global [5 x ptr] [ptr @.offloading.entry.__omp_offloading_1_main_l8, ptr @".offloading.entry.sum\22\0A", ptr @.offloading.entry.far_decl_tgt_ref_ptr, ptr @.offloading.entry.__omp_offloading_1_call_l5, ptr @.offloading.entry..requires], section "llvm.metadata"
