//! PTX texts among other constants.

use core::ops::Range;

use byte_parts::Window;
use llvm_bitcode::{ReadAt, Unreadable};
use target_id::NvidiaArch;

use crate::read::read_range;
use crate::target::image_target;

/// The first directive of each text, which only comments may precede ("PTX ISA", "Module Directives").
pub(crate) const VERSION: &[u8] = b".version";

/// Bytes before that directive that are searched for comments.
const COMMENTS: u64 = 2048;

/// Bytes that are read at first, and of the longest text.
const FIRST_PIECE: u64 = 4 << 10;
const LONGEST: u64 = 64 << 20;

/// Directives of modules that end where the next starts.
const HEAD: [&[u8]; 3] = [VERSION, b".target", b".address_size"];

/// Directives of modules that take a line.
const LINES: [&[u8]; 2] = [b".file", b".loc"];

/// Directives that declare or define something, up to a semicolon or a block.
const DEFINITIONS: [&[u8]; 15] = [
    b".visible",
    b".extern",
    b".weak",
    b".common",
    b".entry",
    b".func",
    b".global",
    b".const",
    b".shared",
    b".local",
    b".tex",
    b".texref",
    b".samplerref",
    b".surfref",
    b".attribute",
];

/// Directives of the same form that do neither.
const OTHERS: [&[u8]; 3] = [b".section", b".pragma", b".alias"];

/// Returns the place of the text whose `.version` starts `window`, and whose comments start at `before` or later;
/// `None` if there is none that is in order.
///
/// It names a version and a processor, consists of whole directives, defines something, and has no place that a
/// program fills in (`%s`). It ends before the first byte that is not text, or where other text starts. `read`
/// counts the bytes that were looked at.
pub(crate) fn range(
    source: &mut dyn ReadAt,
    window: &Range<u64>,
    head: &[u8],
    before: u64,
    read: &mut u64,
) -> Result<Option<Range<u64>>, Unreadable> {
    if !has_version(head) {
        return Ok(None);
    }
    let mut len = FIRST_PIECE;
    let size = loop {
        let end = window.start + len.min(Window::new(window).len());
        let bytes = read_range(source, &(window.start..end))?;
        *read += bytes.len() as u64;
        let target = image_target(&bytes);
        if target.is_none_or(|target| NvidiaArch::parse(target.id()).is_err()) {
            return Ok(None);
        }
        let len_of_text = bytes.iter().position(|&byte| !is_text(byte)).unwrap_or(bytes.len());
        let is_all = len_of_text < bytes.len() || end == window.end;
        let (text, _) = bytes.split_at(len_of_text);
        let (size, looked_at) = module(text);
        if is_all || looked_at < text.len() {
            break size;
        }
        if len >= LONGEST {
            return Ok(None);
        }
        len = (4 * len).min(LONGEST);
    };
    let Some(size) = size else { return Ok(None) };
    // The file may start there.
    let start = before.max(window.start.saturating_sub(COMMENTS)).min(window.start);
    let lines = read_range(source, &(start..window.start))?;
    let comments = comments(&lines, start == before);
    Ok(Some(window.start - comments as u64..window.start + size as u64))
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' '..=b'~' | 0x80..)
}

/// Returns whether two numbers with a point between them follow the directive.
fn has_version(head: &[u8]) -> bool {
    let version = head.get(VERSION.len()..).map(<[u8]>::trim_ascii_start);
    let mut fields = version.into_iter().flat_map(|text| text.splitn(2, |byte| *byte == b'.'));
    let (Some(major), Some([minor, ..])) = (fields.next(), fields.next()) else { return false };
    matches!(major.len(), 1 | 2) && major.iter().chain([minor]).all(u8::is_ascii_digit)
}

/// Returns the number of bytes at the end of `before` that are lines of comments, or blank. It starts with a line
/// if `is_start`.
fn comments(before: &[u8], is_start: bool) -> usize {
    let text = before.iter().rposition(|&byte| !is_text(byte)).map_or(0, |at| at + 1);
    let is_start = is_start || text > 0;
    let (_, text) = before.split_at(text);
    let (mut len, mut end) = (0, 0);
    for (n, line) in text.rsplit(|&byte| byte == b'\n').enumerate() {
        let trimmed = line.trim_ascii();
        let is_comment = trimmed.is_empty() || (n > 0 && trimmed.starts_with(b"//"));
        let is_whole = is_start || end + line.len() < text.len();
        if !is_comment || !is_whole {
            break;
        }
        len = end + line.len();
        end = len + 1;
    }
    len
}

