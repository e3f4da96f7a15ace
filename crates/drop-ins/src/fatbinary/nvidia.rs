//! `fatbinary`: NVIDIA's maker of fatbinaries, with the options that clang and builds pass to it.

use std::io::{self, Write};
use std::process::ExitCode;

use nv_fatbin::{Architecture, CompressionMode, Flags, Kind};

use super::{Image, Options, host, make, named};
use crate::drop_in;
use crate::llvm_cl::{Kind as Value, Matches, Opt, Tool, Visibility, split_at_equals};
use tool_kit::opened::MaxInput;
use tool_kit::output::{Name, Outputs};
use tool_kit::{input, report};

const NAME: &str = "fatbinary";

/// An option without effect.
const fn ignored(name: &'static str, kind: Value) -> Opt {
    hidden(name, kind, "Accepted, without effect")
}

/// An option that help does not list.
const fn hidden(name: &'static str, kind: Value, help: &'static str) -> Opt {
    Opt { visibility: Visibility::Hidden, ..Opt::new(name, kind, "", help) }
}

/// The options of NVIDIA's `fatbinary`.
pub static TOOL: Tool = Tool {
    overview: "Pack cubins, PTX and LTO-IR into a fatbinary, with the bytes that NVIDIA's fatbinary of CUDA 13 writes.",
    positionals: "",
    min_positionals: 0,
    max_positionals: 0,
    heading: "fatbinary options:",
    options: &[
        Opt::new("create", Value::Value, "file", "Write the fatbinary to this file"),
        Opt::new(
            "image3",
            Value::List,
            "kind=K,sm=N,file=F",
            "Add a file: kind elf (a cubin), ptx or nvvm (LTO-IR), for an SM number such as 90, 90a or 100f",
        ),
        Opt::new(
            "image",
            Value::List,
            "profile=P,file=F",
            "The same for sm_90 (a cubin) or compute_90 (PTX), as CUDA 12 and older have it",
        ),
        Opt::new("64", Value::Bool, "", "Addresses have 64 bits (default)"),
        Opt::new("32", Value::Bool, "", "Addresses have 32 bits"),
        Opt::new("g", Value::Bool, "", "The code has debug information"),
        hidden("debug", Value::Bool, "Alias for -g"),
        Opt::new("c", Value::Bool, "", "The code is relocatable"),
        hidden("device-c", Value::Bool, "Alias for -c"),
        Opt::new(
            "compress",
            Value::Choice(&["true", "false"]),
            "true|false",
            "Compress PTX, LTO-IR, and cubins with -g or -c (default: true)",
        ),
        Opt::new("compress-all", Value::Bool, "", "Compress all cubins"),
        Opt::new(
            "compress-mode",
            Value::Choice(&["default", "balance", "size", "speed", "none"]),
            "mode",
            "default or balance: zstd 5; size: zstd 19, all; speed: LZ4; none",
        ),
        Opt::new("concat", Value::Bool, "", "Compress images of a kind as one"),
        Opt::new("ident", Value::Value, "name", "Identifier of the entries"),
        Opt::new("cmdline", Value::Value, "options", "Options of ptxas for PTX"),
        Opt::new("cicc-cmdline", Value::Value, "options", "Options of the compiler for LTO-IR"),
        Opt::new("options-file", Value::List, "file", "Read more arguments from this file"),
        hidden("optf", Value::List, "Alias for --options-file"),
        hidden("V", Value::Print(crate::llvm_cl::Print::Version), "Alias for --version"),
        hidden(
            "h",
            Value::Print(crate::llvm_cl::Print::Help { list: false, hidden: false }),
            "Alias for --help",
        ),
        hidden("cuda", Value::Bool, "Mark the entries as made for CUDA"),
        hidden("embedded-fatbin", Value::Value, "Not supported: C files for nvcc"),
        hidden("fatbin", Value::Value, "Alias for --embedded-fatbin"),
        hidden("image2", Value::List, "Not supported: host objects, tile IR"),
        ignored("key", Value::Value),
        ignored("link", Value::Bool),
        ignored("no-asm", Value::Bool),
        ignored("tileir-cmdline", Value::Value),
    ],
    version: concat!(
        "offload ",
        env!("CARGO_PKG_VERSION"),
        ", in place of fatbinary of CUDA 13.5\n"
    ),
};

