//! `offload gpus`: the names of processors.

use std::io;

use device_select::{Device, NotADevice, Product, Vendor};
use tool_inputs::native;
use tool_kit::document::{self, Shape};
use tool_kit::format::ListFormat;
use tool_kit::style::{self, TARGET};
use tool_kit::table::{Align, Table};
use tool_kit::{Outcome, report};

/// List the names of GPUs, with their processors and PCI IDs
///
/// Commands that take a target ID also take one of these names or PCI IDs. Case, spaces, hyphens and the names of
/// the maker and the brand do not matter. A name that several processors have is refused; the error lists the
/// choices.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List only these GPUs: part of a name, a processor, a vendor or a PCI ID
    #[arg(value_name = "FILTER")]
    filters: Vec<String>,
    /// List this machine's GPUs and where each was detected
    ///
    /// These are the GPUs that `native` means in other commands. On Linux the files below /sys and /proc are read; no driver or
    /// runtime is needed. On Windows nvidia-smi and hipInfo are asked, then the list of devices of Windows; in WSL, nvidia-smi.
    #[arg(long, conflicts_with = "filters")]
    native: bool,
    #[command(flatten)]
    format: ListFormat,
}

const NAMES: Shape = Shape::new("gpus", "gpus", "name vendor processor pci_ids");
const NATIVE: Shape = Shape { columns: "target source", ..NAMES };

pub(crate) fn run(args: &Args) -> io::Result<Outcome> {
    if args.native {
        let gpus = native::visible_here().map_err(io::Error::other)?;
        if !args.format.is_text() {
            return document::print(args.format.get(), &NATIVE, gpus.all(), Outcome::Clean);
        }
        let mut out = style::stdout();
        let mut table = Table::default().column("TARGET", Align::Left, TARGET).texts(["SOURCE"]);
        gpus.all().iter().for_each(|gpu| table.row(&[gpu.id(), gpu.source()].map(str::to_owned)));
        table.print(&mut out, "", style::terminal_width())?;
        return out.flush().map(|()| Outcome::Clean);
    }
    let is_wanted = |product: &Product| {
        args.filters.is_empty() || args.filters.iter().any(|filter| product.matches(filter))
    };
    let products: Vec<Product> = Product::all().filter(is_wanted).collect();
    let mut outcome = Outcome::Clean;
    for filter in &args.filters {
        if !products.iter().any(|product| product.matches(filter)) {
            match Device::parse(filter) {
                Err(apple @ NotADevice::Apple(_)) => report::error(&apple),
                _ => report::error(&format_args!("{filter}: no such GPU is known")),
            }
            outcome = Outcome::Faults;
        }
    }
    if args.format.is_text() {
        print_table(&products)?;
    }
    document::print(args.format.get(), &NAMES, &products, outcome)
}

fn print_table(products: &[Product]) -> io::Result<()> {
    let mut out = style::stdout();
    let mut table = Table::default()
        .texts(["NAME", "VENDOR"])
        .column("PROCESSOR", Align::Left, TARGET)
        .texts(["PCI IDS"])
        .optional(1);
    for product in products {
        table.row(&[
            product.name().to_owned(),
            product.vendor().map_or("", Vendor::as_str).to_owned(),
            product.processor().to_owned(),
            Vec::from_iter(product.pci_ids()).join(" "),
        ]);
    }
    if !products.is_empty() {
        table.print(&mut out, "", style::terminal_width())?;
    }
    out.flush()
}