/// Returns the size of the module at the start of `text`, which ends where no more text follows, and the number of
/// bytes that the answer depends on at most.
fn module(text: &[u8]) -> (Option<usize>, usize) {
    // No word that is looked for is longer.
    const WORD: usize = 16;
    let mut cursor = Cursor { len: text.len(), rest: text };
    let size = cursor.module();
    (size, text.len().min(cursor.position() + WORD))
}

struct Cursor<'t> {
    /// Length of the text, and what is left of it.
    len: usize,
    rest: &'t [u8],
}

impl<'t> Cursor<'t> {
    /// Skips a module. Returns its size.
    fn module(&mut self) -> Option<usize> {
        let (mut is_defined, mut end) = (false, 0);
        loop {
            self.skip_blanks();
            let directive = self.directive();
            match self.rest.first() {
                // Comments at the end are of the module.
                None => return is_defined.then_some(self.len),
                Some(b';') => self.skip(1),
                // Debug information of old compilers.
                Some(b'@') if self.rest.starts_with(b"@@") => self.skip_line(),
                // The next module.
                Some(b'.') if directive == VERSION && end > 0 => break,
                Some(b'.') if HEAD.contains(&directive) => self.skip_head(),
                Some(b'.') if LINES.contains(&directive) => self.skip_line(),
                Some(b'.') if OTHERS.contains(&directive) => self.skip_statement()?,
                Some(b'.') if DEFINITIONS.contains(&directive) => {
                    is_defined = true;
                    self.skip_statement()?;
                }
                // The end of a module with this is not known.
                Some(b'.' | b'@' | b'{' | b'}') => return None,
                Some(_) => break,
            }
            end = self.position();
        }
        is_defined.then_some(end)
    }

    /// Returns the number of bytes that were skipped.
    fn position(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Skips bytes, which are there.
    fn skip(&mut self, len: usize) {
        (_, self.rest) = self.rest.split_at(len);
    }

    /// Returns the word with its dot that starts here.
    fn directive(&self) -> &'t [u8] {
        let rest = self.rest;
        let is_end = |&byte: &u8| !byte.is_ascii_alphanumeric() && byte != b'_';
        let end = rest.iter().skip(1).position(is_end).map_or(rest.len(), |at| at + 1);
        rest.split_at(end).0
    }

    /// Skips a directive, and what follows on its line before the next one.
    fn skip_head(&mut self) {
        self.skip(1);
        let rest = self.rest;
        let is_next = |two: &[u8]| matches!(two, [b'.', b'a'..=b'z'] | [b'\n', _] | b"//");
        let end = rest.windows(2).position(is_next);
        self.skip(end.unwrap_or(rest.len()));
    }

    fn skip_line(&mut self) {
        let rest = self.rest;
        let len = rest.iter().position(|&byte| byte == b'\n');
        self.skip(len.map_or(rest.len(), |len| len + 1));
    }

    fn skip_blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_ascii_start();
            if !self.skip_comment() {
                return;
            }
        }
    }

    /// Skips a comment, if one starts here.
    fn skip_comment(&mut self) -> bool {
        let rest = self.rest;
        if rest.starts_with(b"//") {
            self.skip_line();
            return true;
        }
        let is_comment = rest.starts_with(b"/*");
        if is_comment {
            let end = rest.windows(2).skip(2).position(|pair| pair == b"*/");
            self.skip(end.map_or(rest.len(), |at| at + 4));
        }
        is_comment
    }

    /// Skips what ends with a semicolon or a block; `None` if it does not end, or is a pattern for texts.
    fn skip_statement(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        while let Some(&byte) = self.rest.first() {
            if byte == b'/' && self.skip_comment() {
                continue;
            }
            self.skip(1);
            match byte {
                b'"' => {
                    let len = self.rest.iter().position(|&byte| byte == b'"');
                    self.skip(len.map_or(self.rest.len(), |len| len + 1));
                }
                b'%' if is_placeholder(self.rest) => return None,
                b'{' => depth += 1,
                b'}' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(());
                    }
                }
                b';' if depth == 0 => return Some(()),
                _ => {}
            }
        }
        None
    }
}