/// Runs `fatbinary` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let (invocation, matches) =
        match drop_in::start_with(&TOOL, NAME, options_files, ExitCode::FAILURE) {
            Ok(started) => started,
            Err(exit) => return exit,
        };
    match create(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::end(&invocation.typed, &error),
    }
}

/// Returns the arguments with `@FILE` for `--options-file FILE`.
fn options_files(args: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut args = args.into_iter();
    let mut out = Vec::new();
    while let Some(arg) = args.next() {
        let name = arg.strip_prefix(b"--").or_else(|| arg.strip_prefix(b"-"));
        match name.map(split_at_equals) {
            Some((b"options-file" | b"optf", value)) => match value
                .map(<[u8]>::to_vec)
                .or_else(|| args.next())
            {
                // An unreadable file stays an option, which is an error then.
                Some(file) if input::path(&file).is_file() => out.push([b"@", &file[..]].concat()),
                Some(file) => out.extend([arg, file]),
                None => out.push(arg),
            },
            _ => out.push(arg),
        }
    }
    out
}

fn create(matches: &Matches) -> io::Result<()> {
    if let Some(file) = matches.values("options-file").chain(matches.values("optf")).next() {
        let file = String::from_utf8_lossy(file);
        return Err(io::Error::other(format!(
            "--options-file: '{file}': expected a readable file, not named in another one"
        )));
    }
    let refused = [
        ("embedded-fatbin", "C files for nvcc are not written: expected --create FILE"),
        ("fatbin", "C files for nvcc are not written: expected --create FILE"),
        ("image2", "host objects and tile IR are not packed: expected --image3"),
    ];
    if let Some((name, why)) = refused.iter().find(|(name, _)| matches.value(name).is_some()) {
        return Err(io::Error::other(format!("--{name}: {why}")));
    }
    let output =
        matches.value("create").ok_or_else(|| io::Error::other("expected --create FILE"))?;
    let is_32 = matches.is_on("32");
    if is_32 && matches.is_on("64") {
        return Err(io::Error::other("-32 and -64 exclude each other"));
    }
    let is_relocatable = matches.is_on("c") || matches.is_on("device-c");
    let mut flags = host();
    flags.set(Flags::DEBUG, matches.is_on("g") || matches.is_on("debug"));
    flags.set(Flags::CUDA, matches.is_on("cuda"));
    let options = Options {
        mode: mode(matches),
        compress_all: matches.is_on("compress-all") || is_relocatable,
        concatenate: matches.is_on("concat"),
        flags,
        is_64: Some(!is_32),
        identifier: matches.value("ident").map(<[u8]>::to_vec),
        ptx_options: matches.text("cmdline").to_vec(),
        lto_options: matches.text("cicc-cmdline").to_vec(),
        any_ptx: true,
    };
    if options.concatenate && options.mode == CompressionMode::None {
        return Err(io::Error::other(
            "--concat needs compression: expected neither --compress=false nor --compress-mode=none",
        ));
    }
    let specs = matches.values_of(&["image", "image3"]);
    let images = specs.map(|(name, text)| {
        let image = if name == "image" { profile(text) } else { image3(text) };
        image.map_err(|what| {
            io::Error::other(format!("--{name}={}: {what}", String::from_utf8_lossy(text)))
        })
    });
    let images = images.collect::<io::Result<Vec<_>>>()?;
    let made = make(&images, &options, MaxInput::default())?;
    let mut outputs = Outputs::default();
    let output = Name::Typed(input::path(output));
    outputs.write(&output, made.permissions.into(), |file| file.write_all(&made.bytes))?;
    outputs.commit()
}

fn mode(matches: &Matches) -> CompressionMode {
    match (matches.value("compress"), matches.value("compress-mode")) {
        (Some(b"false"), _) | (_, Some(b"none")) => CompressionMode::None,
        (_, Some(b"size")) => CompressionMode::Size,
        (_, Some(b"speed")) => CompressionMode::Speed,
        _ => CompressionMode::Default,
    }
}

