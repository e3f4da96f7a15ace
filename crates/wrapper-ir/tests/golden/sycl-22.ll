source_filename = "offload.wrapper.module"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%struct.__tgt_offload_entry = type { i64, i16, i16, i32, ptr, ptr, i64, i64, ptr }
%__sycl.tgt_device_image = type { i16, i8, i8, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
%__sycl.tgt_bin_desc = type { i16, i16, ptr, ptr, ptr }

@.sycl_offloading.target.0 = internal unnamed_addr constant [8 x i8] c"spirv64\00"
@.sycl_offloading.opts.compile.0 = internal unnamed_addr constant [1 x i8] zeroinitializer
@.sycl_offloading.opts.link.0 = internal unnamed_addr constant [1 x i8] zeroinitializer
@.sycl_offloading.0.data = internal unnamed_addr constant [13 x i8] c"ABC\22\\\0A\00\FFhello", section ".llvm.offloading", align 8
@.offloading.entry_name = internal unnamed_addr constant [6 x i8] c"first\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.first = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 8, i32 0, ptr null, ptr @.offloading.entry_name, i64 0, i64 0, ptr null }, section "llvm_offload_entries", align 8
@.offloading.entry_name.1 = internal unnamed_addr constant [7 x i8] c"second\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.second = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 8, i32 0, ptr null, ptr @.offloading.entry_name.1, i64 0, i64 0, ptr null }, section "llvm_offload_entries", align 8
@.sycl_offloading.entries_arr = internal constant [2 x %struct.__tgt_offload_entry] [%struct.__tgt_offload_entry { i64 0, i16 1, i16 8, i32 0, ptr null, ptr @.offloading.entry_name, i64 0, i64 0, ptr null }, %struct.__tgt_offload_entry { i64 0, i16 1, i16 8, i32 0, ptr null, ptr @.offloading.entry_name.1, i64 0, i64 0, ptr null }]
@.sycl_offloading.target.1 = internal unnamed_addr constant [8 x i8] c"spirv64\00"
@.sycl_offloading.opts.compile.1 = internal unnamed_addr constant [1 x i8] zeroinitializer
@.sycl_offloading.opts.link.1 = internal unnamed_addr constant [1 x i8] zeroinitializer
@.sycl_offloading.1.data = internal unnamed_addr constant [13 x i8] c"ABC\22\\\0A\00\FFhello", section ".llvm.offloading", align 8
@.offloading.entry_name.2 = internal unnamed_addr constant [6 x i8] c"first\00", section ".llvm.rodata.offloading", align 1
@.offloading.entry.first.3 = weak constant %struct.__tgt_offload_entry { i64 0, i16 1, i16 8, i32 0, ptr null, ptr @.offloading.entry_name.2, i64 0, i64 0, ptr null }, section "llvm_offload_entries", align 8
@.sycl_offloading.entries_arr.4 = internal constant [1 x %struct.__tgt_offload_entry] [%struct.__tgt_offload_entry { i64 0, i16 1, i16 8, i32 0, ptr null, ptr @.offloading.entry_name.2, i64 0, i64 0, ptr null }]
@.sycl_offloading.device_images = internal unnamed_addr constant [2 x %__sycl.tgt_device_image] [%__sycl.tgt_device_image { i16 3, i8 8, i8 6, ptr @.sycl_offloading.target.0, ptr @.sycl_offloading.opts.compile.0, ptr @.sycl_offloading.opts.link.0, ptr @.sycl_offloading.0.data, ptr getelementptr ([13 x i8], ptr @.sycl_offloading.0.data, i64 0, i64 13), ptr @.sycl_offloading.entries_arr, ptr getelementptr ([2 x %struct.__tgt_offload_entry], ptr @.sycl_offloading.entries_arr, i64 0, i64 2), ptr null, ptr null }, %__sycl.tgt_device_image { i16 3, i8 8, i8 6, ptr @.sycl_offloading.target.1, ptr @.sycl_offloading.opts.compile.1, ptr @.sycl_offloading.opts.link.1, ptr @.sycl_offloading.1.data, ptr getelementptr ([13 x i8], ptr @.sycl_offloading.1.data, i64 0, i64 13), ptr @.sycl_offloading.entries_arr.4, ptr getelementptr ([1 x %struct.__tgt_offload_entry], ptr @.sycl_offloading.entries_arr.4, i64 0, i64 1), ptr null, ptr null }]
@.sycl_offloading.descriptor = internal constant %__sycl.tgt_bin_desc { i16 1, i16 2, ptr @.sycl_offloading.device_images, ptr null, ptr null }
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @sycl.descriptor_reg, ptr null }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @sycl.descriptor_unreg, ptr null }]

define internal void @sycl.descriptor_reg() section ".text.startup" {
entry:
  call void @__sycl_register_lib(ptr @.sycl_offloading.descriptor)
  ret void
}

declare void @__sycl_register_lib(ptr)

define internal void @sycl.descriptor_unreg() section ".text.startup" {
entry:
  call void @__sycl_unregister_lib(ptr @.sycl_offloading.descriptor)
  ret void
}

declare void @__sycl_unregister_lib(ptr)
