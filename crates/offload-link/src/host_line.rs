//! The command line of the host linker beside its inputs: symbols that options name, and linker scripts.

/// Options with which the host linker takes members for other reasons than a reference.
const MORE: [&str; 4] = ["undefined-glob", "all_load", "ObjC", "force_load"];

/// Options whose value names symbols.
const ROOTS: [&str; 12] = [
    "u",
    "undefined",
    "require-defined",
    "e",
    "entry",
    "init",
    "fini",
    "wrap",
    "defsym",
    "export-dynamic-symbol",
    "include",
    "alternatename",
];

/// Options for the host linker that decide which members of archives it takes. Words that mean something else do no
/// harm.
///
/// ```
/// use offload_link::HostOptions;
///
/// let options = HostOptions::parse(&["-u", "start", "--wrap=malloc", "-ObjC"]);
/// assert_eq!(options.roots(), [&b"start"[..], b"__wrap_malloc", b"malloc"]);
/// assert!(options.takes_more());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostOptions {
    roots: Vec<Vec<u8>>,
    takes_more: bool,
}

impl HostOptions {
    /// Reads the words of a command line, for a linker of any system.
    #[must_use]
    pub fn parse<W: AsRef<[u8]>>(words: &[W]) -> Self {
        let mut options = HostOptions::default();
        let roots = &mut options.roots;
        for (index, word) in words.iter().enumerate() {
            let word = word.as_ref();
            for letter in [b"-u", b"-e"] {
                roots.extend(
                    word.strip_prefix(letter).filter(|name| !name.is_empty()).map(<[u8]>::to_vec),
                );
            }
            let Some((name, value)) = option(word) else { continue };
            options.takes_more |= MORE.contains(&&*name);
            if !ROOTS.iter().any(|root| name.eq_ignore_ascii_case(root)) {
                continue;
            }
            let next = || words.get(index + 1).map(|word| word.as_ref().to_vec());
            for symbol in value.or_else(next).iter().flat_map(|value| names(value)) {
                if name == "wrap" {
                    roots.push([b"__wrap_", &symbol[..]].concat());
                }
                roots.push(symbol);
            }
        }
        options
    }

    /// Returns the symbols that they name, for [`PlanOptions::with_roots`](crate::PlanOptions::with_roots). A name that nothing
    /// defines does no harm.
    #[must_use]
    pub fn roots(&self) -> &[Vec<u8>] {
        &self.roots
    }

    /// Returns whether the host linker takes members for other reasons than a reference, so that all are to be
    /// [linked](crate::Members::All).
    #[must_use]
    pub fn takes_more(&self) -> bool {
        self.takes_more
    }
}

/// Returns the name of an option without its dashes or slash, and its value after `=` or `:`.
fn option(word: &[u8]) -> Option<(String, Option<Vec<u8>>)> {
    let [b'-' | b'/', name @ ..] = word else { return None };
    let name = name.strip_prefix(b"-").unwrap_or(name);
    let at = name.iter().position(|byte| b"=:".contains(byte)).unwrap_or(name.len());
    let (name, value) = name.split_at_checked(at)?;
    Some((String::from_utf8_lossy(name).into_owned(), value.get(1..).map(<[u8]>::to_vec)))
}

/// Returns the words of a text that can be names of symbols.
fn names(text: &[u8]) -> Vec<Vec<u8>> {
    let is_part =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$@?".contains(byte) || *byte > 127;
    let words = text.split(|byte| !is_part(byte)).filter(|word| !word.is_empty());
    words.map(<[u8]>::to_vec).collect()
}

/// The parts of a linker script that a link of device code needs.
///
/// ```
/// use offload_link::LinkerScript;
///
/// let script = LinkerScript::parse(b"GROUP ( /lib/libc.so.6 AS_NEEDED ( -lx ) ) EXTERN(more)").unwrap();
/// assert_eq!(script.files, [&b"/lib/libc.so.6"[..], b"-lx"]);
/// assert!(script.names.contains(&b"more".to_vec()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkerScript {
    /// Files that it links, as it names them: `-lx` for a library to be searched.
    pub files: Vec<Vec<u8>>,
    /// Words that can be names of symbols.
    pub names: Vec<Vec<u8>>,
}

impl LinkerScript {
    /// Size of the longest script that is taken for one.
    pub const MOST: u64 = 1 << 20;

