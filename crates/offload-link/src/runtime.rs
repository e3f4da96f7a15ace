//! Functions of runtime libraries, to which generated code refers without a reference in an input.

/// Functions of the C library that LLVM calls for operations and in place of other calls.
const FUNCTIONS: &str = "memcpy memmove memset memcmp memchr memrchr memccpy mempcpy bcmp bzero bcopy \
    strlen strnlen strcpy strncpy stpcpy stpncpy strcat strncat strlcpy strlcat strcmp strncmp strchr \
    strrchr strstr strpbrk strspn strcspn strdup strndup strtol strtoul wcslen \
    memset_pattern4 memset_pattern8 memset_pattern16 \
    printf sprintf snprintf fprintf iprintf siprintf fiprintf small_printf vsnprintf vsprintf \
    puts putchar fputc fputs fwrite fread isdigit isascii toascii abs labs llabs ffs ffsl ffsll fls \
    malloc calloc realloc free abort exit longjmp setjmp \
    _chkstk _alloca _fltused _tls_index _tls_used _CxxThrowException _setjmp _setjmpex";

/// Functions of its mathematical part, which are there for each floating-point type.
const MATH: &str = "sqrt cbrt log log2 log10 log1p logb exp exp2 exp10 expm1 pow sin cos tan sincos \
    sincospi sinpi cospi asin acos atan atan2 sinh cosh tanh asinh acosh atanh fmod remainder modf frexp \
    ldexp scalbn ceil floor trunc rint nearbyint round roundeven lround llround lrint llrint copysign \
    fabs fmin fmax fminimum fmaximum fminimum_num fmaximum_num fdim fma hypot erf erfc tgamma lgamma";

/// Starts of names that have two underscores and are of programming models: registration code, and stubs of kernels.
const MODELS: [&str; 8] =
    ["hip_", "cuda", "device_stub", "omp_", "tgt_", "nv_", "clang_", "fatbin"];

/// Returns whether generated code may refer to a symbol that its source does not name. In doubt, it may.
pub(crate) fn is_of_runtime(name: &[u8]) -> bool {
    let Ok(name) = str::from_utf8(name) else { return false };
    if let Some(rest) = name.strip_prefix("__") {
        return !MODELS.iter().any(|model| rest.starts_with(model));
    }
    if name.starts_with("_Unwind_") {
        return true;
    }
    // Mach-O, and COFF of 32 bits, put an underscore before names.
    let plain = name.strip_prefix('_').unwrap_or(name);
    let is_in = |list: &str, name: &str| list.split_ascii_whitespace().any(|it| it == name);
    let types = ["f", "l", "f128"].iter().filter_map(|end| plain.strip_suffix(end));
    [name, plain].iter().any(|name| is_in(FUNCTIONS, name))
        || [plain].into_iter().chain(types).any(|name| is_in(MATH, name))
}

/// Starts of names that registration code refers to: it is in the host link, but not among its inputs.
const REGISTRATION: [&str; 8] = [
    "__tgt_register",
    "__tgt_unregister",
    "__cudaRegister",
    "__cudaUnregister",
    "__hipRegister",
    "__hipUnregister",
    "__sycl_register",
    "__sycl_unregister",
];

/// Returns whether registration code may refer to a symbol.
pub(crate) fn is_of_registration(name: &[u8]) -> bool {
    // Mach-O, and COFF of 32 bits, put an underscore before names.
    let plain = name.strip_prefix(b"_").unwrap_or(name);
    [name, plain].iter().any(|name| {
        *name == b"atexit" || REGISTRATION.iter().any(|start| name.starts_with(start.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_refers_to_runtime_libraries() {
        for name in [
            "memcpy",
            "_memcpy",
            "sqrt",
            "sqrtf",
            "powl",
            "_fmaf128",
            "__divti3",
            "__stack_chk_fail",
            "_Unwind_Resume",
            "_chkstk",
        ] {
            assert!(is_of_runtime(name.as_bytes()), "{name}");
        }
        for name in [
            "more",
            "memory",
            "stream_copy",
            "_Z4morev",
            "__hip_cuid_1",
            "__device_stub__k",
            "",
            "sqrtx",
            "__cudaX",
        ] {
            assert!(!is_of_runtime(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn registration_code_refers_to_runtimes() {
        for (name, expected) in [
            ("__hipRegisterFatBinary", true),
            ("___cudaRegisterFunction", true),
            ("__tgt_unregister_lib", true),
            ("atexit", true),
            ("hipLaunchKernel", false),
            ("__hip_cuid_1", false),
        ] {
            assert_eq!(is_of_registration(name.as_bytes()), expected, "{name}");
        }
    }
}
