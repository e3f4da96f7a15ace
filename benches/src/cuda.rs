//! Images for NVIDIA GPUs, made without NVIDIA's tools.

use std::fmt::Write as _;

use samples::device::{CUBIN, Head, elf};
use samples::elf::{PROGBITS, Section, section};

/// SM numbers of the GPUs that CUDA libraries are made for.
pub const SMS: [u32; 6] = [75, 80, 86, 90, 100, 120];

/// Returns a cubin for `sm` as CUDA 13 writes it: an ELF file with one section of code, `code`. The code need not be for a
/// GPU: tools that list and unpack look at headers only.
#[must_use]
pub fn cubin(sm: u32, code: &[u8]) -> Vec<u8> {
    let head = Head { os_abi: 0x41, abi: 8, flags: 0x600_0004 | sm << 8, ..CUBIN };
    elf(head, &[Section { flags: 6, ..section(".text.kernel", PROGBITS, code) }], &[])
}

/// Returns PTX of at least `size` bytes for `sm`: kernels that store numbers, others for each `variant`.
#[must_use]
pub fn ptx(sm: u32, variant: usize, size: usize) -> String {
    let mut text = format!(".version 9.0\n.target sm_{sm}\n.address_size 64\n");
    let mut number = variant as u64;
    let mut kernel = 0;
    while text.len() < size {
        let _ = write!(
            text,
            ".visible .entry kernel_{variant}_{kernel}(.param .u64 out)\n{{\n.reg .b32 %r<9>;\n\
            .reg .b64 %rd<3>;\nld.param.u64 %rd1, [out];\ncvta.to.global.u64 %rd2, %rd1;\n"
        );
        for at in 0..64 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x9e37_79b9);
            let (register, value) = (number >> 61, number >> 40 & 0xffff);
            let place = 4 * at;
            let _ = write!(
                text,
                "mov.u32 %r{register}, {value};\nst.global.u32 [%rd2+{place}], %r{register};\n"
            );
        }
        text.push_str("ret;\n}\n");
        kernel += 1;
    }
    text
}
