source_filename = "offload.wrapper.module"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

%struct.__tgt_offload_entry = type { ptr, ptr, i64, i32, i32 }
%fatbin_wrapper = type { i32, i32, ptr, ptr }

@__start_hip_offloading_entries = external hidden constant [0 x %struct.__tgt_offload_entry]
@__stop_hip_offloading_entries = external hidden constant [0 x %struct.__tgt_offload_entry]
@__dummy.hip_offloading_entries = internal constant [0 x %struct.__tgt_offload_entry] zeroinitializer, section "hip_offloading_entries", align 8
@llvm.compiler.used = appending global [1 x ptr] [ptr @__dummy.hip_offloading_entries], section "llvm.metadata"
@.fatbin_image = internal constant [13 x i8] c"ABC\22\\\0A\00\FFhello", section ".hip_fatbin", align 4096
@.fatbin_wrapper = internal constant %fatbin_wrapper { i32 1212764230, i32 1, ptr @.fatbin_image, ptr null }, section ".hipFatBinSegment", no_sanitize_address, no_sanitize_hwaddress, align 8
@.hip.binary_handle = internal global ptr null
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 101, ptr @.hip.fatbin_reg, ptr null }]

define internal void @.hip.fatbin_reg() section ".text.startup" {
entry:
  %0 = call ptr @__hipRegisterFatBinary(ptr @.fatbin_wrapper)
  store ptr %0, ptr @.hip.binary_handle, align 8
  call void @.hip.globals_reg(ptr %0)
  %1 = call i32 @atexit(ptr @.hip.fatbin_unreg)
  ret void
}

define internal void @.hip.fatbin_unreg() section ".text.startup" {
entry:
  %0 = load ptr, ptr @.hip.binary_handle, align 8
  call void @__hipUnregisterFatBinary(ptr %0)
  ret void
}

declare ptr @__hipRegisterFatBinary(ptr)

declare void @__hipUnregisterFatBinary(ptr)

declare i32 @atexit(ptr)

declare i32 @__hipRegisterFunction(ptr, ptr, ptr, ptr, i32, ptr, ptr, ptr, ptr, ptr)

declare void @__hipRegisterVar(ptr, ptr, ptr, ptr, i32, i64, i32, i32)

declare void @__hipRegisterSurface(ptr, ptr, ptr, ptr, i32, i32)

declare void @__hipRegisterTexture(ptr, ptr, ptr, ptr, i32, i32, i32)

define internal void @.hip.globals_reg(ptr %0) section ".text.startup" {
entry:
  %1 = icmp ne ptr @__start_hip_offloading_entries, @__stop_hip_offloading_entries
  br i1 %1, label %while.entry, label %while.end

while.entry:
  %entry1 = phi ptr [ @__start_hip_offloading_entries, %entry ], [ %12, %if.end ]
  %2 = getelementptr inbounds %struct.__tgt_offload_entry, ptr %entry1, i32 0, i32 0
  %addr = load ptr, ptr %2, align 8
  %3 = getelementptr inbounds %struct.__tgt_offload_entry, ptr %entry1, i32 0, i32 1
  %name = load ptr, ptr %3, align 8
  %4 = getelementptr inbounds %struct.__tgt_offload_entry, ptr %entry1, i32 0, i32 2
  %size = load i64, ptr %4, align 8
  %5 = getelementptr inbounds %struct.__tgt_offload_entry, ptr %entry1, i32 0, i32 3
  %flags = load i32, ptr %5, align 4
  %6 = getelementptr inbounds %struct.__tgt_offload_entry, ptr %entry1, i32 0, i32 4
  %data = load i32, ptr %6, align 4
  %type = and i32 %flags, 7
  %7 = and i32 %flags, 8
  %extern = lshr i32 %7, 3
  %8 = and i32 %flags, 16
  %constant = lshr i32 %8, 4
  %9 = and i32 %flags, 32
  %normalized = lshr i32 %9, 5
  br label %if.kind

if.kind:
  %10 = icmp eq i64 %size, 0
  br i1 %10, label %if.then, label %if.else

if.then:
  %11 = call i32 @__hipRegisterFunction(ptr %0, ptr %addr, ptr %name, ptr %name, i32 -1, ptr null, ptr null, ptr null, ptr null, ptr null)
  br label %if.end

if.else:
  switch i32 %type, label %if.end [
    i32 0, label %sw.global
    i32 1, label %sw.managed
    i32 2, label %sw.surface
    i32 3, label %sw.texture
  ]

sw.global:
  call void @__hipRegisterVar(ptr %0, ptr %addr, ptr %name, ptr %name, i32 %extern, i64 %size, i32 %constant, i32 0)
  br label %if.end

sw.managed:
  br label %if.end

sw.surface:
  call void @__hipRegisterSurface(ptr %0, ptr %addr, ptr %name, ptr %name, i32 %data, i32 %extern)
  br label %if.end

sw.texture:
  call void @__hipRegisterTexture(ptr %0, ptr %addr, ptr %name, ptr %name, i32 %data, i32 %normalized, i32 %extern)
  br label %if.end

if.end:
  %12 = getelementptr inbounds %struct.__tgt_offload_entry, ptr %entry1, i64 1
  %13 = icmp eq ptr %12, @__stop_hip_offloading_entries
  br i1 %13, label %while.end, label %while.entry

while.end:
  ret void
}
