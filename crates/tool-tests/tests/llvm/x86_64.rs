//! The decoder of x86-64 instructions, by which an edit tells references to device code from bytes that look like some,
//! beside LLVM's: lengths, and every operand that counts from the next instruction.
//!
//! Needs LLVM 22 in `/usr/lib/llvm-22`, or where `LLVM` points; fails without it.

#[path = "../../../object-edit/src/linked/scan/x86_64.rs"]
#[allow(dead_code, reason = "the library uses more of it")]
mod decoder;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::common::{llvm, llvm_library, new_command};
use decoder::decode;

/// Forms of instructions, for each place that bytes of an instruction come from. `M` is an operand in memory.
const FORMS: &str = "
# One byte: opcodes with and without immediate values of each size, groups
add M, %rax; add %cl, M; lea M, %r15; lea M, %eax; lea M, %ax; mov M, %bl; mov %r8, M; movl $0x12345678, M
movw $0x1234, M; movb $0x12, M; movq $0x12345678, M; movabsq $0x123456789abcdef0, %r9; movl $1, %r10d; mov $0x1234, %ax
addb $1, M; addw $0x1234, M; addl $0x12345678, M; addq $-2, M; cmpw $5, M; imul $0x1234567, M, %eax; imul $5, M, %rax
imul $0x1234, M, %dx; testb $1, M; testw $0x1234, M; testl $0x12345678, M; testq $0x12345678, M; notl M; negb M; mulq M
divl M; incb M; decq M; jmp *M; call *M; push M; pop M; shlb $3, M; shrq $5, M; sarl %cl, M; rolw M; xchg %rax, M
movslq M, %rax; fldt M; fldl M; fistpll M; fnstcw M; enter $8, $1; ret $8; lcall *M; ljmp *M; push $0x12345678; push $5
pushw $0x1234; movabs 0x123456789abcdef0, %al; movabs %eax, 0x123456789abcdef0; int $3; int3; loop .; jrcxz .
in $5, %al; out %al, $5; xlatb; cmpsb; movsq; stosl; lodsw; scasb; cltq; cqto; leave; hlt; pushf; xbegin .; xabort $1
call f; jmp f; jne f; jmp .; movl %fs:0, %eax; movq %fs:M, %rax; lock addl $1, M; rep movsb; repne scasb
# Prefixes
addr32 mov M, %eax; data16 lea M, %rdi; .byte 0x2e; mov M, %eax; .byte 0x66, 0x66; lea M, %rdi; xacquire lock incl M
notrack jmp *M; data16 data16 nopw M; nopw %cs:0x200(%rax,%rax,1)
# 0x0f
movaps M, %xmm9; movups %xmm1, M; movss M, %xmm0; movsd M, %xmm0; movq M, %xmm4; movd M, %mm1; cvtsi2sdl M, %xmm1
cvtsi2sdq M, %xmm1; ucomisd M, %xmm2; pshufd $5, M, %xmm3; shufps $5, M, %xmm3; pshufw $1, M, %mm0; cmpeqps M, %xmm1
cmpeqsd M, %xmm1; pinsrw $3, M, %xmm1; bts $5, M; btl %eax, M; shld $4, %eax, M; shrdq %cl, %rax, M; setne M; cmovael M, %eax
movzbl M, %eax; movswq M, %rax; popcnt M, %rax; tzcntl M, %eax; lzcntw M, %ax; cmpxchg8b M; cmpxchg16b M; xaddl %eax, M
cmpxchg %ecx, M; bsf M, %eax; prefetcht0 M; prefetchw M; clflush M; fxsave64 M; ldmxcsr M; sgdt M; lidt M; invlpg M; nopl M
syscall; cpuid; rdtsc; emms; ud2; bswap %r11; movnti %eax, M; movhps M, %xmm1; imul M, %r12; psrlw $3, %xmm1
endbr64; rdfsbase %rax; pfadd M, %mm1; pswapd M, %mm3; femms; rdrand %eax; vmread %rax, M; vmptrld M; ud1 M, %eax
extrq $1, $2, %xmm1; insertq $1, $2, %xmm1, %xmm2; jmpq *%rax; wbinvd; sysenter; mov %cr0, %rax; mov %rax, %dr7
# 0x0f 0x38 and 0x0f 0x3a
pshufb M, %xmm1; pabsb M, %mm1; crc32b M, %eax; crc32q M, %rax; movbe M, %rax; movbe %ax, M; aesenc M, %xmm1; ptest M, %xmm1
sha256rnds2 M, %xmm1; adcx M, %rax; adoxl M, %eax; invpcid M, %rax; movdir64b M, %rax; movdiri %eax, M; wrssq %rax, M
enqcmd M, %rax; pmovzxbw M, %xmm1; gf2p8mulb M, %xmm2
roundsd $4, M, %xmm1; palignr $3, M, %xmm1; palignr $3, M, %mm1; pextrb $1, %xmm1, M; pinsrq $1, M, %xmm1; pcmpistri $5, M, %xmm1
aeskeygenassist $1, M, %xmm1; sha1rnds4 $1, M, %xmm1; pclmulqdq $17, M, %xmm1; extractps $1, %xmm1, M; insertps $1, M, %xmm2
gf2p8affineqb $1, M, %xmm2; dpps $7, M, %xmm3
# VEX
vmovaps M, %ymm9; vmovdqu %ymm1, M; vaddss M, %xmm1, %xmm2; vpshufd $5, M, %ymm1; vshufps $5, M, %ymm1, %ymm2; vzeroupper
vcmpps $3, M, %ymm1, %ymm2; vpinsrw $1, M, %xmm1, %xmm2; vpshufb M, %ymm1, %ymm2; vfmadd231pd M, %ymm1, %ymm2; vbroadcastss M, %ymm1
vperm2f128 $1, M, %ymm1, %ymm2; vblendvps %ymm1, M, %ymm2, %ymm3; vroundsd $4, M, %xmm1, %xmm2; vpalignr $2, M, %ymm8, %ymm9
vcvtph2ps M, %ymm1; vcvtps2ph $0, %ymm1, M; andn M, %rax, %rbx; bextr %rax, M, %rbx; rorx $3, M, %rax; mulx M, %rax, %rbx
shlx %rax, M, %rbx; pdep M, %rax, %rbx; blsr M, %rax; kmovw M, %k1; kmovq %k2, M; kshiftlw $3, %k1, %k2; vldmxcsr M
vpsrlw $3, %ymm1, %ymm2; vmaskmovps M, %ymm1, %ymm2; vpdpbusd M, %ymm1, %ymm2; vextracti128 $1, %ymm1, M; ldtilecfg M
tilezero %tmm1; tilerelease; vpclmulqdq $17, M, %ymm1, %ymm2; vsha512msg1 %xmm1, %ymm2; vpermil2ps $1, %ymm1, M, %ymm2, %ymm3
vfmaddpd M, %ymm1, %ymm2, %ymm3; cmpbexadd %eax, %ebx, M
# XOP
vpcmov %xmm1, M, %xmm2, %xmm3; vpcomb $1, M, %xmm1, %xmm2; vfrczps M, %xmm1; vphaddbd M, %xmm1; bextr $0x1234567, M, %eax
blcfill M, %eax; vprotb $3, M, %xmm1; vpshld M, %xmm1, %xmm2; lwpins $0x12345678, M, %eax; llwpcb %rax
# EVEX
vmovups M, %zmm20; vmovdqu8 %zmm1, M{%k1}; vaddps M, %zmm1, %zmm2; vaddps M{1to16}, %zmm1, %zmm2; vpternlogd $5, M, %zmm1, %zmm2
vpshufd $5, M, %zmm17; vcmpps $3, M, %zmm1, %k1; vpsrlw $5, M, %zmm1; vpord M, %zmm20, %zmm3; vfmadd213ps M, %zmm1, %zmm2{%k1}{z}
vpermt2b M, %zmm1, %zmm2; vreduceps $1, M, %zmm1; vcvtph2psx M, %zmm1; vaddph M, %zmm1, %zmm2; vfcmaddcph M, %zmm1, %zmm2
vgetmantph $1, M, %zmm1; vpinsrd $1, M, %xmm20, %xmm21; vpextrq $1, %xmm20, M; vrndscaless $1, M, %xmm1, %xmm2
vdpbf16ps M, %zmm1, %zmm2; vpcompressb %zmm1, M; vshufps $1, M, %zmm1, %zmm2; vmovsh M, %xmm1; vmovw M, %xmm1
# APX
mov M, %r16; lea M, %r31; addl $0x12345678, M, %r16d; addw $0x1234, M, %r16w; addq $5, M, %rax; {evex} addb $1, M; imull $0x12345678, M, %r17d
movl $0x12345678, %r16d; movabsq $0x123456789abcdef0, %r20; movaps M, %xmm1; movzbl M, %r18d; shldl $3, %eax, M, %ecx; cmovbl M, %eax, %ecx
ccmpel {dfv=} $0x12345678, M; ctestel {dfv=} $0x12345678, M; ctestew {dfv=} $0x1234, M; ccmpeb {dfv=} $5, M; push2 %rax, %rbx; jmpabs $0x123456789abcdef0
popcnt M, %r16; {nf} negl M; {nf} shll $3, M, %eax; kmovq M, %k1; testl $0x12345678, %r16d; setzune %al; crc32q M, %r16; {nf} imull M, %eax, %ecx
";

