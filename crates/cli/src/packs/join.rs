//! `offload join`: device code of HIP moved from kernel packs into the library that it was split from.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use device_select::SplitLibrary;
use fat_edit::{EditOptions, EditPlan, Join, new_compression};

use super::join_wheel;
use crate::report::check_output;
use tool_edits::{CODES, WheelJoin, of_plan};
use tool_inputs::limits::Limits;
use tool_inputs::package::Package;
use tool_inputs::split_library::{Host, OpenPack};
use tool_kit::failure::Failure;
use tool_kit::opened::{MaxInput, Opened, parse_size};
use tool_kit::output::{How, Outputs};
use tool_kit::parallel::Threads;
use tool_kit::permissions::NewPermissions;
use tool_kit::positioned::Positioned;
use tool_kit::progress::Progress;
use tool_kit::stamp::Stamp;
use tool_kit::style::{self, HEADING, show};
use tool_kit::{Outcome, input, report, scratch};

/// Move device code from kernel packs into their library
///
/// The result is a library that needs no packs. Libraries that AMD's tools have split are not joined. A host wheel and its device
/// wheels become one wheel.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Library without device code, or host wheel
    #[arg(value_name = "HOST")]
    host: PathBuf,
    /// Kernel packs (default: all where the library says), or device wheels
    #[arg(value_name = "KPACK")]
    packs: Vec<PathBuf>,
    /// Write the result to OUT; - is standard output, for libraries
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Compress new bundles, also where the bundles that were split were not
    #[arg(long)]
    compress: bool,
    /// Allow the file to grow; move device code that no longer fits to its end
    #[arg(long)]
    grow: bool,
    /// Allow editing a signed file; remove its signature
    #[arg(long)]
    drop_signature: bool,
    /// Allow joining wheels with findings of `offload verify`
    #[arg(long)]
    allow_findings: bool,
    /// Limit the decompressed data of a library or a pack of a wheel (default: 2G)
    ///
    /// The suffixes are K, M and G. Wheels below 7M have a lower default: 256M, and 256 bytes for each byte of the wheel.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_decompressed: Option<u64>,
    #[command(flatten)]
    max_input: MaxInput,
}

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    let name = input::display(&args.host);
    let opened = Opened::new(&args.host, args.max_input);
    let opened = opened.and_then(|opened| {
        let opened = Arc::new(opened);
        Ok((Package::of(&opened)?, opened))
    });
    let joined = match opened {
        // Its messages name the wheel that they are about.
        Ok((Some(package), _)) => {
            let join = WheelJoin {
                output: &args.output,
                compress: args.compress,
                allow_findings: args.allow_findings,
                drop_signature: args.drop_signature,
                options: args.edit(),
                limits: &args.limits(),
                threads: Threads::default().count(),
            };
            let host = (&*args.host, package);
            return match join_wheel::join(&join, host, &args.packs, args.max_input) {
                Ok(()) => Ok(Outcome::Clean),
                Err(failure) => failure.report(|complaint| report::error(&complaint)),
            };
        }
        Ok((None, opened)) => join(args, &opened),
        Err(error) => Err(error.into()),
    };
    match joined {
        Ok(()) => Ok(Outcome::Clean),
        Err(failure) => {
            failure.report(|complaint| report::error(&format_args!("{name}: {complaint}")))
        }
    }
}

impl Args {
    fn limits(&self) -> Limits {
        Limits::with_max_decompressed(self.max_decompressed)
    }

    /// Returns the permitted changes of libraries.
    fn edit(&self) -> EditOptions {
        EditOptions::default().with_grow(self.grow).with_drop_signature(self.drop_signature)
    }
}

fn join(args: &Args, opened: &Opened) -> Result<(), Failure> {
    let (mut new, file) = (opened.permissions(), &opened.file);
    let stamp = Stamp::of(file)?;
    let host = Host::read(Positioned::new(file), &args.host)?
        .ok_or_else(|| "its device code is not in kernel packs".to_owned())?;
    let paths = if args.packs.is_empty() { host.packs()? } else { args.packs.clone() };
    check_output(&args.output, paths.iter().map(PathBuf::as_path))?;
    if paths.is_empty() {
        let patterns = host.patterns().join(", ");
        return Err(format!("no kernel packs are there: looked for {patterns}").into());
    }
    let _progress = Progress::start("joining");
    let packs = paths.iter().map(|path| OpenPack::open(path)).collect::<Result<Vec<_>, _>>()?;
    let inputs = packs.iter().map(OpenPack::input).collect::<io::Result<Vec<_>>>()?;
    let join = Join::new(host.marker(), host.wrappers(), inputs);
    let mut join = join.with_max_decompressed(args.limits().held_of(u64::MAX));
    let used = join.used();
    for pack in used.iter().filter_map(|pack| packs.get(*pack)) {
        new = new.and_of(&pack.file)?;
    }
    if used.is_empty() {
        let name = host.marker().kernel_name();
        return Err(format!("no kernel pack has code of {name}").into());
    }
    if let Some((recipe, expected)) = join.way_back(stamp.size()) {
        let plan = join.plan_back(&recipe, scratch::file(CODES)?).map_err(of_plan)?;
        let reason = match plan {
            Ok(plan) if write(args, (file, new), stamp, &plan, Some(expected))? => return Ok(()),
            Ok(_) => recipe.of_other_hash(),
            Err(reason) => reason,
        };
        report::note(&format_args!("{reason}: it gets new bundles"));
    }
    let compression = join.compression().or_else(|| args.compress.then(new_compression));
    let (input, codes) = (Positioned::new(file), scratch::file(CODES)?);
    let plan = join.plan_anew(input, codes, compression.as_ref(), &args.edit()).map_err(of_plan)?;
    write(args, (file, new), stamp, &plan, None)?;
    super::note(&input::display(&args.host), &plan);
    Ok(())
}

/// Writes the file; `false`, and nothing, if its hash is another one than expected.
fn write(
    args: &Args,
    (file, new): (&File, NewPermissions),
    stamp: Stamp,
    plan: &EditPlan,
    expected: Option<u64>,
) -> Result<bool, Failure> {
    let is_right = |hash| expected.is_none_or(|expected| expected == hash);
    let make = |out: &mut dyn Write| -> io::Result<bool> {
        let hash = plan.write_hashed(Positioned::new(file), out).map_err(io::Error::from)?;
        stamp.check(file)?;
        Ok(is_right(hash))
    };
    // Printed bytes cannot be taken back.
    let is_printed = args.output.as_os_str() == "-";
    if is_printed && expected.is_some() && !make(&mut io::sink())? {
        return Ok(false);
    }
    let mut outputs = Outputs::default();
    let how = How { new, replaces: None };
    if !outputs.write_or_print(&args.output, how, |out| make(out))? {
        return Ok(false);
    }
    outputs.commit()?;
    if !is_printed {
        let mut out = style::stdout();
        let path = input::display(&args.output);
        let [before, after] = [stamp.size(), plan.size()].map(style::size);
        let same = if expected.is_some() { ", the file that was split" } else { "" };
        show!(out, "{HEADING}{path}{HEADING:#}  {before} -> {after}{same}")?;
        out.flush()?;
    }
    Ok(true)
}
