//! The command line of `clang-linker-wrapper`: options of its own, and arguments that go on to the host linker.
//!
//! Only the host linker's options that matter here are known. All arguments are passed on in their order; known
//! ones are written in one form each, as LLVM does: `-Lx` becomes `-L x`.

use std::ffi::OsString;

use tool_kit::input;

/// A command line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Options of the tool: names without dashes, and values.
    own: Vec<(&'static str, OsString)>,
    /// Arguments for the host linker.
    pub(super) host: Vec<Argument>,
}

/// An argument for the host linker.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) meaning: Meaning,
    /// The value of an option, the name of an input.
    pub(super) value: OsString,
    /// Words of the option on the command line of the linker.
    pub(super) words: Vec<OsString>,
}

/// The meaning of an argument of the host linker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Input,
    Library,
    LibraryPath,
    Rpath,
    WholeArchive,
    NoWholeArchive,
    /// Members of all archives are objects of the link, from the start.
    AlwaysWholeArchive,
    Output,
    Relocatable,
    Sysroot,
    Other,
}

/// The options of the tool that have no value. All start with two dashes.
const FLAGS: [&str; 10] = [
    "dry-run",
    "wrapper-verbose",
    "print-wrapped-module",
    "save-temps",
    "embed-bitcode",
    "compress",
    "emit-fatbin-only",
    "no-canonical-prefixes",
    "help",
    "help-hidden",
];

/// The options of the tool whose value follows an equals sign.
const VALUES: [&str; 14] = [
    "archive-members",
    "linker-path",
    "host-triple",
    "cuda-path",
    "device-linker",
    "device-compiler",
    "compression-level",
    "wrapper-jobs",
    "override-image",
    "release",
    "should-extract",
    "wrapper-time-trace",
    "wrapper-time-trace-granularity",
    "offload-opt",
];

/// The form of an option of the host linker.
#[derive(Clone, Copy)]
enum Form {
    /// The word alone.
    Flag,
    /// The value is the next word.
    Separate,
    /// The value follows in the word.
    Joined,
}

/// Options of the host linker: spelling, form, meaning, and the word for it on the linker's command line, before the
/// value. Without one, the argument is not changed.
const HOST: &[(&str, Form, Meaning, Option<&str>)] = &[
    ("-o", Form::Separate, Meaning::Output, Some("-o")),
    ("--output", Form::Separate, Meaning::Output, Some("-o")),
    ("--output=", Form::Joined, Meaning::Output, Some("-o")),
    ("-out:", Form::Joined, Meaning::Output, None),
    ("/out:", Form::Joined, Meaning::Output, None),
    ("-?out:", Form::Joined, Meaning::Output, None),
    ("/?out:", Form::Joined, Meaning::Output, None),
    ("-L", Form::Separate, Meaning::LibraryPath, Some("-L")),
    ("--library-path", Form::Separate, Meaning::LibraryPath, Some("-L")),
    ("--library-path=", Form::Joined, Meaning::LibraryPath, Some("-L")),
    ("-library-path=", Form::Joined, Meaning::LibraryPath, Some("-L")),
    ("-libpath:", Form::Joined, Meaning::LibraryPath, None),
    ("/libpath:", Form::Joined, Meaning::LibraryPath, None),
    ("-?libpath:", Form::Joined, Meaning::LibraryPath, None),
    ("/?libpath:", Form::Joined, Meaning::LibraryPath, None),
    ("-l", Form::Separate, Meaning::Library, Some("-l")),
    ("--library", Form::Separate, Meaning::Library, Some("-l")),
    ("--library=", Form::Joined, Meaning::Library, Some("-l")),
    ("-rpath", Form::Separate, Meaning::Rpath, None),
    ("--rpath", Form::Separate, Meaning::Rpath, None),
    ("-rpath=", Form::Joined, Meaning::Rpath, Some("--rpath")),
    ("--rpath=", Form::Joined, Meaning::Rpath, Some("--rpath")),
    ("--sysroot=", Form::Joined, Meaning::Sysroot, None),
    ("-whole-archive", Form::Flag, Meaning::WholeArchive, None),
    ("--whole-archive", Form::Flag, Meaning::WholeArchive, None),
    ("-no-whole-archive", Form::Flag, Meaning::NoWholeArchive, None),
    ("--no-whole-archive", Form::Flag, Meaning::NoWholeArchive, None),
    ("-wholearchive", Form::Joined, Meaning::AlwaysWholeArchive, None),
    ("/wholearchive", Form::Joined, Meaning::AlwaysWholeArchive, None),
    ("-?wholearchive", Form::Joined, Meaning::AlwaysWholeArchive, None),
    ("/?wholearchive", Form::Joined, Meaning::AlwaysWholeArchive, None),
    ("-r", Form::Flag, Meaning::Relocatable, Some("--relocatable")),
    ("-relocatable", Form::Flag, Meaning::Relocatable, None),
    ("--relocatable", Form::Flag, Meaning::Relocatable, None),
];

