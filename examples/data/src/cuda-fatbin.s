// A CUDA fat binary in an x86-64 object, as nvcc leaves it behind: section .nv_fatbin with the
// container, section .nvFatBinSegment with the record that registers it. Written by hand from the
// publicly known layout; no NVIDIA tool was used. All numbers are little-endian.
        .section .nv_fatbin,"a",@progbits
        .p2align 3
fatbin:
        .long   0xba55ed50              // magic
        .short  1                       // version
        .short  16                      // size of this header
        .quad   fatbin_end - entries    // size of what follows

// Describes one device image. The payload, padded to 8 bytes, follows the header and its name.
// flags: 1 = 64-bit addresses, 0x10 = made on Linux, 0x2000 = LZ4 block compression.
        .macro  ENTRY id, kind, options, major, minor, sm, flags
        .short  \kind                   // 1 = PTX, 2 = ELF
        .short  0x101                   // version
        .long   payload_\id - entry_\id // size of this header, name included
        .quad   next_\id - payload_\id  // size of the payload, padded
        .if     (\flags) & 0x2000
        .long   end_\id - payload_\id   // size of the compressed payload
        .else
        .long   0
        .endif
        .long   \options                // offset of the record about options of the assembler
        .short  \minor                  // version of the PTX language or of the code
        .short  \major
        .long   \sm                     // architecture
        .endm

entries:
// 1: PTX for sm_70, not compressed; a NUL ends the text.
entry_1:
        ENTRY   1, 1, 64, 6, 3, 70, 0x11
        .long   0, 0                    // no name
        .quad   0x11                    // flags
        .quad   0
        .quad   0                       // uncompressed size: not compressed
        .long   0, 0                    // options: offset, length; none
payload_1:
        .incbin "scale.ptx"
        .byte   0
        .p2align 3
next_1:

// 2: ELF for sm_70, not compressed, with the name of the source it came from.
entry_2:
        ENTRY   2, 2, 0, 1, 7, 70, 0x11
        .long   64                      // offset of the name
        .long   8                       // length of the name
        .quad   0x11
        .quad   0
        .quad   0
        .ascii  "scale.cu"
        .p2align 3
payload_2:
        .incbin "scale.cubin"
        .p2align 3
next_2:

// 3: PTX for sm_80, compressed: one LZ4 block of two sequences. The first is the PTX text and
// "//-" as literals, then a match 44 bytes long at distance 1 (more hyphens); the second is the
// five literals that must end a block.
entry_3:
        ENTRY   3, 1, 64, 7, 0, 80, 0x2011
        .long   0, 0
        .quad   0x2011
        .quad   0
        .quad   literals_end - literals + 44 + 5
        .long   0, 0
payload_3:
        .byte   0xff                    // 15 or more literals, match length 19 or more
        // The number of literals less 15, in bytes of 255 and a rest.
        .fill   (LITERALS - 15) / 255, 1, 255
        .byte   (LITERALS - 15) % 255
literals:
        .incbin "scale-sm_80.ptx"
        .ascii  "//-"
literals_end:
        .short  1                       // match distance
        .byte   44 - 19                 // match length less 19
        .byte   0x50                    // five literals, no match
        .ascii  "---\n\0"
end_3:
        .p2align 3
next_3:
fatbin_end:

        .section .nvFatBinSegment,"aw",@progbits
        .p2align 3
        .long   0x466243b1              // magic
        .long   1                       // version
        .quad   fatbin
        .quad   0

        .section .note.GNU-stack,"",@progbits