/// Returns whether this is, after a percent sign, what `printf` replaces. Names of registers go on.
fn is_placeholder(rest: &[u8]) -> bool {
    let name = rest
        .iter()
        .take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$');
    match name.count() {
        0 => rest.starts_with(b"%"),
        1 => rest.first().is_some_and(|byte| b"sdiuxc".contains(byte)),
        2 => rest.starts_with(b"lu") || rest.starts_with(b"ld"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    const START: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn len(text: &str) -> Option<usize> {
        module(text.as_bytes()).0
    }

    #[test]
    fn modules_end_with_their_last_directive() {
        for body in [
            ".visible .entry f(.param .u64 a)\n.maxntid 1, 1, 1\n{ { mov.u32 %r1, %tid.x; } ret; }",
            ".extern .func (.param .b32 r) f\n(\n\t.param .b64 a\n)\n;",
            ".global .align 1 .b8 s[4] = {37, 115, 37, 0};",
            ".file 1 \"a } b\"\n.func f { .loc 1 2 3\n// }\n/* } */ ret; }\n.section .debug_loc { .b8 0 }",
            ".pragma \"nounroll\";\n.weak .func f() { }\n@@DWARF .byte 0\n",
        ] {
            let text = format!("{START}{body}");
            assert_eq!(len(&text), Some(text.len()), "{body}");
            let more = format!("{text}\n// END\n");
            assert_eq!(len(&more), Some(more.len()), "{body}");
            assert_eq!(len(&format!("{text} Other text")), Some(text.len()), "{body}");
            let two = format!("{text}\n// Generated\n{text}");
            assert_eq!(len(&two), Some(text.len()), "{body}");
            // Later bytes do not matter.
            for cut in 0..two.len() {
                let (size, looked_at) = module(&two.as_bytes()[..cut]);
                assert!(looked_at == cut || size == Some(text.len()), "{cut} {body}");
            }
        }
    }

    #[test]
    fn modules_may_be_one_line() {
        for text in [
            ".version 3.2.target sm_35.address_size 64 .entry f{exit;}",
            ".version 2.2.target sm_20.entry f{exit;}",
            ".version 2.2 // a\n.target sm_20, debug // .entry\n.entry f{exit;}",
        ] {
            assert_eq!(len(text), Some(text.len()), "{text}");
            assert!(has_version(text.as_bytes()) && image_target(text.as_bytes()).is_some());
        }
    }

    #[test]
    fn incomplete_modules_have_no_end() {
        for body in [
            "",
            "// .func f() { }",
            ".func f() {",
            ".func f() { ret; }}",
            ".extern .func f()",
            ".func f() { } .unknown a;",
            ".func f() { mov.u32 %r1, %s; }",
            ".func f() { mov.u32 %%r1, 1; }",
            ".global .b8 s[1] = {%lu};",
            ".pragma \"nounroll\";",
            "text",
        ] {
            assert_eq!(len(&format!("{START}{body}")), None, "{body}");
        }
        for body in [".func f() { mov.u32 %s1, %d_2; }", ".func f() { mov.u32 %r, %tid; }"] {
            assert!(len(&format!("{START}{body}")).is_some(), "{body}");
        }
    }

    #[test]
    fn versions_are_two_numbers() {
        for head in [".version 7.0\n", ".version\t10.12 "] {
            assert!(has_version(head.as_bytes()), "{head}");
        }
        for head in [
            ".version %d.%d",
            ".version ",
            ".version 7",
            ".version 123.0",
            ".versions.0",
            ".version 7.x",
        ] {
            assert!(!has_version(head.as_bytes()), "{head}");
        }
    }

    #[test]
    fn comments_before_the_first_directive_belong_to_the_module() {
        for (before, is_start, len) in [
            ("", true, 0),
            ("\n", true, 1),
            ("// a\n//\n\n", true, 9),
            ("// a\n//\n\n", false, 4),
            ("text\0// a\n", false, 5),
            ("text\n// a\n", true, 5),
            ("text // a\n", true, 0),
            ("// a", true, 0),
            ("text", false, 0),
            ("text\0  ", false, 2),
        ] {
            assert_eq!(comments(before.as_bytes(), is_start), len, "{before:?}");
        }
    }
}
