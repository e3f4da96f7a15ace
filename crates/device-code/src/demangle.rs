//! Names of kernels as in the source.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};

/// The longest name that is demangled, and the longest result, in bytes.
const LONGEST: usize = 64 << 10;

/// Returns a name as in the source: of C++ and Rust demangled, of SYCL the type that names the kernel, of OpenMP the function and
/// the line. Other names stay as they are; bytes that are not UTF-8 are replaced.
///
/// ```
/// use device_code::demangled;
///
/// assert_eq!(demangled(b"_Z3addPfS_i"), "add(float*, float*, int)");
/// assert_eq!(demangled(b"__omp_offloading_fd02_2a1f5c_main_l42"), "main line 42 (OpenMP)");
/// assert_eq!(demangled(b"add"), "add");
/// ```
#[must_use]
pub fn demangled(name: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(name);
    if text.len() > LONGEST {
        return text;
    }
    match openmp(&text).or_else(|| itanium(&text)).or_else(|| rust(&text)) {
        Some(name) if name.len() <= LONGEST => Cow::Owned(name),
        _ => text,
    }
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
