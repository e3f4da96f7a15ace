//! `offload link`: links the device code of inputs, and registers it in one object.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use offload_link::{
    ClangOptions, DeviceArgument, DeviceCode, Fit, Group, Linked, Members, Need, Plan, PlanOptions,
    RegisterOptions,
};
use serde_json::json;
use twox_hash::XxHash3_64;

use crate::wrap::{check_output, print_link_args};
use drop_ins::linker_wrapper::clang::Clang;
use drop_ins::linker_wrapper::files::Files;
use drop_ins::linker_wrapper::programs::Programs;
use drop_ins::linker_wrapper::sources::{Input, Sources};
use drop_ins::{bundler, linker_wrapper, wrapper};
use tool_kit::arguments::usage;
use tool_kit::document::{Document, Shape};
use tool_kit::format::ListFormat;
use tool_kit::opened::{MaxInput, Opened};
use tool_kit::output::Outputs;
use tool_kit::parallel::Threads;
use tool_kit::payload::Payload;
use tool_kit::permissions::NewPermissions;
use tool_kit::style::{HEADING, TARGET, show};
use tool_kit::{Outcome, input, output, report, style, wildcards};

/// Link device code of objects, and register it in one object
///
/// Inputs are objects that clang made for OpenMP, HIP and CUDA (-fgpu-rdc, --offload-new-driver), archives of them, and
/// offload binaries. The output is linked with the objects by any linker.
#[derive(Debug, clap::Args)]
#[command(override_usage = "offload link [OPTIONS] --output <FILE> <INPUT>...
       offload link [OPTIONS] --print-plan <INPUT>...")]
pub(crate) struct Args {
    /// Write the object to FILE
    #[arg(short, long, value_name = "FILE", required_unless_present = "print_plan")]
    output: Option<PathBuf>,
    /// Print the images to link, their inputs, and code that is in none; link nothing
    #[arg(long, conflicts_with = "output")]
    print_plan: bool,
    /// Print the arguments that cc or clang needs to link with FILE, one in a line
    ///
    /// For ELF objects of clang: ld.lld --gc-sections, which Rust links with, drops the entries of the kernels unless it is told
    /// not to.
    #[arg(long, conflicts_with = "print_plan")]
    print_link_args: bool,
    /// Register the kernels of these inputs alone; write the inputs of the host to DIR
    ///
    /// For libraries and crates that register their kernels by themselves: in one program, each has its own registration. Link
    /// the files in DIR in the place of the inputs. Members of archives are treated as objects. ELF only.
    #[arg(long, value_name = "DIR", conflicts_with = "print_plan")]
    private_entries: Option<PathBuf>,
    #[command(flatten)]
    format: ListFormat,
    /// Take in members of archives for TARGET even if no object has code for it
    #[arg(long, value_name = "TARGET")]
    extract: Vec<String>,
    /// Treat members of archives as objects
    #[arg(long)]
    whole_archive: bool,
    /// Link members of archives that something needs, or all for the targets
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Which::Needed)]
    members: Which,
    /// Take the member that defines SYMBOL on the host, as the linker's -u does
    #[arg(long, value_name = "SYMBOL")]
    root: Vec<String>,
    /// Set the target triple of the host [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    host_triple: Option<String>,
    /// Pass an argument to clang in device links, for all targets or one TRIPLE
    #[arg(long, value_name = "[TRIPLE=]ARG", allow_hyphen_values = true)]
    device_compiler: Vec<String>,
    /// Pass an argument to the linker in device links, for all targets or one TRIPLE
    #[arg(long, value_name = "[TRIPLE=]ARG", allow_hyphen_values = true)]
    device_linker: Vec<String>,
    /// Compress the bundle of HIP
    #[arg(long)]
    compress: bool,
    /// Show the commands of device links
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    threads: Threads,
    #[command(flatten)]
    max_input: MaxInput,
    /// Objects, archives and offload binaries
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
}

