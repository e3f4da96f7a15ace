//! `--target ID`, `--id ID`: which images a user means.

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use device_select::{ImageFilter, Wanted};
use target_id::OffloadKind;

use crate::suggest;
use tool_kit::report;

/// The options that choose images, shared by the commands.
#[derive(clap::Args, Debug)]
pub(crate) struct Selection {
    /// Select images that this GPU can load: a target ID, name or entry ID. Repeatable
    ///
    /// ID is a target ID (gfx90a:xnack+, sm_80), the name of a GPU (RX 7600), `native` (the GPUs of this machine) or a
    /// bundle entry ID (hipv4-amdgcn-amd-amdhsa--gfx90a). The compatibility rules of target IDs decide: an image for
    /// gfx90a runs on gfx90a:xnack+, one for gfx90a:xnack- does not; generic code objects (gfx9-generic) run on the
    /// processors they cover, machine code for sm_80 runs on sm_86, PTX for sm_80 runs on sm_90. Both the image and its
    /// entry must fit: code for gfx1250 in an entry for gfx906 matches neither; select it with --id.
    #[arg(long = "target", visible_alias = "gpu", value_name = "ID", value_parser = suggest::known)]
    wanted: Vec<Wanted>,
    /// Select images with exactly this bundle entry ID. Repeatable
    ///
    /// Any text is valid, such as a malformed ID. Combined with --target, selects images matching either.
    #[arg(long = "id", value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    ids: Vec<String>,
    /// Select exact matches of --target only: no generic code, no SPIR-V
    #[arg(long, requires = "wanted")]
    exact: bool,
    /// Select images of this kind; hip includes hipv4. Repeatable
    #[arg(long = "kind", value_name = "KIND", value_parser = kind())]
    kinds: Vec<OffloadKind>,
}

/// Reads an offload kind.
fn kind() -> impl TypedValueParser<Value = OffloadKind> {
    PossibleValuesParser::new(["host", "hip", "openmp", "cuda", "sycl"])
        .map(|name| OffloadKind::parse(&name))
}

impl Selection {
    /// Returns the images that are meant. Warns of impossible processors, and with `has_notes` notes the target IDs of other names.
    pub(crate) fn filter(&self, has_notes: bool) -> ImageFilter {
        let Selection { wanted, ids, exact, kinds } = self;
        let filter = ImageFilter::default().with_wanted(wanted.clone()).with_ids(ids.clone());
        let filter = filter.with_exact(*exact).with_kinds(kinds.clone());
        suggest::explain_wanted(wanted, has_notes);
        filter.doubts().for_each(|doubt| report::warning(&doubt));
        filter
    }
}