/// Options whose value may also follow in the word, one letter each.
const JOINED_LETTERS: [&str; 3] = ["-o", "-L", "-l"];

impl Line {
    /// Reads the arguments, without the name of the tool.
    pub(super) fn parse(args: Vec<Vec<u8>>) -> Result<Line, String> {
        let mut line = Line::default();
        let mut args = args.into_iter();
        while let Some(word) = args.next() {
            if line.take_own(&word, &mut args)? {
                continue;
            }
            let argument = host_argument(&word, &mut args)?;
            line.host.push(argument);
        }
        Ok(line)
    }

    /// Returns whether a flag of the tool is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.own.iter().any(|(own, _)| *own == name)
    }

    /// Returns the last value of an option of the tool.
    pub(super) fn value(&self, name: &str) -> Option<&OsString> {
        self.values(name).last()
    }

    /// Returns the last value of an option of the tool as text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|value| value.to_string_lossy().into_owned())
    }

    /// Returns all values of an option of the tool, in order.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = &OsString> {
        self.own.iter().filter(move |(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Returns the options of LLVM for `--plugin-opt`: of both spellings, in order.
    pub(super) fn plugin_options(&self) -> Vec<OsString> {
        let is_one = |name: &str| ["mllvm", "offload-opt"].contains(&name);
        let options = self.own.iter().filter(|(name, _)| is_one(name));
        options.map(|(_, value)| value.clone()).collect()
    }

    /// Returns the arguments for the host linker with this meaning.
    pub(super) fn all(&self, meaning: Meaning) -> impl Iterator<Item = &Argument> {
        self.host.iter().filter(move |argument| argument.meaning == meaning)
    }

    /// Returns the name of the program.
    pub(super) fn output(&self) -> OsString {
        let output = self.all(Meaning::Output).last();
        output.map_or_else(|| "a.out".into(), |argument| argument.value.clone())
    }

    /// Takes an option of the tool; false for another argument.
    fn take_own(
        &mut self,
        word: &[u8],
        rest: &mut impl Iterator<Item = Vec<u8>>,
    ) -> Result<bool, String> {
        match word {
            b"-mllvm" => {
                let value = rest.next().ok_or("-mllvm: missing argument")?;
                self.own.push(("mllvm", os_string(&value)));
                return Ok(true);
            }
            b"-version" | b"--version" => {
                self.own.push(("version", OsString::new()));
                return Ok(true);
            }
            _ => {}
        }
        if let Some(value) = word.strip_prefix(b"-offload-opt=") {
            self.own.push(("offload-opt", os_string(value)));
            return Ok(true);
        }
        let Some(name) = word.strip_prefix(b"--") else { return Ok(false) };
        if let Some(flag) = FLAGS.into_iter().find(|flag| flag.as_bytes() == name) {
            self.own.push((flag, OsString::new()));
            return Ok(true);
        }
        let at = name.iter().position(|&byte| byte == b'=');
        let Some((name, value)) = at.and_then(|at| Some((name.get(..at)?, name.get(at + 1..)?)))
        else {
            return Ok(false);
        };
        let Some(option) = VALUES.into_iter().find(|option| option.as_bytes() == name) else {
            return Ok(false);
        };
        self.own.push((option, os_string(value)));
        Ok(true)
    }
}

fn host_argument(
    word: &[u8],
    rest: &mut impl Iterator<Item = Vec<u8>>,
) -> Result<Argument, String> {
    let fits = |(spelling, form, ..): &&(&str, Form, Meaning, Option<&str>)| match form {
        Form::Joined => word.starts_with(spelling.as_bytes()),
        Form::Flag | Form::Separate => word == spelling.as_bytes(),
    };
    if let Some((spelling, form, meaning, short)) = HOST.iter().find(fits) {
        let mut words = vec![os_string(word)];
        let value = match form {
            Form::Flag => OsString::new(),
            Form::Joined => os_string(word.split_at(spelling.len()).1),
            Form::Separate => {
                let value = rest.next().ok_or_else(|| format!("{spelling}: missing argument"))?;
                words.push(os_string(&value));
                os_string(&value)
            }
        };
        if let Some(short) = short {
            words = vec![short.into()];
            words.extend((!matches!(form, Form::Flag)).then(|| value.clone()));
        }
        return Ok(Argument { meaning: *meaning, value, words });
    }
    let mut letters = JOINED_LETTERS.into_iter();
    if let Some((letter, value)) =
        letters.find_map(|letter| Some((letter, word.strip_prefix(letter.as_bytes())?)))
    {
        let value = os_string(value);
        let meaning = match letter {
            "-o" => Meaning::Output,
            "-L" => Meaning::LibraryPath,
            _ => Meaning::Library,
        };
        return Ok(Argument { meaning, words: vec![letter.into(), value.clone()], value });
    }
    let is_option = word.starts_with(b"-") && word != b"-";
    let meaning = if is_option { Meaning::Other } else { Meaning::Input };
    let value = os_string(word);
    Ok(Argument { meaning, words: vec![value.clone()], value })
}

fn os_string(bytes: &[u8]) -> OsString {
    input::path(bytes).into_os_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Line {
        Line::parse(text.split(' ').map(|word| word.as_bytes().to_vec()).collect()).unwrap()
    }

    fn host(text: &str) -> String {
        let words = parse(text).host.into_iter().flat_map(|argument| argument.words);
        words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn host_arguments_go_on_in_one_form() {
        for (typed, forwarded) in [
            ("-Lx -L y --library-path=z -library-path=w", "-L x -L y -L z -L w"),
            ("-lx -l y --library=z", "-l x -l y -l z"),
            ("-ox --output y --output=z -out:a.exe /out:b", "-o x -o y -o z -out:a.exe /out:b"),
            ("-oformat -output x", "-o format -o utput x"),
            ("-rpath x --rpath y -rpath=z", "-rpath x --rpath y --rpath z"),
            ("-r --relocatable -relocatable --r", "--relocatable --relocatable -relocatable --r"),
            ("-LIBPATH:x -libpath:./", "-L IBPATH:x -libpath:./"),
            ("-- -a b - --dry-runs @x -compress", "-- -a b - --dry-runs @x -compress"),
        ] {
            assert_eq!(host(typed), forwarded, "{typed}");
        }
    }

    #[test]
    fn own_options_do_not_go_on() {
        let line = parse(
            "--dry-run --linker-path=ld a.o -mllvm -x --should-extract=a,b -offload-opt=y --compress",
        );
        assert_eq!(line.host.len(), 1);
        assert!(line.has("dry-run") && line.has("compress") && !line.has("save-temps"));
        assert_eq!(line.text("linker-path").as_deref(), Some("ld"));
        assert_eq!(line.values("mllvm").count() + line.values("offload-opt").count(), 2);
    }

    #[test]
    fn the_last_output_names_the_program() {
        assert_eq!(parse("-o a -ob").output(), "b");
        assert_eq!(parse("a.o /out:c.exe").output(), "c.exe");
        assert_eq!(parse("a.o").output(), "a.out");
        let error = Line::parse(vec![b"-o".to_vec()]).unwrap_err();
        assert_eq!(error, "-o: missing argument");
    }
}
