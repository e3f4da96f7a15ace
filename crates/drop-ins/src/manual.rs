//! The manual pages of the tools, made of their tables of options.

use tool_kit::roff::{Page, bold, escaped, italic};

use crate::llvm_cl::{Kind, Opt, Tool, Visibility};
use crate::{bundler, fatbinary, linker_wrapper, packager, roc_obj, split_python_wheels, wrapper};

/// The tools with options of their own.
pub const TOOLS: [(&str, &Tool); 10] = [
    ("clang-linker-wrapper", &linker_wrapper::TOOL),
    ("clang-offload-bundler", &bundler::TOOL),
    ("clang-offload-packager", &packager::TOOL_24),
    ("clang-offload-wrapper", &wrapper::clang::TOOL),
    ("fatbinary", &fatbinary::nvidia::TOOL),
    ("llvm-offload-binary", &packager::TOOL_24),
    ("llvm-offload-wrapper", &wrapper::llvm::TOOL),
    ("roc-obj-extract", &roc_obj::extract::TOOL),
    ("roc-obj-ls", &roc_obj::ls::TOOL),
    ("split_python_wheels", &split_python_wheels::TOOL),
];

/// Returns the page of a tool.
pub fn page(name: &str, tool: &Tool) -> String {
    let overview = tool.overview.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, _) = overview.split_once(". ").unwrap_or((overview.trim_end_matches('.'), ""));
    let mut page = Page::new(name, first);
    page.section("Synopsis");
    let positionals = if tool.positionals.is_empty() { "" } else { " FILE..." };
    page.line(&format!("{} [options]{}", bold(name), escaped(positionals)));
    page.section("Description");
    page.prose(&format!("{}.", overview.trim_end_matches('.')));
    let whose = match name {
        "roc-obj-extract" | "roc-obj-ls" | "split_python_wheels" => "AMD's",
        "fatbinary" => "NVIDIA's",
        _ => "LLVM's",
    };
    page.prose(&format!(
        "This tool of the offload project is a drop-in replacement for {whose}. One or two dashes are the same, a value follows after = or as the next argument, and @FILE is replaced by the arguments in a file. \
         `offload` has the same and more under commands of its own.",
    ));
    page.section("Options");
    let mut options: Vec<&Opt> =
        tool.all().filter(|option| option.visibility == Visibility::Shown).collect();
    options.sort_by_key(|option| option.name);
    for option in options {
        let dashes = if option.name.chars().count() == 1 { "-" } else { "--" };
        let mut term = bold(&format!("{dashes}{}", option.name));
        if !option.value_name.is_empty() {
            term.push_str(&format!("={}", italic(option.value_name)));
        }
        page.item(&term, &words(option));
    }
    page.section("Exit status");
    page.item(&bold("0"), "Success.");
    match name {
        "roc-obj-extract" => page.item(
            &bold("1"),
            "An error occurred, or one URI failed; 2 and more: as many URIs failed.",
        ),
        _ => page.item(&bold("1"), "An error occurred."),
    }
    page.item(&bold("141"), "Standard output was closed early (broken pipe).");
    let others = TOOLS.iter().map(|(other, _)| *other).filter(|other| *other != name);
    page.see_also(others.chain(["offload"]).collect());
    page.finish()
}

fn words(option: &Opt) -> String {
    // Line breaks are kept: most descriptions are lists.
    let lines: Vec<_> = option.help.lines().map(str::trim).collect();
    let mut words = lines.join("\n\n");
    let values: Vec<String> = match option.kind {
        Kind::Choice(values) => values.iter().map(|value| (*value).to_owned()).collect(),
        Kind::Named(values) => {
            values.iter().map(|(value, does)| format!("{value} ({does})")).collect()
        }
        _ => Vec::new(),
    };
    if !values.is_empty() {
        words.push_str(&format!("\n\nPossible values: {}.", values.join(", ")));
    }
    if option.required {
        words.push_str("\n\nRequired.");
    }
    words
}
