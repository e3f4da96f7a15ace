//! The device code of each installed package.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use device_select::{Holding, Rule};
use fat_object::{Finding, Image, ImageInfo, Severity, Visitor};
use serde::Serialize;

use super::Args;
use crate::suggest;
use tool_inputs::complaint::{self, Complaint};
use tool_inputs::inputs::{Input, Inputs};
use tool_inputs::native;
use tool_inputs::package::HEADS;
use tool_inputs::records::{Listed, Lists};
use tool_kit::Outcome;
use tool_kit::document::{Document, Shape};
use tool_kit::looked::Seen;
use tool_kit::parallel::Threads;
use tool_kit::report::Message;
use tool_kit::style::{self, HEADING, PLAIN};
use tool_kit::table::{Align, Table};

/// A package; the fields of one JSON object, in this order.
#[derive(Debug, Serialize)]
struct Row<'p> {
    package: &'p str,
    files: u64,
    code: u64,
    ptx: u64,
    lto_ir: u64,
    other_gpus: u64,
    loose: u64,
    not_understood: u64,
}

impl<'p> Row<'p> {
    fn new((package, it): (&'p String, &Holding)) -> Self {
        let Holding { files, code, ptx, lto_ir, other_gpus, loose, not_understood, .. } = *it;
        Row { package, files, code, ptx, lto_ir, other_gpus, loose, not_understood }
    }
}

const SHAPE: Shape = Shape::new(
    "ls",
    "packages",
    "package files code/B ptx/B lto_ir/B other_gpus/B loose/B not_understood/B",
);

/// The images of a file.
struct Listing<'f> {
    file: &'f str,
    images: Vec<ImageInfo>,
    complaints: Vec<Complaint>,
}

impl Visitor for Listing<'_> {
    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        self.images.push(image.info().clone());
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        self.complaints.push(Complaint::new(self.file, finding));
        Ok(())
    }
}

/// Prints a line for each package, and one for files of none.
pub(super) fn run(args: &Args) -> io::Result<Outcome> {
    let mut wanted = args.selection.filter(args.format.is_text()).wanted;
    if let Some(gpus) = Some(native::visible_here()).filter(|_| wanted.is_empty()) {
        // Without a GPU all code is asked for.
        let ids = gpus.iter().flat_map(|gpus| gpus.all().iter().map(|gpu| gpu.id()));
        wanted = ids.map(suggest::wanted).collect::<Result<_, _>>().map_err(io::Error::other)?;
    }
    let names: Vec<String> = wanted.iter().map(|one| one.text().to_owned()).collect();
    let rule = (!wanted.is_empty()).then(|| Rule::keep(wanted));
    let inputs = Inputs::find_online(&args.files, args.network);
    let mut lists = Lists::default();
    lists.find(inputs.files(), false);
    let lists = Mutex::new(lists);
    let mut packages: BTreeMap<String, Holding> = BTreeMap::new();
    let list = |file: &Input, threads: Threads| {
        let mut listing = Listing { file: file.name(), images: Vec::new(), complaints: Vec::new() };
        let summary = file.walk(&args.limits, &args.limits.options(), threads, &mut listing);
        let Listing { images, complaints, .. } = listing;
        let is_damaged = complaints.iter().any(|one| one.severity == Severity::Error);
        let holding = summary.as_ref().ok().map(|summary| {
            Holding::of(rule.as_ref(), &images, (summary.format, summary.size), is_damaged)
        });
        (holding, complaints, summary)
    };
    let limits = (&args.limits, HEADS);
    let mut document = Document::start(args.format.get(), &SHAPE)?;
    let mut looked =
        inputs.look(limits, "listing", list, |file, (holding, complaints, summary)| {
            let has_faults =
                complaint::report(&mut document, file.name(), &complaints, &summary, |_| {
                    file.split_library().err().map(Err)
                })?;
            let (Some(holding), Ok(summary)) = (holding, summary) else { return Ok(Seen::Faults) };
            if holding.is_empty() {
                return Ok(if has_faults { Seen::Faults } else { file.nothing(&summary) });
            }
            let distribution =
                || Listed::new(&lists).distributions(file).pop_first().map(|(_, name)| name);
            let package = file.package().map(str::to_owned).or_else(distribution);
            *packages.entry(package.unwrap_or_else(|| "(no package)".to_owned())).or_default() +=
                holding;
            Ok(Seen::faults(has_faults))
        })?;
    let said = lists.into_inner().map(|mut lists| lists.finish(false));
    for message in said.iter().flatten() {
        message.print();
        if let Message::Error(_) = message {
            looked.set_faulty();
        }
    }
    packages.iter().map(Row::new).try_for_each(|row| document.row(&row))?;
    if document.is_text() && !packages.is_empty() {
        print(&packages, &names)?;
    }
    let outcome = document.looked(looked, false)?;
    document.end(outcome)
}

fn print(packages: &BTreeMap<String, Holding>, gpus: &[String]) -> io::Result<()> {
    let code = if gpus.is_empty() { "CODE".to_owned() } else { format!("FOR {}", gpus.join(",")) };
    let mut out = style::stdout();
    let mut table = Table::default()
        .column("PACKAGE", Align::Left, HEADING)
        .numbers(["FILES"])
        .column(code, Align::Right, PLAIN)
        .numbers(["PTX", "LTO-IR", "OTHER GPUS", "LOOSE", "NOT READ"]);
    let mut total = Holding::default();
    let mut row = |name: &str, it: &Holding| {
        let sizes = [it.code, it.ptx, it.lto_ir, it.other_gpus, it.loose, it.not_understood];
        let sizes = sizes.map(|size| if size == 0 { String::new() } else { style::size(size) });
        let mut cells = vec![name.to_owned(), it.files.to_string()];
        cells.extend(sizes);
        table.row(&cells);
    };
    for (name, holding) in packages {
        row(name, holding);
        total += *holding;
    }
    row(&format!("all {}", style::count(packages.len(), "package")), &total);
    table.print(&mut out, "", style::terminal_width())?;
    out.flush()
}
