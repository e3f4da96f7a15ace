//! Response files: `@file` is replaced by the words in the file.
//!
//! A pipe or a device is refused: it may never end, and opening it may wait for ever. A pipe that the caller has opened,
//! as shells do for `@<(command)`, is read.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tool_kit::{input, opened, real};

/// Files in files; LLVM's tools have no limit.
const MAX_DEPTH: usize = 32;
/// Small files that name each other twice grow without bound.
const MAX_ARGUMENTS: usize = 1 << 20;
/// Bytes of all files, each time that one is named: files with one long word, or without words, count as well.
const MAX_BYTES: usize = 64 << 20;
/// Least cost of naming a file.
const OPENING: usize = 1 << 10;

/// Replaces each `@file` by the words of the file, and in those again. Unreadable files stay arguments: they may be
/// names of files. Names are relative to the current directory, as in LLVM's tools.
pub(crate) fn expand(args: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, String> {
    let mut expansion = Expansion { out: Vec::new(), open: Vec::new(), bytes_left: MAX_BYTES };
    expansion.words(args)?;
    Ok(expansion.out)
}

struct Expansion {
    out: Vec<Vec<u8>>,
    /// The files around, from outside in.
    open: Vec<PathBuf>,
    bytes_left: usize,
}

impl Expansion {
    fn words(&mut self, words: Vec<Vec<u8>>) -> Result<(), String> {
        for word in words {
            let path = word.strip_prefix(b"@").map(input::path);
            let Some((path, bytes)) =
                path.and_then(|path| self.read(path).transpose()).transpose()?
            else {
                self.has_room_for(1)?;
                self.out.push(word);
                continue;
            };
            let real = real::path(&path).unwrap_or_else(|_| path.clone());
            if self.open.contains(&real) {
                return Err(format!("recursive expansion of: '{}'", path.display()));
            }
            if self.open.len() >= MAX_DEPTH {
                return Err(format!(
                    "'{}': response files are nested more than {MAX_DEPTH} deep",
                    path.display()
                ));
            }
            self.open.push(real);
            let split = if cfg!(windows) { split_as_windows } else { split };
            let words = match utf16(&bytes) {
                Some(text) => split(text.as_bytes()),
                None => split(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes)),
            };
            drop(bytes);
            self.words(words.ok_or_else(too_many)?)?;
            self.open.pop();
        }
        Ok(())
    }

    fn has_room_for(&self, more: usize) -> Result<(), String> {
        if self.out.len() + more > MAX_ARGUMENTS { Err(too_many()) } else { Ok(()) }
    }

    /// Returns a file's path and bytes; `None` if it cannot be read.
    fn read(&mut self, path: PathBuf) -> Result<Option<(PathBuf, Vec<u8>)>, String> {
        let too_large = || format!("response files hold more than {MAX_BYTES} bytes");
        let mut bytes = Vec::new();
        // Do not trust the size that the file claims.
        let limit = self.bytes_left as u64 + 1;
        match open(&path).map(|file| file.take(limit).read_to_end(&mut bytes)) {
            Ok(Ok(_)) => {}
            Err(error) if error.kind() == io::ErrorKind::Other => {
                return Err(format!("'{}': {error}", path.display()));
            }
            _ => return Ok(None),
        }
        let left = self.bytes_left.checked_sub(bytes.len().max(OPENING));
        self.bytes_left = left.ok_or_else(too_large)?;
        Ok(Some((path, bytes)))
    }
}

/// Opens a regular file, or one that the caller has opened. The error for other files is
/// [`Other`](io::ErrorKind::Other).
fn open(path: &Path) -> io::Result<File> {
    let is_in = |place| path.parent() == Some(Path::new(place));
    let is_opened = is_in("/dev/fd")
        || is_in("/proc/self/fd")
        || [Path::new("/dev/stdin"), Path::new("/dev/null")].contains(&path);
    if is_opened { File::open(path) } else { opened::open_regular(path) }
}

fn too_many() -> String {
    format!("response files hold more than {MAX_ARGUMENTS} arguments")
}

/// Returns the text of a file that starts with a byte order mark of UTF-16, as some build systems on Windows write
/// it.
fn utf16(bytes: &[u8]) -> Option<String> {
    let unit: fn([u8; 2]) -> u16 = match bytes.first_chunk()? {
        [0xff, 0xfe] => u16::from_le_bytes,
        [0xfe, 0xff] => u16::from_be_bytes,
        _ => return None,
    };
    let units = bytes.chunks_exact(2).skip(1).filter_map(|pair| Some(unit(*pair.first_chunk()?)));
    char::decode_utf16(units).collect::<Result<_, _>>().ok()
}

