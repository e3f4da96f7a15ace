// Device code in a Mach-O object, under the section names that LLVM 23 uses for Mach-O.
// clang 22 cannot compile HIP for macOS, so the bytes of a fat binary are included instead.
        .section __HIP,__hip_fatbin
        .p2align 4
        .globl  ___hip_fatbin
___hip_fatbin:
        .incbin "macho-payload.hipfb"

// The record that a registration call receives: magic "HIPF", version 1, the fat binary.
        .section __HIP,__fatbin
        .p2align 3
        .long   0x48495046
        .long   1
        .quad   ___hip_fatbin
        .quad   0
