//! The page: one file, which loads nothing.

use std::fmt;
use std::io::{self, Write};

use sha2::{Digest, Sha256};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");

/// The parts of the script, which run in one function: no name of theirs is global.
const SCRIPTS: [&str; 7] = [
    include_str!("page/tree.js"),
    include_str!("page/words.js"),
    include_str!("page/treemap.js"),
    include_str!("page/map.js"),
    include_str!("page/table.js"),
    include_str!("page/thin.js"),
    include_str!("page/main.js"),
];

/// Writes the page without data. Its script waits for a call of `offloadReport.show(data)`.
///
/// # Errors
///
/// An error of writing.
pub fn write_page(out: &mut impl Write) -> io::Result<()> {
    write(out, "null")
}

/// A part before the report: a page for a program that makes the data in the browser.
///
/// Exhaustive: a page needs all of them.
#[derive(Clone, Copy)]
pub struct Front<'a> {
    /// The title of the page.
    pub title: &'a str,
    /// HTML before the report.
    pub body: &'a str,
    /// Its style, after the style of the report.
    pub style: &'a str,
    /// Its script, after the script of the report, in a function of its own.
    pub script: &'a str,
    /// A WebAssembly module, compressed with gzip: the text of the element `module` in base64.
    pub module: &'a [u8],
}

impl fmt::Debug for Front<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Front");
        fields
            .field("title", &self.title)
            .field("module", &self.module.len())
            .finish_non_exhaustive()
    }
}

/// Writes the page with a front, without data. Its policy permits it to run WebAssembly and workers of its own, and forbids
/// connections.
///
/// # Errors
///
/// An error of writing.
pub fn write_front(out: &mut impl Write, front: &Front<'_>) -> io::Result<()> {
    write_parts(out, "null", Some(front))
}

/// Writes the page with data in JSON.
pub(crate) fn write(out: &mut impl Write, data: &str) -> io::Result<()> {
    write_parts(out, data, None)
}

fn write_parts(out: &mut impl Write, data: &str, front: Option<&Front<'_>>) -> io::Result<()> {
    let function = |script: &str| format!("\"use strict\";\n(() => {{\n{script}}})();\n");
    let script = function(&SCRIPTS.concat());
    let more = front.map(|front| function(front.script));
    let style = [STYLE, front.map_or("", |front| front.style)].concat();
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'{}; img-src data:; base-uri 'none'; form-action 'none'",
        hash(&style),
        hash(&script),
        more.as_ref().map_or_else(String::new, |more| {
            let own = hash(more);
            format!(" '{own}' 'wasm-unsafe-eval'; worker-src blob:; connect-src 'none'")
        })
    );
    let mut rest = PAGE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.write_all(before.as_bytes())?;
        match name {
            "policy" => out.write_all(policy.as_bytes())?,
            "title" => {
                out.write_all(front.map_or("Where the bytes go", |front| front.title).as_bytes())?;
            }
            "style" => out.write_all(style.as_bytes())?,
            "script" => out.write_all(script.as_bytes())?,
            "front" => out.write_all(front.map_or("", |front| front.body).as_bytes())?,
            "module" => {
                if let Some((front, more)) = front.zip(more.as_ref()) {
                    let module = base64(front.module);
                    writeln!(
                        out,
                        "<script type=\"application/wasm\" id=\"module\">{module}</script>"
                    )?;
                    writeln!(out, "<script>{more}</script>")?;
                }
            }
            _ => write_data(out, data)?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

/// Writes JSON into an element of the page. `<`, `>` and `&` are only in strings, where they are written as numbers: so nothing ends
/// the element, or starts another one. Some readers take U+2028 and U+2029 for ends of lines.
fn write_data(out: &mut impl Write, data: &str) -> io::Result<()> {
    const SPECIAL: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];
    for piece in data.split_inclusive(SPECIAL) {
        match piece.chars().next_back().filter(|c| SPECIAL.contains(c)) {
            Some(c) => {
                let plain = piece.strip_suffix(c).unwrap_or(piece);
                write!(out, "{plain}\\u{:04x}", u32::from(c))?;
            }
            None => out.write_all(piece.as_bytes())?,
        }
    }
    Ok(())
}

/// Returns the hash of an element's text, as a policy has it.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let at = |index: usize| u32::from(piece.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            let digit = DIGITS.get(value as usize).filter(|_| digit <= piece.len());
            text.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        let texts = ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes()));
        assert_eq!(texts, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]);
    }

    #[test]
    fn data_cannot_end_its_element() {
        let mut out = Vec::new();
        write_data(&mut out, "\"</script><!-- & \u{2028}\"").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, r#""\u003c/script\u003e\u003c!-- \u0026 \u2028""#);
    }
}
