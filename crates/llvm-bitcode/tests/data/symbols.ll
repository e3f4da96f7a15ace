; What an archive's index has of a module, and what not. 32-bit COFF has the most rules about names.
target datalayout = "e-m:x-p:32:32-i64:64-f80:32-n8:16:32-a:0:32-S32"
target triple = "i686-pc-windows-msvc"

; in the index
@external = global i32 1
@"\01exact" = global i32 1
@"?question" = global i32 1
@common = common global i32 0
@weak = weak global i32 1
@appending = appending global [1 x i32] [i32 1]
@alias = alias i32, ptr @internal
@ifunc = ifunc void (), ptr @resolve
define linkonce_odr hidden void @linkonce() { ret void }
define x86_stdcallcc void @stdcall(i32 %a, i64 %b) { ret void }
define x86_fastcallcc void @fastcall(i32 %a, i64 %b) { ret void }

; not in it
@internal = internal global i32 1
@declared = external global i32
@maybe = extern_weak global i32
@copy = available_externally global i32 1
@in_metadata = global i32 1, section "llvm.metadata"
@llvm.mine = global i32 1
@internal_alias = internal alias i32, ptr @internal
define internal ptr @resolve() { ret ptr null }
define available_externally void @copied_function() { ret void }
define private void @private() { ret void }
declare void @declared_function()
