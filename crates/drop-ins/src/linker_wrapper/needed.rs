//! The symbols that the host linker looks for, and files that linker scripts name: the library knows neither options
//! nor paths.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use offload_link::Members;

use super::options::Line;
use tool_kit::input;

/// Returns which members of archives are linked.
pub(super) fn members(line: &Line) -> io::Result<Members> {
    match line.text("archive-members").as_deref() {
        None | Some("all") => Ok(Members::All),
        Some("needed") if takes_more(line) => Ok(Members::All),
        Some("needed") => Ok(Members::Needed),
        Some(other) => Err(io::Error::other(format!(
            "--archive-members={other}: expected needed or all, found {other}"
        ))),
    }
}

/// Options with which the host linker takes members for other reasons than a reference.
const MORE: [&str; 4] = ["undefined-glob", "all_load", "ObjC", "force_load"];

fn takes_more(line: &Line) -> bool {
    words(line).iter().filter_map(|word| option(word)).any(|(name, _)| MORE.contains(&&*name))
}

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

/// Returns the symbols that options for the host linker name.
///
/// Words that are names only perhaps are among them: a name that nothing defines does no harm.
pub(super) fn roots(line: &Line) -> Vec<Vec<u8>> {
    let words = words(line);
    let mut roots = Vec::new();
    for (index, word) in words.iter().enumerate() {
        for letter in [b"-u", b"-e"] {
            roots.extend(word.strip_prefix(letter).map(<[u8]>::to_vec));
        }
        let Some((name, value)) = option(word) else { continue };
        if !ROOTS.iter().any(|root| name.eq_ignore_ascii_case(root)) {
            continue;
        }
        let value = value.or_else(|| words.get(index + 1).cloned()).unwrap_or_default();
        for symbol in names(&value) {
            if name == "wrap" {
                roots.push([b"__wrap_", &symbol[..]].concat());
            }
            roots.push(symbol);
        }
    }
    roots
}

/// Returns the linker script in the word of an option. One in a word of its own is an input.
pub(super) fn script(word: &OsStr) -> Option<PathBuf> {
    let word = input::bytes(word.to_owned());
    let starts = [&b"-T"[..], b"-dT", b"--script=", b"-script=", b"--default-script="];
    let values = starts.iter().filter_map(|start| word.strip_prefix(*start));
    values.map(input::path).find(|path| path.is_file())
}

fn words(line: &Line) -> Vec<Vec<u8>> {
    let words = line.host.iter().flat_map(|argument| argument.words.iter().cloned());
    words.map(input::bytes).collect()
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

/// A linker script.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    /// Files that it links, as it names them: `-lx` for a library to be searched.
    pub(super) files: Vec<Vec<u8>>,
    /// Words that can be names of symbols.
    pub(super) names: Vec<Vec<u8>>,
}

/// Largest script that is read.
const MAX_SCRIPT: u64 = 1 << 20;

impl Script {
    /// Reads a file; `None` if it is not text, is too long, or includes other scripts.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        if !path.metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_SCRIPT) {
            return Ok(None);
        }
        let mut text = Vec::new();
        let mut file = File::open(path)?.take(MAX_SCRIPT);
        file.by_ref().take(64).read_to_end(&mut text)?;
        let is_other =
            |text: &[u8]| text.contains(&0) || text.starts_with(b"!<") || text.is_empty();
        if is_other(&text) {
            return Ok(None);
        }
        file.read_to_end(&mut text)?;
        Ok(if is_other(&text) { None } else { Self::parse(&text) })
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let mut script = Script::default();
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
            rest = comment.get(end.unwrap_or(comment.len())..).unwrap_or_default();
        } else if *first == b'"' {
            let end = after.iter().position(|&byte| byte == b'"').unwrap_or(after.len());
            tokens.push(after.get(..end).unwrap_or_default().to_vec());
            rest = after.get(end + 1..).unwrap_or_default();
        } else if b"()".contains(first) {
            tokens.push(vec![*first]);
            rest = after;
        } else if first.is_ascii_whitespace() || b",;".contains(first) {
            rest = after;
        } else {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"(),;\"".contains(byte);
            let end = rest.iter().position(is_end).unwrap_or(rest.len());
            tokens.push(rest.get(..end).unwrap_or_default().to_vec());
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    tokens
}

/// Directories in which the files of scripts are searched.
#[derive(Debug)]
pub(super) struct Places<'p> {
    pub(super) libraries: &'p [PathBuf],
    pub(super) root: Option<&'p Path>,
}

