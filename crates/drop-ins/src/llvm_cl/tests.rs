use super::*;

const fn option(name: &'static str, kind: Kind, value_name: &'static str) -> Opt {
    Opt::new(name, kind, value_name, "Help")
}

/// A tool of other kinds of options, without positional arguments.
static STRICT: Tool = Tool {
    overview: "A strict tool.",
    positionals: "",
    min_positionals: 0,
    max_positionals: 0,
    heading: "strict options:",
    options: &[
        Opt { required: true, ..option("type", Kind::Value, "string") },
        Opt::new("names", Kind::CommaList, "string", "Names.\nSuch as\n  a - the first"),
        option("size", Kind::Unsigned, "uint"),
        option("level", Kind::Signed, "n"),
        option("###", Kind::Bool, ""),
    ],
    version: "version 2\n",
};

static TOOL: Tool = Tool {
    overview: "A tool.",
    positionals: "<file>",
    min_positionals: 0,
    max_positionals: 1,
    heading: "tool options:",
    options: &[
        option("archive", Kind::Bool, ""),
        option("o", Kind::Value, "file"),
        option("image", Kind::List, "value"),
        option("release", Kind::Choice(&["22", "23"]), "22|23"),
        Opt { visibility: Visibility::Never, ..option("h", Kind::Bool, "") },
    ],
    version: "version 1\n",
};

fn run(args: &[&str]) -> Result<Matches, Stop> {
    run_tool(&TOOL, args)
}

fn run_tool(tool: &'static Tool, args: &[&str]) -> Result<Matches, Stop> {
    let invocation = Invocation::new("bin/tool".to_owned());
    parse(tool, &invocation, args.iter().map(|arg| arg.as_bytes().to_vec()).collect())
}

fn complaint(args: &[&str]) -> String {
    let stop = run(args).unwrap_err();
    assert!(!stop.success);
    assert_eq!(stop.stdout, "");
    stop.stderr
}

#[test]
fn values_come_after_equals_or_as_the_next_argument() {
    for args in [&["-o", "x"][..], &["-o=x"], &["--o", "x"], &["--o=x"], &["-ho", "x"], &["-ho=x"]]
    {
        assert_eq!(run(args).unwrap().value("o"), Some(&b"x"[..]), "{args:?}");
    }
    let matches = run(&["-o", "--archive", "-o=", "--image", "a", "-image=b=c"]).unwrap();
    assert_eq!(matches.value("o"), Some(&b""[..]));
    assert!(!matches.is_on("archive"));
    assert_eq!(matches.values("image").collect::<Vec<_>>(), [&b"a"[..], b"b=c"]);
    assert_eq!(
        run(&["--release=22", "--release", "23"]).unwrap().value("release"),
        Some(&b"23"[..])
    );
}

#[test]
fn booleans_take_a_value_only_after_equals() {
    for (arg, on) in [
        ("--archive", true),
        ("-archive", true),
        ("--archive=", true),
        ("--archive=True", true),
        ("--archive=0", false),
        ("--archive=FALSE", false),
    ] {
        assert_eq!(run(&[arg]).unwrap().is_on("archive"), on, "{arg}");
    }
    assert!(!run(&["--archive", "--archive=0"]).unwrap().is_on("archive"));
    assert_eq!(run(&["--archive", "0"]).unwrap().positionals, [b"0"]);
    assert_eq!(
        complaint(&["--archive=yes"]),
        "tool: for the --archive option: 'yes' is invalid value for boolean argument! Try 0 or 1\n"
    );
}

#[test]
fn two_dashes_end_options_and_one_is_a_name() {
    assert_eq!(run(&["-"]).unwrap().positionals, [b"-"]);
    assert_eq!(run(&["--", "-o"]).unwrap().positionals, [b"-o"]);
    assert_eq!(run(&[""]).unwrap().positionals, [b""]);
    assert_eq!(
        complaint(&["a", "--", "--"]),
        "tool: Too many positional arguments specified!\n\
         Can specify at most 1 positional arguments: See: bin/tool --help\n"
    );
}

#[test]
fn errors_have_the_words_of_llvm() {
    for (args, text) in [
        (&["-o"][..], "tool: for the -o option: requires a value!\n"),
        (&["--image"], "tool: for the --image option: requires a value!\n"),
        (&["--help=x"], "tool: for the --help option: does not allow a value! 'x' specified.\n"),
        (&["--release=21"], "tool: for the --release option: Cannot find option named '21'!\n"),
        (
            &["-of"],
            "tool: for the -o option: may not occur within a group!\n\
             tool: Unknown command line argument '-of'.  Try: 'bin/tool --help'\n\
             tool: Did you mean '-o'?\n",
        ),
        (
            &["--imag=x", "---o"],
            "tool: Unknown command line argument '--imag=x'.  Try: 'bin/tool --help'\n\
             tool: Did you mean '--image=x'?\n\
             tool: Unknown command line argument '---o'.  Try: 'bin/tool --help'\n\
             tool: Did you mean '-o'?\n",
        ),
        (
            &["--=x"],
            "tool: Unknown command line argument '--=x'.  Try: 'bin/tool --help'\n\
             tool: Did you mean '--o=x'?\n",
        ),
    ] {
        assert_eq!(complaint(args), text, "{args:?}");
    }
}