/// Operands in memory: relative to the next instruction, and others.
const OPERANDS: [&str; 7] = [
    "target(%rip)",
    "(%rbx)",
    "8(%rsp)",
    "0x12345678(%rbp)",
    "0x12345678(%r13,%r12,4)",
    "0x12345678",
    "(%rsp)",
];

#[test]
fn lengths_of_all_forms_are_those_of_the_assembler() {
    let place = tempfile::tempdir().unwrap();
    let mut source = String::from(".globl f, target\nf:\n");
    let forms =
        FORMS.lines().filter(|line| !line.starts_with('#')).flat_map(|line| line.split(';'));
    let forms: Vec<_> = forms.map(str::trim).filter(|form| !form.is_empty()).collect();
    for operand in OPERANDS {
        for form in &forms {
            // A prefix that is written as bytes stands before the next one.
            let fits = operand.contains("rip") || form.contains('M') || form.starts_with('.');
            if fits {
                source += &format!("{}\n", form.replace('M', operand));
            }
        }
    }
    source += ".fill 16, 1, 0x90\n.data\ntarget: .quad 0\n";
    fs::write(place.path().join("forms.s"), source).unwrap();
    let status = new_command(llvm("clang"))
        .args(["--target=x86_64-unknown-linux-gnu", "-c", "forms.s", "-o", "forms.o"])
        .current_dir(place.path())
        .status();
    assert!(status.unwrap().success());
    let status = new_command(llvm("ld.lld"))
        .args(["-shared", "-Bsymbolic", "forms.o", "-o", "forms.so"])
        .current_dir(place.path())
        .status();
    assert!(status.unwrap().success());
    let seen = compare(&place.path().join("forms.so"), &[]);
    let relative = forms.iter().filter(|form| form.contains('M')).count() as u64;
    assert_eq!(seen.relative, relative);
    assert!(seen.all > 5 * relative);
}

