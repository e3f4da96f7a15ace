target triple = "nvptx64-nvidia-cuda"
define void @scale() { ret void }
!nvvm.annotations = !{!0}
!0 = !{ptr @scale, !"other", i32 1}
