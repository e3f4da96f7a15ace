//! Images for NVIDIA GPUs, made without NVIDIA's tools.

use std::fmt::Write as _;

/// SM numbers of the GPUs that CUDA libraries are made for.
pub const SMS: [u32; 6] = [75, 80, 86, 90, 100, 120];

/// The ELF machine of NVIDIA's GPUs.
const EM_CUDA: u16 = 190;
/// The ELF ABI of CUDA 13, and its version.
const ABI: [u8; 2] = [0x41, 8];

/// Returns a cubin for `sm`: an ELF file with one section, which holds `code`. The code need not be for a GPU: tools
/// that list and unpack look at headers only.
#[must_use]
pub fn cubin(sm: u32, code: &[u8]) -> Vec<u8> {
    const NAMES: &[u8; 24] = b"\0.shstrtab\0.text.kernel\0";
    const HEADER: u64 = 64;
    let flags = 0x600_0004 | sm << 8;
    let padded = code.len().next_multiple_of(8);
    let names = HEADER + padded as u64;
    let sections = names + NAMES.len() as u64;
    let mut file = [&b"\x7fELF\x02\x01\x01"[..], &ABI, &[0; 7]].concat();
    file.extend([2_u16, EM_CUDA].map(u16::to_le_bytes).concat());
    file.extend([0; 4]);
    file.extend([0, 0, sections].map(u64::to_le_bytes).concat());
    file.extend(flags.to_le_bytes());
    file.extend([64_u16, 56, 0, 64, 3, 1].map(u16::to_le_bytes).concat());
    file.extend(code);
    file.resize(file.len() + padded - code.len(), 0);
    file.extend(NAMES);
    file.resize(file.len() + 64, 0);
    for (name, kind, flags, place, size) in
        [(1_u32, 3_u32, 0_u64, names, NAMES.len()), (11, 1, 6, HEADER, code.len())]
    {
        file.extend([name, kind].map(u32::to_le_bytes).concat());
        file.extend([flags, 0, place, size as u64].map(u64::to_le_bytes).concat());
        file.extend([0; 8]);
        file.extend([8_u64, 0].map(u64::to_le_bytes).concat());
    }
    file
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