/// Four million bytes of LLVM's own library.
#[test]
fn lengths_in_a_published_library_are_those_of_llvm() {
    let library = llvm_library();
    let (start, size) = text(&library);
    let range = [
        format!("--start-address={:#x}", start + size / 2),
        format!("--stop-address={:#x}", start + size / 2 + 4_000_000),
    ];
    let range = [range[0].as_str(), &range[1]];
    let seen = compare(&library, &range);
    assert!(seen.all > 500_000 && seen.relative > 10_000, "{seen:?}");
}

/// Address and size of the code.
fn text(library: &Path) -> (u64, u64) {
    let output = new_command(llvm("llvm-readelf")).arg("-SW").arg(library).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let line = output.lines().find(|line| line.contains(" .text ")).unwrap();
    let fields: Vec<_> = line.split(" .text ").nth(1).unwrap().split_whitespace().collect();
    let number = |n: usize| u64::from_str_radix(fields[n], 16).unwrap();
    (number(1), number(3))
}

#[derive(Debug, Default)]
struct Seen {
    all: u64,
    relative: u64,
}

/// Decodes every instruction that LLVM's disassembler finds.
fn compare(file: &Path, range: &[&str]) -> Seen {
    let mut child = new_command(llvm("llvm-objdump"))
        .args(["-d"])
        .args(range)
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = Seen::default();
    let mut before = Vec::new();
    let mut wrong = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some((address, rest)) = line.split_once(": ") else { continue };
        let Ok(address) = u64::from_str_radix(address.trim(), 16) else { continue };
        let (bytes, text) = rest.split_once('\t').unwrap_or((rest, ""));
        let bytes = bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16));
        let bytes: Vec<u8> = bytes.collect::<Result<_, _>>().unwrap();
        let mnemonic = text.split_whitespace().next().unwrap_or_default();
        let is_prefix = bytes.len() == 1
            && matches!(bytes[0], 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
        if is_prefix {
            before.extend(bytes);
            continue;
        }
        let prefixes = before.len();
        let address = address - prefixes as u64;
        let bytes = [std::mem::take(&mut before), bytes].concat();
        if mnemonic.starts_with('<') || mnemonic == "(bad)" {
            continue;
        }
        seen.all += 1;
        let operand = text.split_once("(%rip)").or_else(|| text.split_once("(%eip)"));
        let target = operand.map(|(before, _)| {
            let number = before.rsplit([' ', '\t', ',', '*', ':']).next().unwrap();
            let (number, sign) = match number.strip_prefix('-') {
                Some(number) => (number, -1),
                None => (number, 1),
            };
            let displacement = i64::from_str_radix(number.strip_prefix("0x").unwrap(), 16).unwrap();
            (address + bytes.len() as u64).wrapping_add_signed(sign * displacement)
        });
        seen.relative += u64::from(target.is_some());
        let found = decode(&bytes);
        let relative = found.and_then(|found| found.relative(found.displacement?, address, &bytes));
        if found.is_none_or(|found| found.len != bytes.len()) || relative != target {
            wrong.push(format!("{line}: {found:x?}, leads to {relative:x?}"));
        }
    }
    assert!(child.wait().unwrap().success());
    assert!(
        wrong.is_empty(),
        "{} of {}: {:#?}",
        wrong.len(),
        seen.all,
        &wrong[..wrong.len().min(40)]
    );
    seen
}
