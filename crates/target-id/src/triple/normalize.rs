//! LLVM's normal form of a triple.

use alloc::string::String;
use alloc::vec::Vec;

use super::{arch, fields};

/// Positions that have a meaning: architecture, vendor, operating system, environment.
const POSITIONS: usize = 4;

/// Returns whether a field is known text for a position.
fn suits(position: usize, text: &str) -> bool {
    match position {
        0 => arch::parse(text).is_some(),
        1 => !fields::vendor(text).is_empty(),
        2 => !fields::os(text).is_empty() || is_mingw(text) || is_cygwin(text),
        _ => !fields::environment(text).is_empty() || !fields::format(text).is_empty(),
    }
}

/// Returns whether a text fits its present position. LLVM is stricter here than [`suits`]: it examines text that normalises
/// to Windows, or only names an object format, later.
fn settled(position: usize, text: &str) -> bool {
    match position {
        2 => !fields::os(text).is_empty(),
        3 => !fields::environment(text).is_empty(),
        _ => suits(position, text),
    }
}

fn is_mingw(text: &str) -> bool {
    text.starts_with("mingw")
}

fn is_cygwin(text: &str) -> bool {
    text.starts_with("cygwin") || text.starts_with("msys")
}

/// The fields while they are being moved.
struct Fields<'a> {
    texts: Vec<&'a str>,
    /// Positions that hold their final text and are stepped over.
    fixed: [bool; POSITIONS],
}

impl<'a> Fields<'a> {
    fn is_fixed(&self, index: usize) -> bool {
        self.fixed.get(index).copied().unwrap_or(false)
    }

    fn get(&self, index: usize) -> &'a str {
        self.texts.get(index).copied().unwrap_or("")
    }

    /// Returns the first index from `index` on that is not fixed.
    fn free_from(&self, index: usize) -> usize {
        (index..).find(|index| !self.is_fixed(*index)).unwrap_or(index)
    }

    /// Puts `text` at the first free place from `index` on. The old contents move on to the next free place, and so
    /// on, up to an empty field or the end.
    fn insert(&mut self, index: usize, text: &'a str) {
        let mut carried = text;
        let mut index = self.free_from(index);
        while let Some(place) = self.texts.get_mut(index) {
            carried = core::mem::replace(place, carried);
            if carried.is_empty() {
                return;
            }
            index = self.free_from(index + 1);
        }
        if !carried.is_empty() {
            self.texts.push(carried);
        }
    }

    /// Brings the field at `from` to the position `to`.
    fn move_field(&mut self, from: usize, to: usize) {
        if to < from {
            let text = self.get(from);
            if let Some(place) = self.texts.get_mut(from) {
                *place = "";
            }
            self.insert(to, text);
        } else {
            let mut at = from;
            while at < to {
                self.insert(at, "");
                at = self.free_from(at + 1);
            }
        }
    }

    /// Fills each open position with the first field that is known text for it.
    fn permute(&mut self) {
        for position in 0..POSITIONS {
            if self.is_fixed(position) {
                continue;
            }
            let found = (0..self.texts.len())
                .find(|&index| !self.is_fixed(index) && suits(position, self.get(index)));
            if let Some(index) = found {
                self.move_field(index, position);
                if let Some(fixed) = self.fixed.get_mut(position) {
                    *fixed = true;
                }
            }
        }
    }

    fn set(&mut self, index: usize, text: &'a str) {
        if let Some(place) = self.texts.get_mut(index) {
            *place = text;
        }
    }
}

