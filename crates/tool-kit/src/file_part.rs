//! Parts of file names that come from files.

/// Returns a text from a file as a part of a file name, as LLVM's tools use it: what leads to other directories, or is in no
/// name, becomes `_`, and a long text ends early.
pub fn file_part(text: &str) -> String {
    /// Names may have 255 bytes on most systems.
    const LONGEST: usize = 80;
    let mut part = String::new();
    for c in text.chars() {
        let unsafe_here = cfg!(windows) && "<>:\"|?*".contains(c);
        let safe = !c.is_control() && !"/\\\u{fffd}".contains(c) && !unsafe_here;
        let c = if safe { c } else { '_' };
        if part.len() + c.len_utf8() > LONGEST {
            break;
        }
        part.push(c);
    }
    part
}
