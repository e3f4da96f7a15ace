source_filename = "offload.wrapper.object"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%__tgt_offload_entry = type { ptr, ptr, i64, i32, i32 }
%__tgt_device_image = type { ptr, ptr, ptr, ptr }
%__tgt_bin_desc = type { i32, ptr, ptr, ptr }
%__tgt_image_info = type { i32, i32, i32, ptr, ptr }

@__start_omp_offloading_entries = external hidden constant %__tgt_offload_entry
@__stop_omp_offloading_entries = external hidden constant %__tgt_offload_entry
@__dummy.omp_offloading.entry = hidden constant [0 x %__tgt_offload_entry] zeroinitializer, section "omp_offloading_entries"
@.omp_offloading.device_image = internal unnamed_addr constant [13 x i8] c"ABC\22\\\0A\00\FFhello", align 8
@.omp_offloading.device_image.1 = internal unnamed_addr constant [1 x i8] c"x", align 8
@.omp_offloading.device_images = internal unnamed_addr constant [2 x %__tgt_device_image] [%__tgt_device_image { ptr @.omp_offloading.device_image, ptr getelementptr ([13 x i8], ptr @.omp_offloading.device_image, i64 0, i64 13), ptr @__start_omp_offloading_entries, ptr @__stop_omp_offloading_entries }, %__tgt_device_image { ptr @.omp_offloading.device_image.1, ptr getelementptr ([1 x i8], ptr @.omp_offloading.device_image.1, i64 0, i64 1), ptr @__start_omp_offloading_entries, ptr @__stop_omp_offloading_entries }]
@.omp_offloading.descriptor = internal constant %__tgt_bin_desc { i32 2, ptr @.omp_offloading.device_images, ptr @__start_omp_offloading_entries, ptr @__stop_omp_offloading_entries }
@__offload_arch = internal constant [7 x i8] c"gfx906\00", section ".offload_arch_list", align 1
@.offload_image_info = internal unnamed_addr constant %__tgt_image_info { i32 1, i32 0, i32 2, ptr @__offload_arch, ptr null }
@__offload_arch.1 = internal constant [14 x i8] c"gfx90a:xnack+\00", section ".offload_arch_list", align 1
@.offload_image_info.1 = internal unnamed_addr constant %__tgt_image_info { i32 1, i32 1, i32 2, ptr @__offload_arch.1, ptr null }
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @.omp_offloading.descriptor_reg, ptr null }]
@llvm.global_dtors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @.omp_offloading.descriptor_unreg, ptr null }]

define internal void @.omp_offloading.descriptor_reg() section ".text.startup" {
entry:
  call void @__tgt_register_image_info(ptr @.offload_image_info)
  call void @__tgt_register_image_info(ptr @.offload_image_info.1)
  call void @__tgt_register_lib(ptr @.omp_offloading.descriptor)
  ret void
}

declare void @__tgt_register_image_info(ptr)

declare void @__tgt_register_lib(ptr)

define internal void @.omp_offloading.descriptor_unreg() section ".text.startup" {
entry:
  call void @__tgt_unregister_lib(ptr @.omp_offloading.descriptor)
  ret void
}

declare void @__tgt_unregister_lib(ptr)
