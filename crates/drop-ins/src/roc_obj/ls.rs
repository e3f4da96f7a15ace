//! `roc-obj-ls`: a line for each code object in the bundles of files, with its URI.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use byte_parts::ReadSeek;
use fat_object::{
    Container, ContainerKind, Finding, Image, Location, Options, Severity, Summary, Visitor,
};

use super::uri;
use crate::drop_in;
use crate::llvm_cl::{Kind, Opt, Print, Tool};
use tool_kit::opened::Opened;
use tool_kit::stamp::Stamp;
use tool_kit::style::{Out, show, text};
use tool_kit::{input, report, style};

/// The options of `roc-obj-ls`.
pub static TOOL: Tool = Tool {
    overview: "List the code objects in the offload bundles of files, with a URI for each. Fields are the number of the bundle, the bundle entry ID and the URI, which roc-obj-extract takes.",
    positionals: "<files>",
    min_positionals: 0,
    max_positionals: usize::MAX,
    heading: "roc-obj-ls options:",
    options: &[
        Opt::new("v", Kind::Bool, "", "Print column headers before each bundle"),
        Opt::new("d", Kind::Bool, "", "Print the place of each bundle on standard error"),
        Opt::new(
            "h",
            Kind::Print(Print::Help { list: false, hidden: false }),
            "",
            "Alias for --help",
        ),
    ],
    version: concat!("offload ", env!("CARGO_PKG_VERSION"), ", in place of roc-obj-ls of ROCm\n"),
};

const NAME: &str = "roc-obj-ls";

/// Runs `roc-obj-ls` with the arguments of this process.
#[must_use]
pub fn main() -> ExitCode {
    let (invocation, matches) = match drop_in::start(&TOOL, NAME) {
        Ok(started) => started,
        Err(exit) => return exit,
    };
    let mut lister = Lister {
        tool: &invocation.typed,
        is_verbose: matches.is_on("v"),
        is_debug: matches.is_on("d"),
        path: PathBuf::new(),
        member: PathBuf::new(),
        entered: Vec::new(),
        bundles: 0,
        out: style::stdout(),
        unnamed: 0,
        errors: 0,
    };
    let mut end = ExitCode::SUCCESS;
    for path in &matches.positionals {
        let listed = lister.list(&input::path(path));
        if let Err(error) = lister.out.flush() {
            return report::end(&invocation.typed, &error);
        }
        if let Err(why) = listed {
            lister.complain(&why);
        }
        if lister.errors > 0 {
            end = ExitCode::FAILURE;
        }
    }
    end
}

struct Lister<'a> {
    tool: &'a str,
    is_verbose: bool,
    is_debug: bool,
    /// The file, and the last of the files that it names as a thin archive.
    path: PathBuf,
    member: PathBuf,
    /// Containers that were entered: `true` for a bundle to list.
    entered: Vec<bool>,
    /// Number of bundles, in all files.
    bundles: usize,
    /// Lines of the file.
    out: Out<'static>,
    /// Number of code objects in the file that no URI can name.
    unnamed: usize,
    /// Number of errors in the file.
    errors: usize,
}

impl Lister<'_> {
    /// Lists a file; an error if these are not all of its code objects.
    fn list(&mut self, path: &Path) -> Result<(), String> {
        let before = self.bundles;
        (self.unnamed, self.errors) = (0, 0);
        path.clone_into(&mut self.path);
        let summary = self.walk().map_err(|error| report::reason(&error))?;
        if self.unnamed > 0 {
            let unnamed = self.unnamed;
            return Err(format!(
                "no URI can name the {unnamed} code objects in compressed bundles: `offload extract` writes them to files, `offload decompress` makes a file without compression"
            ));
        }
        if self.bundles > before || self.errors > 0 {
            return Ok(());
        }
        Err(match summary.images {
            0 => summary.no_images().unwrap_or_else(|why| why),
            _ => "no bundle: `offload ls` lists the images outside of bundles".to_owned(),
        })
    }

    fn walk(&mut self) -> io::Result<Summary> {
        let file = Opened::regular(&self.path)?.file;
        let stamp = Stamp::of(&file)?;
        // Images are not read: a URI says no more than where one lies.
        let options = Options::default().with_tables_only(true).with_enter_images(false);
        let summary = fat_object::walk(&file, &options, self)?;
        stamp.check(&file)?;
        Ok(summary)
    }

    /// Prints an error about the file.
    fn complain(&mut self, what: &str) {
        self.errors += 1;
        report::error_of(self.tool, &format_args!("{}: {what}", self.path.display()));
    }
}

impl Visitor for Lister<'_> {
    fn enter(&mut self, container: &Container) -> io::Result<()> {
        let is_listed = container.kind() == ContainerKind::Bundle
            && matches!(container.location(), Location::File(_) | Location::ThinMember(_));
        self.entered.push(is_listed);
        if !is_listed {
            return Ok(());
        }
        self.bundles += 1;
        if self.is_debug {
            report::say(&text!(
                "{}: {}: bundle {} at offset {}, {} bytes",
                self.tool,
                self.path.display(),
                self.bundles,
                container.location().offset(),
                container.size()
            ));
        }
        if self.is_verbose {
            show!(self.out, "{:<8}{:<40}{:>35}", "Bundle#", "Entry ID:", "URI:")?;
        }
        Ok(())
    }

    fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
        if !matches!(image.container(), ContainerKind::Bundle | ContainerKind::Ccob) {
            return Ok(());
        }
        let (path, offset) = match image.location() {
            Location::File(offset) => (&self.path, offset),
            Location::ThinMember(offset) => (&self.member, offset),
            _ => {
                self.unnamed += usize::from(!image.target().is_host());
                return Ok(());
            }
        };
        let uri = uri::of_file(path, offset, image.size());
        // Only bundles have IDs.
        let (bundle, id) = (self.bundles, image.id().unwrap_or_default());
        show!(self.out, "{bundle:<8}{id:<40}{:>35}{uri}", "file://")?;
        Ok(())
    }

    fn leave(&mut self) -> io::Result<()> {
        if self.entered.pop() == Some(true) && self.is_verbose {
            show!(self.out)?;
        }
        Ok(())
    }

    fn finding(&mut self, finding: &Finding) -> io::Result<()> {
        match finding.severity() {
            Severity::Error => self.complain(&finding.to_string()),
            Severity::Warning => {
                let file = self.path.display();
                report::warning_of(self.tool, &format_args!("{file}: {finding}"));
            }
        }
        Ok(())
    }

    fn open_thin_member(&mut self, name: &[u8]) -> io::Result<Box<dyn ReadSeek>> {
        self.member = input::thin_member_path(&self.path, name);
        input::open_thin_member(&self.path, name)
    }
}