#[test]
fn help_and_version_end_the_run_where_they_stand() {
    let stop = run(&["a", "b", "--version", "--bogus"]).unwrap_err();
    assert_eq!((&stop.stdout[..], &stop.stderr[..], stop.success), ("version 1\n", "", true));
    let stop = run(&["-o=x", "--archiv", "--help-list"]).unwrap_err();
    assert!(stop.success);
    assert!(stop.stderr.ends_with("Did you mean '--archive'?\n"));
    assert_eq!(
        stop.stdout,
        "OVERVIEW: A tool.\n\nUSAGE: tool [options] <file>\n\nOPTIONS:\n\
         \x20 --archive         - Help\n\
         \x20 --help            - Display available options (--help-hidden for more)\n\
         \x20 --image=<value>   - Help\n\
         \x20 -o <file>         - Help\n\
         \x20 --release=<22|23> - Help\n\
         \x20 --version         - Display the version of this program\n"
    );
    let hidden = run(&["--help-hidden"]).unwrap_err().stdout;
    assert!(hidden.contains("\nGeneric Options:\n\n  --help  "), "{hidden}");
    assert!(hidden.contains("\n\ntool options:\n\n  --archive  "), "{hidden}");
    assert!(!hidden.contains("-h "), "{hidden}");
}

#[test]
fn lists_have_commas_and_may_be_repeated() {
    let args = ["--names=a,b", "-type", "t", "--names", "c,,", "--names="];
    let matches = run_tool(&STRICT, &args).unwrap();
    let names: Vec<_> = matches.values("names").collect();
    assert_eq!(names, [&b"a"[..], b"b", b"c", b"", b"", b""]);
}

#[test]
fn given_numbers_and_switches_are_known() {
    let matches = run_tool(&STRICT, &["-type="]).unwrap();
    assert_eq!((matches.unsigned("size"), matches.signed("level")), (None, None));
    assert_eq!(matches.switch("###"), None);
    let args = ["-type=", "--size=9", "--size", "0x10", "-level", "-010", "-###=0"];
    let matches = run_tool(&STRICT, &args).unwrap();
    assert_eq!((matches.unsigned("size"), matches.signed("level")), (Some(16), Some(-8)));
    assert_eq!(matches.switch("###"), Some(false));
}

#[test]
fn all_errors_are_printed_with_missing_options_last() {
    let args = ["--size=-1", "x", "--level", "1.5", "-", "--type"];
    assert_eq!(
        run_tool(&STRICT, &args).unwrap_err().stderr,
        "tool: for the --size option: '-1' value invalid for uint argument!\n\
         tool: Unknown command line argument 'x'.  Try: 'bin/tool --help'\n\
         tool: for the --level option: '1.5' value invalid for integer argument!\n\
         tool: Unknown command line argument '-'.  Try: 'bin/tool --help'\n\
         tool: for the --type option: requires a value!\n\
         tool: for the --type option: must be specified at least once!\n"
    );
    assert_eq!(
        run_tool(&STRICT, &["--", "--type=x"]).unwrap_err().stderr,
        "tool: Unknown command line argument '--type=x'.  Try: 'bin/tool --help'\n\
         tool: for the --type option: must be specified at least once!\n"
    );
}

#[test]
fn help_is_indented_and_needs_no_required_option() {
    let stop = run_tool(&STRICT, &["--help"]).unwrap_err();
    assert!(stop.success);
    assert!(stop.stdout.contains("\nUSAGE: tool [options]\n\n"), "{}", stop.stdout);
    let names = "\n  --names=<string> - Names.\n\
                 \x20                    Such as\n\
                 \x20                      a - the first\n";
    assert!(stop.stdout.contains(names), "{}", stop.stdout);
}

/// A tool that needs arguments.
static WRAPPER: Tool = Tool {
    overview: "A wrapper.",
    positionals: "Wrap <file>",
    min_positionals: 1,
    max_positionals: usize::MAX,
    heading: "wrapper options:",
    options: &[
        Opt {
            required: true,
            ..Opt::new(
                "kind",
                Kind::Named(&[("a", "The first"), ("bc", "The second")]),
                "value",
                "Kind:",
            )
        },
        option("o", Kind::Value, "file"),
    ],
    version: "version 3\n",
};