/// Reads `kind=elf,sm=90a,file=FILE`, in any order.
fn image3(text: &[u8]) -> Result<Image, String> {
    let [kind, sm, file] = keywords(text, ["kind", "sm", "file"])?;
    let kind = match kind {
        Some(b"elf") => Kind::ELF,
        Some(b"ptx") => Kind::PTX,
        Some(b"nvvm") => Kind::LTO_IR,
        _ => return Err(expected("kind=elf, kind=ptx or kind=nvvm", kind)),
    };
    let number = sm.and_then(|sm| std::str::from_utf8(sm).ok());
    let architecture = number.and_then(|number| Architecture::from_name(&format!("sm_{number}")));
    let architecture = architecture.ok_or_else(|| expected("sm=90, 90a or 90f", sm))?;
    let path = file.filter(|file| !file.is_empty()).ok_or_else(|| expected("file=FILE", None))?;
    Ok(Image { named: Some((kind, architecture)), path: input::path(path) })
}

/// Reads `profile=sm_90,file=FILE`.
fn profile(text: &[u8]) -> Result<Image, String> {
    let [profile, file] = keywords(text, ["profile", "file"])?;
    let found = profile.and_then(|profile| named(std::str::from_utf8(profile).ok()?));
    let found = found.ok_or_else(|| expected("profile=sm_90 or compute_90", profile))?;
    let path = file.filter(|file| !file.is_empty()).ok_or_else(|| expected("file=FILE", None))?;
    Ok(Image { named: Some(found), path: input::path(path) })
}

fn expected(what: &str, found: Option<&[u8]>) -> String {
    match found {
        Some(found) => format!("expected {what}, found '{}'", String::from_utf8_lossy(found)),
        None => format!("expected {what}"),
    }
}

/// Returns the values of keywords; each may be given once. No value holds a comma, as with NVIDIA's tool.
fn keywords<'t, const N: usize>(
    text: &'t [u8],
    names: [&str; N],
) -> Result<[Option<&'t [u8]>; N], String> {
    let mut values = [None; N];
    for pair in text.split(|&byte| byte == b',').filter(|pair| !pair.is_empty()) {
        let (name, value) = split_at_equals(pair);
        let slot = names.iter().position(|known| known.as_bytes() == name);
        let slot = slot.and_then(|slot| values.get_mut(slot));
        let (Some(slot), Some(value)) = (slot, value) else {
            return Err(expected(&format!("{}=VALUE", names.join("=VALUE, ")), Some(pair)));
        };
        // NVIDIA's tool removes these quotes, too.
        let value =
            value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        if slot.replace(value).is_some() {
            return Err(format!("'{}' is given twice", String::from_utf8_lossy(name)));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_come_in_any_order_and_once() {
        let image = image3(b"file=a b.cubin,sm=90a,,kind=elf,").unwrap();
        assert_eq!(image, Image::parse(b"sm_90a=a b.cubin").unwrap());
        assert_eq!(
            image3(b"kind=ptx,sm=100f,file=\"x\"").unwrap(),
            Image::parse(b"compute_100f=x").unwrap()
        );
        assert_eq!(
            profile(b"profile=compute_70,file=x").unwrap(),
            Image::parse(b"compute_70=x").unwrap()
        );
        for (text, error) in [
            ("kind=elf,sm=90", "expected file=FILE"),
            ("sm=90,file=x", "expected kind=elf, kind=ptx or kind=nvvm"),
            (
                "kind=tileir,sm=90,file=x",
                "expected kind=elf, kind=ptx or kind=nvvm, found 'tileir'",
            ),
            ("kind=elf,sm=sm_90,file=x", "expected sm=90, 90a or 90f, found 'sm_90'"),
            ("kind=elf,sm=,file=x", "expected sm=90, 90a or 90f, found ''"),
            ("kind=elf,kind=elf", "'kind' is given twice"),
            ("kind=elf,sm=90,file=a,b", "expected kind=VALUE, sm=VALUE, file=VALUE, found 'b'"),
        ] {
            assert_eq!(image3(text.as_bytes()).unwrap_err(), error, "{text}");
        }
    }
}