/// Members of archives.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum Which {
    /// Members that the host linker takes, or that device code refers to
    Needed,
    /// All for a target, as LLVM 22 does
    All,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    if !args.print_plan && !args.format.is_text() {
        usage("--format needs --print-plan");
    }
    // The host may link any member, and private ones are for no other link.
    let is_whole = args.whole_archive || args.private_entries.is_some();
    let input = |path: &PathBuf| Input { path: path.clone(), is_whole };
    let inputs: Vec<_> = wildcards::expanded(&args.inputs).iter().map(input).collect();
    let open = |path: &Path| {
        let opened = Opened::new(path, args.max_input).map(Some);
        opened.map_err(|error| at(path, report::reason(&error)))
    };
    let members = match args.members {
        Which::Needed => Members::Needed,
        Which::All => Members::All,
    };
    let reads_symbols = members == Members::Needed;
    let sources = Sources::read(args.threads.count(), &inputs, reads_symbols, open)?;
    let Sources { inputs, files: sources } = sources;
    let options = PlanOptions::default()
        .with_should_extract(args.extract.iter().cloned())
        .with_members(members)
        .with_roots(args.root.iter().cloned());
    let plan = Plan::new(&inputs, &options)?;
    let Some(output) = &args.output else {
        return print(args.format, &plan);
    };
    link(args, &plan, &sources, output)?;
    Ok(Outcome::Clean)
}

fn link(args: &Args, plan: &Plan<'_>, sources: &[Payload], output: &Path) -> io::Result<()> {
    if plan.groups().is_empty() {
        return Err(io::Error::other("no object has device code: expected one that clang made"));
    }
    let argument = |text: &String| DeviceArgument::parse(text);
    if args.print_link_args {
        check_output(output)?;
    }
    if let Some(directory) = &args.private_entries {
        check_private(directory, sources, output)?;
    }
    let files = Files::new(false, false);
    let mut clang = Clang {
        options: ClangOptions::new()
            .with_compiler_arguments(args.device_compiler.iter().map(argument))
            .with_linker_arguments(args.device_linker.iter().map(argument)),
        programs: Programs { is_dry: false, is_verbose: args.verbose, is_as_called: false },
        files: &files,
        sources,
        output: output.as_os_str().to_owned(),
        jobs: args.threads.count(),
        compresses: args.compress,
        images: Vec::new(),
    };
    let linked = plan.link(&mut clang).map_err(|error| {
        let text = error.to_string();
        let is_missing = text.contains("Unable to find '");
        let advice = || io::Error::other(format!("{text}; --print-plan needs no other program"));
        if is_missing { advice() } else { error }
    })?;
    let host = args.host_triple.clone().unwrap_or_else(wrapper::host_triple);
    let mut options =
        RegisterOptions::new(host).with_compression(bundler::compression(args.compress, None));
    if args.private_entries.is_some() {
        options = options.with_private_entries(suffix(sources)?);
    }
    let object = linked.object_parts(&options)?;
    let object = object.ok_or_else(|| {
        io::Error::other("no image has a programming model: expected openmp, hip or cuda")
    })?;
    let mut outputs = Outputs::default();
    let how = NewPermissions::of_all(sources.iter().map(Payload::permissions));
    let images = &clang.images;
    outputs.write_or_print(output, how, |file| linker_wrapper::write(&object, images, file))?;
    if let Some(directory) = &args.private_entries {
        write_private(directory, sources, &options, &mut outputs)?;
    }
    outputs.commit()?;
    if args.print_link_args {
        print_link_args(linked.link_args(&options)?)?;
    }
    Ok(())
}

/// Returns what the names of the entries of these inputs end in: a hash of all that is in them.
fn suffix(sources: &[Payload]) -> io::Result<String> {
    let mut hashes = Vec::new();
    for source in sources {
        hashes.extend(XxHash3_64::oneshot(&source.read()?).to_le_bytes());
    }
    Ok(format!("{:016x}", XxHash3_64::oneshot(&hashes)))
}

/// Fails if the inputs with private entries would replace each other, the output or an input.
fn check_private(directory: &Path, sources: &[Payload], output: &Path) -> io::Result<()> {
    let paths: Vec<_> = sources.iter().map(|source| directory.join(file_name(source))).collect();
    let new = || paths.iter().map(PathBuf::as_path);
    let (path, why) = if let Some(path) = output::named_in(new(), sources.iter().map(Payload::path))
    {
        (path, "this is an input: choose another directory")
    } else if let Some(path) = output::named_twice([output].into_iter().chain(new())) {
        (path, "more than one output has this name")
    } else {
        return Ok(());
    };
    Err(io::Error::other(format!("'{}': {why}", path.display())))
}