/// Returns the normal form of `text`, with `count` fields (three or four).
pub(super) fn normalize(text: &str, count: usize) -> String {
    let mut fields = Fields { texts: text.split('-').collect(), fixed: [false; POSITIONS] };
    for position in 0..POSITIONS {
        if position < fields.texts.len()
            && settled(position, fields.get(position))
            && let Some(fixed) = fields.fixed.get_mut(position)
        {
            *fixed = true;
        }
    }
    fields.permute();

    // `arch-none-<env>`: "none" is the operating system, not the vendor.
    if fields.fixed == [true, false, false, true]
        && fields.get(1) == "none"
        && fields.get(2).is_empty()
    {
        fields.set(1, "");
        fields.set(2, "none");
    }
    for text in &mut fields.texts {
        if text.is_empty() {
            *text = "unknown";
        }
    }

    let vendor = if fields.is_fixed(1) { fields::vendor(fields.get(1)) } else { "" };
    let system = if fields.is_fixed(2) { fields.get(2) } else { "" };
    let environment = if fields.is_fixed(3) { fields::environment(fields.get(3)) } else { "" };
    let format = if fields.is_fixed(3) { fields::format(fields.get(3)) } else { "" };

    if vendor == "suse" && environment == "gnueabi" {
        fields.set(3, "gnueabihf");
    }
    if fields::os(system) == fields::WINDOWS || is_mingw(system) || is_cygwin(system) {
        fields.texts.resize(POSITIONS, "");
        fields.set(2, fields::WINDOWS);
        if is_mingw(system) {
            fields.set(3, "gnu");
        } else if is_cygwin(system) {
            fields.set(3, "cygnus");
        } else if environment.is_empty() {
            fields.set(3, if format.is_empty() || format == "coff" { "msvc" } else { format });
        }
    }
    fields.texts.resize(count, "unknown");

    let android = fields.get(3).strip_prefix("androideabi").filter(|_| environment == "android");
    if fields.get(0) == "dxil"
        && let Some(arch) = fields::dxil_of_shader_model(system)
    {
        fields.set(0, arch);
    }

    let mut joined = String::with_capacity(text.len() + 16);
    for (index, field) in fields.texts.iter().enumerate() {
        if index > 0 {
            joined.push('-');
        }
        match android {
            Some(version) if index == 3 => {
                joined.push_str("android");
                joined.push_str(version);
            }
            _ => joined.push_str(field),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn fields_move_to_their_places() {
        for (given, expected) in [
            ("", "unknown-unknown-unknown-unknown"),
            ("x86_64", "x86_64-unknown-unknown-unknown"),
            ("linux-x86_64", "x86_64-unknown-linux-unknown"),
            ("gnu-linux-x86_64", "x86_64-unknown-linux-gnu"),
            ("a-b-i386", "i386-a-b-unknown"),
            ("x86_64-linux-none-gnu", "x86_64-unknown-linux-gnu"),
            ("pc-a", "unknown-pc-a-unknown"),
            ("a-b-c-d-e-f", "a-b-c-d"),
        ] {
            assert_eq!(normalize(given, 4), expected, "{given}");
        }
    }

    #[test]
    fn none_is_the_system_when_only_an_environment_follows() {
        assert_eq!(normalize("x86_64-none-gnu", 4), "x86_64-unknown-none-gnu");
        assert_eq!(normalize("x86_64-none-linux-gnu", 4), "x86_64-none-linux-gnu");
    }

    #[test]
    fn spellings_of_windows_and_android_are_normalized() {
        for (given, expected) in [
            ("x86_64-pc-cygwin-elf", "x86_64-pc-windows-cygnus"),
            ("x86_64-pc-msys", "x86_64-pc-windows-cygnus"),
            ("x86_64-pc-windows-elf", "x86_64-pc-windows-elf"),
            ("x86_64-pc-windows-gnuelf", "x86_64-pc-windows-gnuelf"),
            ("x86_64-pc-win32-coff", "x86_64-pc-windows-msvc"),
            ("x86_64-elf-pc-windows", "x86_64-pc-windows-elf"),
            ("arm-none-linux-androideabi21", "arm-none-linux-android21"),
            ("riscv64-mti-msys-androideabi21", "riscv64-mti-windows-cygnus"),
            ("dxil--shadermodel6.3-pixel", "dxilv1.3-unknown-shadermodel6.3-pixel"),
            ("dxilv1.2--shadermodel6.5", "dxilv1.2-unknown-shadermodel6.5-unknown"),
            ("arm-suse-linux-gnueabi", "arm-suse-linux-gnueabihf"),
        ] {
            assert_eq!(normalize(given, 4), expected, "{given}");
        }
    }

    #[test]
    fn three_fields_are_cut() {
        assert_eq!(normalize("amdgcn-amd-amdhsa-llvm", 3), "amdgcn-amd-amdhsa");
        assert_eq!(normalize("amdgcn--amdhsa", 3), "amdgcn-unknown-amdhsa");
    }
}