/// Splits a text into words by GNU's rules: words end at whitespace, quotes of both kinds keep it, a backslash keeps
/// any character, even in quotes. Empty words are dropped, even quoted ones. `None` if there are more than a command
/// line has.
fn split(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word = Vec::new();
    let mut quote = None;
    let end = |word: &mut Vec<u8>, words: &mut Vec<Vec<u8>>| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
        (words.len() <= MAX_ARGUMENTS).then_some(())
    };
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if bytes.peek().is_some() => word.extend(bytes.next()),
            _ if quote == Some(byte) => quote = None,
            b'\'' | b'"' if quote.is_none() => quote = Some(byte),
            b' ' | b'\t' | b'\r' | b'\n' if quote.is_none() => {
                end(&mut word, &mut words)?;
            }
            _ => word.push(byte),
        }
    }
    end(&mut word, &mut words)?;
    Some(words)
}

/// Splits a text into words as programs on Windows split their command line, which is LLVM's rule there: words end at whitespace
/// and zero bytes, double quotes keep them, and two quotes within quotes are one. A backslash is one, unless it is
/// before a quote: there each pair is one, and a single one more keeps the quote. Quoted words may be empty.
fn split_as_windows(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut is_quoted = false;
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        let is_space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0);
        if is_space && !is_quoted {
            words.extend(word.take());
            if words.len() > MAX_ARGUMENTS {
                return None;
            }
            continue;
        }
        let word = word.get_or_insert_default();
        match byte {
            b'\\' => {
                let more = rest.iter().take_while(|&&byte| byte == b'\\').count();
                rest = rest.get(more..)?;
                let count = more + 1;
                match rest {
                    [b'"', after @ ..] => {
                        word.extend(std::iter::repeat_n(b'\\', count / 2));
                        if count % 2 == 1 {
                            word.push(b'"');
                            rest = after;
                        }
                    }
                    _ => word.extend(std::iter::repeat_n(b'\\', count)),
                }
            }
            b'"' if !is_quoted => is_quoted = true,
            b'"' => match rest {
                [b'"', after @ ..] => {
                    word.push(b'"');
                    rest = after;
                }
                _ => is_quoted = false,
            },
            byte => word.push(*byte),
        }
    }
    words.extend(word);
    (words.len() <= MAX_ARGUMENTS).then_some(words)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn strings(words: Vec<Vec<u8>>) -> Vec<String> {
        words.into_iter().map(|word| String::from_utf8(word).unwrap()).collect()
    }

    #[test]
    fn words_are_quoted_as_gnu_does() {
        for (text, words) in [
            ("", vec![]),
            (" a\tb\r\nc ", vec!["a", "b", "c"]),
            (r"a\ b\\ \'", vec!["a b\\", "'"]),
            (r#"'a "b' "c 'd" e"f"'g'"#, vec!["a \"b", "c 'd", "efg"]),
            (r#"'a\'b' "x\"y""#, vec!["a'b", "x\"y"]),
            ("a''b '' \"\" c", vec!["ab", "c"]),
            ("'open end", vec!["open end"]),
            ("end\\", vec!["end\\"]),
            ("# no comment", vec!["#", "no", "comment"]),
        ] {
            assert_eq!(strings(split(text.as_bytes()).unwrap()), words, "{text}");
        }
    }

    /// Expectations of LLVM's own tests of `TokenizeWindowsCommandLine`, and more.
    #[test]
    fn words_are_quoted_as_windows_does() {
        for (text, words) in [
            ("", vec![]),
            (" a\tb\r\nc\0d ", vec!["a", "b", "c", "d"]),
            (
                r#"a\b c\\d e\\"f g" h\"i j\\\"k "lmn" o pqr "st \"u" \v"#,
                vec![
                    r"a\b", r"c\\d", r"e\f g", r#"h"i"#, r#"j\"k"#, "lmn", "o", "pqr", r#"st "u"#,
                    r"\v",
                ],
            ),
            (r#"clang -c -DFOO="""ABC""" x.cpp"#, vec!["clang", "-c", r#"-DFOO="ABC""#, "x.cpp"]),
            ("a b c d ", vec!["a", "b", "c", "d"]),
            (r#"a b c d """#, vec!["a", "b", "c", "d", ""]),
            (r#"a b c d ""#, vec!["a", "b", "c", "d", ""]),
            (r#"a b c d "text"#, vec!["a", "b", "c", "d", "text"]),
            (
                "clang -Xclang foo\n\nfoo\"bar\"baz\n x.cpp\n",
                vec!["clang", "-Xclang", "foo", "foobarbaz", "x.cpp"],
            ),
            (r"-input=b\h.o 'x y'", vec![r"-input=b\h.o", "'x", "y'"]),
            (
                r#"\\server\share\a.o "C:\Program Files\b.o""#,
                vec![r"\\server\share\a.o", r"C:\Program Files\b.o"],
            ),
            ("end\\", vec!["end\\"]),
        ] {
            assert_eq!(strings(split_as_windows(text.as_bytes()).unwrap()), words, "{text}");
        }
        assert_eq!(split_as_windows(&b"a ".repeat(MAX_ARGUMENTS + 1)), None);
    }

    mod properties {
        use proptest::prelude::*;

        use super::*;

        proptest! {
            #[test]
            fn quoted_words_are_read_back(
                words in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..12), 0..6),
            ) {
                let escaped = |word: &Vec<u8>| word.iter().flat_map(|&byte| [b'\\', byte]).collect::<Vec<u8>>();
                let text = words.iter().map(escaped).collect::<Vec<_>>().join(&b'\n');
                prop_assert_eq!(split(&text), Some(words));
            }

            #[test]
            fn any_text_has_words_that_are_not_empty(text in prop::collection::vec(any::<u8>(), 0..200)) {
                let words = split(&text).unwrap();
                prop_assert!(words.iter().all(|word| !word.is_empty()));
                prop_assert!(words.iter().map(Vec::len).sum::<usize>() <= text.len());
                let _ = utf16(&text);
                let words = split_as_windows(&text).unwrap();
                prop_assert!(words.iter().map(Vec::len).sum::<usize>() <= text.len());
            }
        }
    }

    #[test]
    fn files_are_read_in_place_and_depth_first() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &[u8]| {
            let path = place.path().join(name);
            fs::write(&path, text).unwrap();
            format!("@{}", path.display())
        };
        let inner = file("inner", b"\xef\xbb\xbfb 'c d'");
        let outer = file("outer", format!("a \"{inner}\" e").as_bytes());
        let wide = file("wide", b"\xff\xfew\0 \0x\0\xe4\0");
        let args = [&outer[..], "f", "@/no/such/file", &wide, "@"];
        let args = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
        assert_eq!(
            strings(expand(args).unwrap()),
            ["a", "b", "c d", "e", "f", "@/no/such/file", "w", "xä", "@"]
        );
    }

    #[test]
    fn loops_and_too_many_words_are_errors() {
        let place = tempfile::tempdir().unwrap();
        let name = |n: usize| format!("@{}", place.path().join(n.to_string()).display());
        let quoted = |n: usize| format!("\"{}\"", name(n));
        fs::write(place.path().join("0"), quoted(0)).unwrap();
        let error = expand(vec![name(0).into_bytes()]).unwrap_err();
        assert!(error.starts_with("recursive expansion of: '"), "{error}");
        for n in 1..40 {
            fs::write(place.path().join(n.to_string()), quoted(n + 1)).unwrap();
        }
        let error = expand(vec![name(1).into_bytes()]).unwrap_err();
        assert!(error.contains("nested more than 32 deep"), "{error}");
        for n in 50..60 {
            let twice = format!("{} {0}", quoted(n + 1));
            fs::write(place.path().join(n.to_string()), twice).unwrap();
        }
        let hold = |text: &str| {
            fs::write(place.path().join("60"), text).unwrap();
            expand(vec![name(50).into_bytes()]).unwrap_err()
        };
        let error = hold(&"a ".repeat(2000));
        assert!(error.contains("more than 1048576 arguments"), "{error}");
        // One file, and one that is named often, with hardly any arguments.
        let error = hold(&"a ".repeat(1 << 21));
        assert!(error.contains("more than 1048576 arguments"), "{error}");
        let error = hold(&"a".repeat(1 << 17));
        assert!(error.contains("more than 67108864 bytes"), "{error}");
        for n in 60..70 {
            let twice = format!("{} {0}", quoted(n + 1));
            fs::write(place.path().join(n.to_string()), twice).unwrap();
        }
        fs::write(place.path().join("70"), "").unwrap();
        let error = expand(vec![name(50).into_bytes()]).unwrap_err();
        assert!(error.contains("more than 67108864 bytes"), "{error}");
    }

    /// None of them is waited for.
    #[test]
    #[cfg(unix)]
    fn pipes_and_devices_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let fifo = place.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        for path in [Path::new("/dev/zero"), &fifo] {
            let argument = format!("@{}", path.display()).into_bytes();
            let error = expand(vec![argument]).unwrap_err();
            assert_eq!(error, format!("'{}': not a regular file", path.display()));
        }
        assert!(expand(vec![b"@/dev/null".to_vec()]).unwrap().is_empty());
        // A descriptor that the caller opened.
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"a b").unwrap();
        drop(writer);
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&reader);
        let words = expand(vec![format!("@/dev/fd/{descriptor}").into_bytes()]).unwrap();
        assert_eq!(strings(words), ["a", "b"]);
    }
}