/// Writes inputs with private entries into a directory, under their own names.
fn write_private(
    directory: &Path,
    sources: &[Payload],
    options: &RegisterOptions,
    outputs: &mut Outputs,
) -> io::Result<()> {
    let made = outputs.make_directory(directory)?;
    for source in sources {
        let bytes = source.read()?;
        // It has code for devices only.
        if bytes.starts_with(&offload_binary::MAGIC) {
            continue;
        }
        let private = options.host_object(&bytes).map_err(|error| at(source.path(), error))?;
        let how = source.permissions().into();
        outputs.write(&made.file(file_name(source)), how, |file| file.write_all(&private))?;
    }
    Ok(())
}

fn file_name(source: &Payload) -> &OsStr {
    source.path().file_name().unwrap_or(source.path().as_os_str())
}

fn at(path: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", input::display(path)))
}

const SHAPE: Shape = Shape::new("link", "images", "triple arch kinds inputs");

fn print(format: ListFormat, plan: &Plan<'_>) -> io::Result<Outcome> {
    if !format.is_text() {
        return document(format, plan);
    }
    let mut out = style::stdout();
    for group in plan.groups() {
        let (target, kinds) = (group.target(), kinds(group).join(", "));
        show!(out, "{HEADING}image{HEADING:#} {TARGET}{target}{TARGET:#} for {kinds}")?;
        for input in group.inputs() {
            show!(out, "  {}: {}", input.code(), why(input))?;
        }
    }
    if !plan.left_out().is_empty() {
        show!(out, "{HEADING}in no image{HEADING:#}")?;
    }
    for left in plan.left_out() {
        let (code, reason) = (left.code(), left.reason());
        show!(out, "  {code}: {}: {reason}", code.target())?;
    }
    if plan.groups().is_empty() {
        show!(out, "no images: no object has device code")?;
    }
    out.flush().map(|()| Outcome::Clean)
}

fn kinds(group: &Group<'_>) -> Vec<String> {
    group.kinds().iter().map(ToString::to_string).collect()
}

/// Returns the reason why an input is in its image.
fn why(input: &Linked<'_>) -> String {
    let code = input.code();
    let origin = match (code.member(), code.is_lazy()) {
        (None, _) => "object",
        (Some(_), true) => "member",
        (Some(_), false) => "member, as an object",
    };
    let fit = match input.fit() {
        Fit::Generic => format!(", code for {}", code.target().arch()),
        Fit::Features => format!(", code for {} runs there as well", code.target().arch()),
        _ => String::new(),
    };
    let need = match input.need() {
        Some(need) => format!(", {need}"),
        None => String::new(),
    };
    format!("{origin}{need}{fit}")
}

fn document(format: ListFormat, plan: &Plan<'_>) -> io::Result<Outcome> {
    let code = |code: &DeviceCode<'_>, why: String| {
        json!({
            "file": code.file(),
            "member": code.member(),
            "kind": code.offload_kind().to_string(),
            "triple": code.target().triple(),
            "arch": code.target().arch(),
            "size": code.size(),
            "why": why,
        })
    };
    let linked = |input: &Linked<'_>| {
        let (needed_by, symbol) = match input.need() {
            None => (None, None),
            Some(Need::Host(symbol)) => (Some("host"), Some(symbol)),
            Some(Need::Device(symbol)) => (Some("device"), Some(symbol)),
            Some(_) => (Some("unknown"), None),
        };
        let mut value = code(input.code(), why(input));
        if let Some(fields) = value.as_object_mut() {
            fields.insert("needed_by".to_owned(), needed_by.into());
            fields.insert("symbol".to_owned(), symbol.map(String::from_utf8_lossy).into());
        }
        value
    };
    let image = |group: &Group<'_>| {
        let inputs = group.inputs().iter().map(linked);
        json!({
            "triple": group.target().triple(),
            "arch": group.target().arch(),
            "kinds": kinds(group),
            "inputs": inputs.collect::<Vec<_>>(),
        })
    };
    let left = plan.left_out().iter();
    let left = left.map(|left| code(left.code(), left.reason().to_string()));
    let mut document = Document::start(format.get(), &SHAPE)?;
    plan.groups().iter().map(image).try_for_each(|image| document.row(&image))?;
    document.field("left_out", &left.collect::<Vec<_>>())?;
    document.end(Outcome::Clean)
}
