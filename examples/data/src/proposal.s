	.text
	.globl	scale_on_host
scale_on_host:
	ret
# __CLANG_OFFLOAD_BUNDLE____END__ host-x86_64-unknown-linux-gnu
	.amdgcn_target "amdgcn-amd-amdhsa--gfx906"
	.text
	.globl	scale
scale:
	s_endpgm
# __CLANG_OFFLOAD_BUNDLE____END__ openmp gfx906, the fast one
