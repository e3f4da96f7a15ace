//! The options that `make` and `split` share, and the wheel that they read.

use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use device_select::{Support, VariantValue};
use gpu_packages::{Error, VariantMetadata, VariantProperties, VariantSchema};
use offload_check::VariantCode;
use tool_edits::write_variant;
use tool_inputs::limits::Limits;
use tool_inputs::variants::OpenWheel;
use tool_kit::report;

/// The label of the variant that is compatible with every system.
pub(super) const NULL: &str = "null";

/// The options of new variants.
#[derive(Debug, clap::Args)]
pub(super) struct Making {
    /// Write metadata of this form
    #[arg(long, value_enum, value_name = "FORM", default_value = "pep825")]
    schema: Schema,
    /// Write to this directory, created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub(super) output: PathBuf,
    /// Allow changing a signed wheel; remove its signature
    #[arg(long)]
    pub(super) drop_signature: bool,
    #[command(flatten)]
    pub(super) limits: Limits,
}

/// The form of new metadata.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Schema {
    /// Version 0.1.1 of PEP 825.
    Pep825,
    /// Version 0.2.0 of variantlib, which names the plugins of installers.
    Variantlib,
}

impl Making {
    /// Opens the wheel that variants are made of.
    pub(super) fn open(&self, path: &Path) -> io::Result<OpenWheel> {
        OpenWheel::open(path, &self.limits)
    }

    /// Writes the wheel as a variant, with all its files; returns its path and its size in bytes.
    pub(super) fn write(
        &self,
        from: &OpenWheel,
        metadata: &VariantMetadata,
    ) -> io::Result<(PathBuf, u64)> {
        write_variant(from, metadata, (&self.output, self.drop_signature))
    }

    /// Reads all device code. Returns it, and the properties of GPUs for which there is some. Notes say what is missing.
    pub(super) fn justified(&self, of: &OpenWheel) -> io::Result<(VariantCode, Vec<VariantValue>)> {
        let code = of.whole_code(&self.limits)?;
        let mut values = Vec::new();
        for one in code.justified() {
            let (value, words) = (&one.value, &one.words);
            match one.support {
                Support::Yes => {}
                Support::Partly => report::note(&format_args!("{value}: {words}")),
                _ => {
                    report::note(&format_args!("{value} is not declared: the wheel {words}"));
                    continue;
                }
            }
            values.push(one.value);
        }
        Ok((code, values))
    }

    /// Returns metadata, with the namespaces of others before and after those of its properties.
    pub(super) fn metadata<'n>(
        &self,
        (label, properties): (&str, VariantProperties),
        before: impl IntoIterator<Item = &'n str>,
        after: impl IntoIterator<Item = &'n str>,
    ) -> Result<VariantMetadata, Error> {
        let schema = match self.schema {
            Schema::Pep825 => VariantSchema::Pep825,
            Schema::Variantlib => VariantSchema::Variantlib,
        };
        VariantMetadata::default()
            .with_namespaces(before)?
            .with_variant(label, properties)?
            .with_namespaces(after)?
            .with_schema(schema)
    }
}