#[test]
fn missing_arguments_are_errors() {
    let stderr = run_tool(&WRAPPER, &[]).unwrap_err().stderr;
    assert_eq!(
        stderr,
        "tool: Not enough positional command line arguments specified!\n\
         Must specify at least 1 positional argument: See: bin/tool --help\n\
         tool: for the --kind option: must be specified at least once!\n"
    );
    assert_eq!(run_tool(&WRAPPER, &["x", "--kind=bc", "y"]).unwrap().positionals.len(), 2);
}

#[test]
fn named_values_are_explained() {
    let stderr = run_tool(&WRAPPER, &["x", "--kind=b"]).unwrap_err().stderr;
    assert_eq!(stderr, "tool: for the --kind option: Cannot find option named 'b'!\n");
    let help = run_tool(&WRAPPER, &["--help"]).unwrap_err().stdout;
    let options = help.split("wrapper options:\n\n").nth(1).unwrap();
    assert_eq!(
        options,
        "  --kind=<value> - Kind:\n    =a           -   The first\n    =bc          -   The second\n  \
         -o <file>      - Help\n"
    );
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Generates something like a command line: options of the tools with and without values, and anything.
    fn args() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let known = prop::sample::select(vec![
            "archive",
            "o",
            "image",
            "release",
            "h",
            "ho",
            "type",
            "names",
            "size",
            "level",
            "###",
            "kind",
            "color",
            "help",
            "version",
            "print-options",
            "",
        ]);
        let value = prop::sample::select(vec![
            "", "=", "=1", "=false", "=22", "=a,b,,c", "=-7", "=0x", "=\u{e9}",
        ]);
        let option = (prop::sample::select(vec!["-", "--", "---", ""]), known, value)
            .prop_map(|(dashes, name, value)| format!("{dashes}{name}{value}").into_bytes());
        // Files of responses are read for real.
        let any = prop::collection::vec(any::<u8>(), 0..12)
            .prop_filter("no file", |arg| !arg.starts_with(b"@"));
        prop::collection::vec(prop_oneof![3 => option, 1 => any], 0..8)
    }

    proptest! {
        #[test]
        fn every_command_line_is_accepted_or_refused(args in args()) {
            for tool in [&TOOL, &STRICT, &WRAPPER] {
                let invocation = Invocation::new("bin/tool".to_owned());
                match parse(tool, &invocation, args.clone()) {
                    Ok(matches) => {
                        prop_assert!((tool.min_positionals..=tool.max_positionals).contains(&matches.positionals.len()));
                        prop_assert!(matches.positionals.iter().all(|arg| args.contains(arg)));
                        for option in tool.options.iter().filter(|option| option.required) {
                            prop_assert!(matches.value(option.name).is_some());
                        }
                    }
                    Err(Stop { stdout, stderr, success: true }) => {
                        prop_assert!(!stdout.is_empty());
                        prop_assert!(stderr.is_empty() || stderr.starts_with("tool: "));
                    }
                    Err(Stop { stdout, stderr, success: false }) => {
                        prop_assert_eq!(stdout, "");
                        prop_assert!(stderr.starts_with("tool: ") && stderr.ends_with('\n'));
                    }
                }
            }
        }

        #[test]
        fn values_are_the_same_in_every_spelling(value in prop::collection::vec(any::<u8>(), 0..20)) {
            for name in ["o", "image"] {
                for dashes in ["-", "--"] {
                    let start = format!("{dashes}{name}").into_bytes();
                    let joined = [&start[..], b"=", &value].concat();
                    // As an argument of its own it may be the name of a file of responses.
                    let apart = [start, value.clone()];
                    let is_file = value.starts_with(b"@");
                    for args in [vec![joined], apart.to_vec()].into_iter().take(if is_file { 1 } else { 2 }) {
                        let matches = parse(&TOOL, &Invocation::new("tool".to_owned()), args).unwrap();
                        prop_assert_eq!(matches.value(name), Some(&value[..]));
                        prop_assert!(matches.positionals.is_empty());
                    }
                }
            }
        }

        #[test]
        fn numbers_are_read_in_every_base(number: u32, signed: i32) {
            for text in [
                format!("{number}"), format!("{number:#x}"), format!("{number:#b}"), format!("{number:#o}"),
                format!("0{number:o}"),
            ] {
                prop_assert_eq!(number::unsigned(text.as_bytes()), Some(number), "{}", text);
            }
            let sign = if signed < 0 { "-" } else { "" };
            let size = signed.unsigned_abs();
            for text in [format!("{sign}{size}"), format!("{sign}{size:#x}"), format!("{sign}0{size:o}")] {
                prop_assert_eq!(number::signed(text.as_bytes()), Some(signed), "{}", text);
            }
        }
    }
}
