source_filename = "offload.wrapper.module"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

@.sycl_offloading.binary = internal unnamed_addr constant [13 x i8] c"ABC\22\\\0A\00\FFhello", section ".llvm.offloading", align 8
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 101, ptr @sycl.descriptor_reg, ptr null }]

define internal void @sycl.descriptor_reg() section ".text.startup" {
entry:
  call void @__sycl_register_lib(ptr @.sycl_offloading.binary, i64 13)
  %0 = call i32 @atexit(ptr @sycl.descriptor_unreg)
  ret void
}

declare void @__sycl_register_lib(ptr, i64)

declare i32 @atexit(ptr)

define internal void @sycl.descriptor_unreg() section ".text.startup" {
entry:
  call void @__sycl_unregister_lib(ptr @.sycl_offloading.binary, i64 13)
  ret void
}

declare void @__sycl_unregister_lib(ptr, i64)