    /// Returns whether a file that starts so can be a script: it is text, and no archive.
    #[must_use]
    pub fn may_start(head: &[u8]) -> bool {
        !(head.contains(&0) || head.starts_with(b"!<") || head.is_empty())
    }

    /// Reads a script; `None` if it is not text, is too long, or includes other scripts.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if !Self::may_start(text) || text.len() as u64 > Self::MOST {
            return None;
        }
        let mut script = LinkerScript::default();
        let mut tokens = tokens(text).into_iter().peekable();
        while let Some(token) = tokens.next() {
            match &token[..] {
                b"INCLUDE" | b"SEARCH_DIR" => return None,
                b"INPUT" | b"GROUP" | b"STARTUP" if tokens.peek().is_some_and(|it| it == b"(") => {
                    let mut depth = 0_usize;
                    for token in tokens.by_ref() {
                        match &token[..] {
                            b"(" => depth += 1,
                            b")" => depth -= 1,
                            b"AS_NEEDED" => {}
                            _ => script.files.push(token),
                        }
                        if depth == 0 {
                            break;
                        }
                    }
                }
                _ => script.names.extend(names(&token)),
            }
        }
        Some(script)
    }
}

/// Splits a script into words and parentheses, without comments.
fn tokens(text: &[u8]) -> Vec<Vec<u8>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        if let Some(comment) = rest.strip_prefix(b"/*") {
            let end = comment.windows(2).position(|two| two == b"*/").map(|at| at + 2);
            (_, rest) = comment.split_at(end.unwrap_or(comment.len()));
        } else if *first == b'"' {
            let end = after.iter().position(|&byte| byte == b'"').unwrap_or(after.len());
            let (token, end) = after.split_at(end);
            tokens.push(token.to_vec());
            rest = end.strip_prefix(b"\"").unwrap_or(end);
        } else if b"()".contains(first) {
            tokens.push(vec![*first]);
            rest = after;
        } else if first.is_ascii_whitespace() || b",;".contains(first) {
            rest = after;
        } else {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"(),;\"".contains(byte);
            let end = rest.iter().position(is_end).unwrap_or(rest.len());
            let (token, after) = rest.split_at(end);
            tokens.push(token.to_vec());
            rest = after;
        }
    }
    tokens
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests may panic")]
mod tests {
    use super::*;

    fn texts(names: &[Vec<u8>]) -> Vec<String> {
        names.iter().map(|name| String::from_utf8(name.clone()).unwrap()).collect()
    }

    fn parse(text: &str) -> HostOptions {
        HostOptions::parse(&text.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn options_name_symbols() {
        for (text, expected) in [
            ("-u a --undefined=b -undefined c -ud", "a b c d"),
            ("--require-defined=a --require-defined b", "a b"),
            ("-e a --entry=b -entry c -init d -fini=e", "a b c d e"),
            ("--wrap=a --wrap b", "a __wrap_a b __wrap_b"),
            ("--defsym=a=b+1 --export-dynamic-symbol=c", "a b c"),
            ("/include:?a@@3HA /ENTRY:b -alternatename:c=d", "?a@@3HA b c d"),
        ] {
            let found = texts(parse(text).roots());
            let missing: Vec<_> =
                expected.split(' ').filter(|name| !found.iter().any(|it| it == name)).collect();
            assert!(missing.is_empty(), "{text}: {found:?}");
        }
        assert_eq!(parse("a.o -lx -z now -o out --no-undefined"), HostOptions::default());
        assert!(parse("--undefined-glob=x*").takes_more());
    }

    #[test]
    fn scripts_name_files_and_symbols() {
        let text = b"/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\n\
            GROUP ( /lib/libc.so.6 libc_nonshared.a AS_NEEDED ( -lx \"a b\" ) ) EXTERN(more) x = y + 1;";
        let script = LinkerScript::parse(text).unwrap();
        assert_eq!(texts(&script.files), ["/lib/libc.so.6", "libc_nonshared.a", "-lx", "a b"]);
        for name in ["more", "x", "y"] {
            assert!(script.names.contains(&name.as_bytes().to_vec()), "{name}");
        }
        assert_eq!(LinkerScript::parse(b"INCLUDE other"), None);
        for odd in [&b"INPUT("[..], b"GROUP", b"INPUT ) (", b"/*", b"\"", b")))"] {
            let _ = LinkerScript::parse(odd);
        }
    }
}
