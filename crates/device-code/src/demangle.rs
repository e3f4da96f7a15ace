//! Names of kernels as in the source.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};

/// The longest name that is demangled, and the longest result, in bytes.
const LONGEST: usize = 64 << 10;

/// Returns a name as in the source: of C++ and Rust demangled, of SYCL the type that names the kernel, of OpenMP the function and
/// the line. Hashes that compilers add to the names of static kernels are left out. Other names stay as they are; bytes that are
/// not UTF-8 are replaced.
///
/// ```
/// use device_code::demangled;
///
/// assert_eq!(demangled(b"_Z3addPfS_i"), "add(float*, float*, int)");
/// assert_eq!(demangled(b"__omp_offloading_fd02_2a1f5c_main_l42"), "main line 42 (OpenMP)");
/// assert_eq!(demangled(b"_ZL3addPf.static.5c1b22e0e3f7a1d4"), "add(float*)");
/// assert_eq!(demangled(b"add"), "add");
/// ```
#[must_use]
pub fn demangled(name: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(name);
    if text.len() > LONGEST {
        return text;
    }
    let plain = without_hash(&text);
    let other = (plain != text).then(|| plain.to_string());
    match openmp(plain).or_else(|| itanium(plain)).or_else(|| rust(plain)).or(other) {
        Some(name) if name.len() <= LONGEST => Cow::Owned(name),
        _ => text,
    }
}

/// Returns a name without the hash of the file that makes the name of a static kernel unique: `.static.HASH` and `__static__HASH` of
/// clang, `__nv_static_LENGTH_MODULE_` of nvcc.
fn without_hash(name: &str) -> &str {
    const OF_CLANG: [&str; 4] = [".static.", ".intern.", "__static__", "__intern__"];
    for mark in OF_CLANG {
        if let Some((start, hash)) = name.rsplit_once(mark)
            && !start.is_empty()
            && !hash.is_empty()
            && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        {
            return start;
        }
    }
    let of_nvcc = || {
        let (len, rest) = name.strip_prefix("__nv_static_")?.split_once('_')?;
        rest.get(len.parse().ok()?..)?.strip_prefix('_').filter(|name| !name.is_empty())
    };
    of_nvcc().unwrap_or(name)
}

/// Reads `__omp_offloading_<device>_<file>_<function>_l<line>`, which clang makes. Numbers of device and file differ on every
/// machine.
fn openmp(name: &str) -> Option<String> {
    let rest = name.strip_prefix("__omp_offloading_")?;
    let mut parts = rest.splitn(3, '_');
    let numbers = [parts.next()?, parts.next()?];
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (function, line) = parts.next()?.rsplit_once("_l")?;
    let (line, more) = line.split_once('_').map_or((line, None), |(line, more)| (line, Some(more)));
    if !numbers.into_iter().all(is_hex) || !line.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let function = itanium(function).unwrap_or_else(|| function.to_string());
    let more = more.map(|more| format!(", {more}")).unwrap_or_default();
    Some(format!("{function} line {line}{more} (OpenMP)"))
}

fn itanium(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let options = cpp_demangle::DemangleOptions::default();
    let symbol = cpp_demangle::Symbol::new(name).ok()?;
    // The name of a type, which SYCL has.
    let name = symbol.demangle_with_options(&options).ok()?;
    Some(name.strip_prefix("typeinfo name for ").map(ToString::to_string).unwrap_or(name))
}

fn rust(name: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(name).ok()?;
    Some(format!("{name:#}"))
}

#[cfg(test)]
mod tests {
    use super::demangled;

    #[test]
    fn hashes_of_static_kernels_are_left_out() {
        for (name, source) in [
            ("_ZL3addPf.static.5c1b22e0e3f7a1d4", "add(float*)"),
            ("_ZL3addPf__static__5c1b22e0e3f7a1d4", "add(float*)"),
            ("add.intern.0123", "add"),
            ("add.static.", "add.static."),
            (".static.0123", ".static.0123"),
            ("add.static.fast", "add.static.fast"),
            ("__nv_static_32__0afad4c0_4_a_cu_f78b5b52_735892__Z3addPf", "add(float*)"),
            ("__nv_static_32__0afad4c0_4_a_cu_f78b5b52_735892_add", "add"),
            ("__nv_static_99_add", "__nv_static_99_add"),
            (
                "_ZN41_GLOBAL__N__3db100d3_4_a_cu_6046d1cb_12343addEPf",
                "(anonymous namespace)::add(float*)",
            ),
        ] {
            assert_eq!(demangled(name.as_bytes()), source, "{name}");
        }
    }

    #[test]
    fn openmp_names_do_not_depend_on_the_machine() {
        for (name, source) in [
            ("__omp_offloading_10302_b20_main_l5", "main line 5 (OpenMP)"),
            ("__omp_offloading_fd02_2a1f5c__Z3addPf_l42_1", "add(float*) line 42, 1 (OpenMP)"),
            ("__omp_offloading_main", "__omp_offloading_main"),
        ] {
            assert_eq!(demangled(name.as_bytes()), source, "{name}");
        }
    }
}