impl Places<'_> {
    /// Finds a file that a script names, other than a library `-lx`.
    pub(super) fn find(&self, script: &Path, name: &[u8]) -> Option<PathBuf> {
        let below_root = |name: &[u8]| {
            let path = input::path(name);
            self.root.map(|root| root.join(path.strip_prefix("/").unwrap_or(&path)))
        };
        if let Some(name) = name.strip_prefix(b"=").or_else(|| name.strip_prefix(b"$SYSROOT")) {
            return below_root(name).filter(|path| path.is_file());
        }
        let path = input::path(name);
        if path.is_absolute() {
            let is_in_root = self.root.is_some_and(|root| script.starts_with(root));
            let in_root = below_root(name).filter(|path| is_in_root && path.is_file());
            return in_root.or(Some(path)).filter(|path| path.is_file());
        }
        let beside = script.parent().map(|directory| directory.join(&path));
        let in_libraries = self.libraries.iter().map(|directory| directory.join(&path));
        let mut all = [path.clone()].into_iter().chain(beside).chain(in_libraries);
        all.find(|path| path.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line::parse(text.split(' ').map(|word| word.as_bytes().to_vec()).collect()).unwrap()
    }

    fn texts(names: &[Vec<u8>]) -> Vec<String> {
        names.iter().map(|name| String::from_utf8(name.clone()).unwrap()).collect()
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
            let found = texts(&roots(&line(text)));
            let missing: Vec<_> =
                expected.split(' ').filter(|name| !found.iter().any(|it| it == name)).collect();
            assert!(missing.is_empty(), "{text}: {found:?}");
        }
        assert_eq!(texts(&roots(&line("a.o -lx -z now -o out --no-undefined"))), [""; 0]);
    }

    #[test]
    fn members_are_chosen() {
        let chosen = |text: &str| members(&line(text)).map_err(|error| error.to_string());
        assert_eq!(chosen("a.o"), Ok(Members::All));
        assert_eq!(chosen("--archive-members=all"), Ok(Members::All));
        assert_eq!(chosen("--archive-members=needed"), Ok(Members::Needed));
        assert_eq!(chosen("--archive-members=needed -ObjC"), Ok(Members::All));
        assert_eq!(chosen("--archive-members=needed --undefined-glob=x*"), Ok(Members::All));
        let error = "--archive-members=x: expected needed or all, found x";
        assert_eq!(chosen("--archive-members=x"), Err(error.to_owned()));
    }

    #[test]
    fn scripts_name_files_and_symbols() {
        let text = b"/* GNU ld script */\nOUTPUT_FORMAT(elf64-x86-64)\n\
            GROUP ( /lib/libc.so.6 libc_nonshared.a AS_NEEDED ( -lx \"a b\" ) ) EXTERN(more) x = y + 1;";
        let script = Script::parse(text).unwrap();
        assert_eq!(texts(&script.files), ["/lib/libc.so.6", "libc_nonshared.a", "-lx", "a b"]);
        for name in ["more", "x", "y"] {
            assert!(script.names.contains(&name.as_bytes().to_vec()), "{name}");
        }
        assert_eq!(Script::parse(b"INCLUDE other"), None);
        for odd in [&b"INPUT("[..], b"GROUP", b"INPUT ) (", b"/*", b"\"", b")))"] {
            let _ = Script::parse(odd);
        }
    }

    #[test]
    fn files_of_scripts_are_found() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["lib/x.o", "usr/y.o", "script/z.o"] {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), "").unwrap();
        }
        let libraries = [at("lib")];
        let places = Places { libraries: &libraries, root: Some(place.path()) };
        let script = at("script/l.so");
        let find = |name: &str| places.find(&script, name.as_bytes());
        assert_eq!(find("x.o"), Some(at("lib/x.o")));
        assert_eq!(find("z.o"), Some(at("script/z.o")));
        assert_eq!(find("/usr/y.o"), Some(at("usr/y.o")));
        assert_eq!(find("=/usr/y.o"), Some(at("usr/y.o")));
        assert_eq!(find(at("usr/y.o").to_str().unwrap()), Some(at("usr/y.o")));
        assert_eq!((find("none.o"), find("/none.o")), (None, None));
        let option = |start: &str, path: PathBuf| {
            super::script(OsStr::new(&format!("{start}{}", path.to_str().unwrap())))
        };
        assert_eq!(option("-T", at("lib/x.o")), Some(at("lib/x.o")));
        assert_eq!(option("--script=", at("lib/x.o")), Some(at("lib/x.o")));
        assert_eq!(option("-Ttext=", at("lib/x.o")), None);
        assert_eq!(option("-T", at("none")), None);
    }
}
