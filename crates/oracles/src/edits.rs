//! Edits of any file: what they must leave in it.

use std::io::{self, Cursor, Read};

use ccob::{Method, Version, WriteOptions};
use fat_edit::{
    Change, CompressOptions, ContainerChange, Edit, EditOptions, EditPlan, EditableContainer,
    EditableFile, NewImage, survey, survey_closed,
};
use fat_object::{ContainerKind, FileFormat, Finding, Image, Options, Severity, Visitor, walk};

use crate::{assert_message, model};

/// The most that may be decompressed.
const LIMIT: u64 = 4 << 20;
/// New images: nothing, text, bitcode, something larger.
const NEW: [&[u8]; 4] = [b"", b"new\n", b"BC\xc0\xdenew bitcode", &[7; 5000]];
const ADDED: [&str; 3] = [
    "hipv4-amdgcn-amd-amdhsa--gfx90a",
    "openmp-nvptx64-nvidia-cuda--sm_70",
    "hip-amdgcn-amd-amdhsa--gfx1100",
];

/// Edits a file as its last bytes have it.
pub fn check(data: &[u8]) {
    let (_, tail) = data.split_at(data.len().saturating_sub(8));
    let seed = tail.iter().fold(0, |seed: u64, &byte| seed << 8 | u64::from(byte));
    for round in 0..3 {
        check_seeded(data, seed ^ round << 60, &|_| {});
    }
    if let Some(file) = with_container_after(data) {
        check_seeded(&file, seed, &|_| {});
    }
}

/// Returns a host file with a bundle after its last byte, in no section and no member; `None` for other files.
pub fn with_container_after(data: &[u8]) -> Option<Vec<u8>> {
    let is_host = matches!(
        FileFormat::sniff(data),
        FileFormat::Elf { .. }
            | FileFormat::Coff
            | FileFormat::Pe
            | FileFormat::MachO
            | FileFormat::Wasm
            | FileFormat::Archive
    );
    let layout = bundle_format::layout(ADDED.map(|id| (id, 6)), 1).expect("is small");
    let bundle = layout.to_vec(&[&b"BC\xc0\xde01"[..]; 3]).expect("as laid out");
    is_host.then(|| [data, &bundle].concat())
}

/// Edits a file as the number has it. Calls `after` with every written file.
pub fn check_seeded(data: &[u8], seed: u64, after: &dyn Fn(&[u8])) {
    check_edit(data, &mut Choices::new(seed), after);
}

/// Edits a file that is made from the bytes, and that holds the contents of the model.
pub fn check_model(data: &[u8]) {
    if let Some(file) = model::make(data) {
        check(&file);
    }
}

/// Numbers that are the same for the same file (xorshift).
pub(crate) struct Choices(u64);

impl Choices {
    pub(crate) fn new(seed: u64) -> Self {
        Choices(seed | 1)
    }

    pub(crate) fn of(&mut self, choices: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % choices
    }
}

fn options() -> Options {
    Options::default().with_max_decompressed(LIMIT).with_max_expansion(64).with_enter_images(false)
}

/// The form of bundles.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Keep,
    Compress,
    Recompress,
    Decompress,
}

impl Form {
    fn wish(self, edit: &mut Edit, choices: &mut Choices) {
        let write = WriteOptions::default()
            .with_version([Version::V2, Version::V3][choices.of(2) as usize])
            .with_method([Method::ZLIB, Method::ZSTD][choices.of(2) as usize])
            .with_threads(1 + choices.of(3) as u32);
        let upgrade = choices.of(2) == 0;
        let options =
            CompressOptions::default().with_write(write).with_upgrade_offload_binaries(upgrade);
        match self {
            Form::Keep => {}
            Form::Compress => edit.compress(options),
            Form::Recompress => edit.compress(options.with_recompress(true)),
            Form::Decompress => edit.decompress(),
        }
    }
}

fn check_edit(data: &[u8], choices: &mut Choices, check: &dyn Fn(&[u8])) {
    let forms = [Form::Keep, Form::Keep, Form::Compress, Form::Recompress, Form::Decompress];
    let form = forms[choices.of(5) as usize];
    // An edit without images need not open compressed bundles.
    let opens = matches!(form, Form::Keep) || choices.of(2) == 0;
    let input = &mut Cursor::new(data);
    let surveyed = if opens { survey(input, &options()) } else { survey_closed(input, &options()) };
    let contents = match surveyed {
        Ok(contents) => contents,
        Err(error) => return assert_message(&error),
    };
    assert_eq!(contents.size(), data.len() as u64);
    let (allow_empty, grow) = (choices.of(2) == 0, choices.of(2) == 0);
    let (drop_signature, allow_uneditable) = (choices.of(2) == 0, choices.of(2) == 0);
    let edit_options = EditOptions::default()
        .with_remove_host(true)
        .with_any_image(true)
        .with_allow_empty(allow_empty)
        .with_grow(grow)
        .with_drop_signature(drop_signature)
        .with_allow_uneditable(allow_uneditable)
        .with_threads(choices.of(3) as u32);
    let mut edit = Edit::new(edit_options.clone());
    form.wish(&mut edit, choices);
    let before = images(data);
    let expected = match (before, opens) {
        // Such files are not edited.
        (_, true) if !contents.findings().is_empty() => None,
        (Ok(before), true) => {
            let left = |container: &EditableContainer| {
                allow_uneditable
                    && (container.uneditable().is_some()
                        || container.is_in_place() && form != Form::Keep)
            };
            Some(wish(&contents, &before, &mut edit, choices, &left))
        }
        (Ok(before), false) => Some(before),
        // Damage where the survey did not look.
        (Err(_), false) => None,
        (Err(error), true) => panic!("the survey passed over damage: {error}"),
    };

    let Some((plan, out)) = run(&contents, data, &edit, form) else { return };
    assert!(contents.findings().is_empty());
    assert_eq!(plan.size(), out.len() as u64);
    if !opens {
        // Compressing and decompressing never remove.
        assert!(found(&out).0 == found(data).0);
        // The section of an entry may be empty.
        let stays = |c: &ContainerChange| c.change != Change::Removed;
        let is_filled = |c: &ContainerChange| c.size_after > 0 || c.size_before == 0;
        assert!(plan.containers().iter().all(|c| stays(c) && is_filled(c)));
        assert!(plan.images().iter().all(|image| image.size_after == Some(image.size_before)));
    }
    if plan.is_unchanged() {
        assert!(out == data);
    }
    let Some(expected) = expected else { return };
    check(&out);
    let after = images(&out).unwrap_or_else(|error| panic!("damaged: {error}"));
    assert!(
        after == expected,
        "{:?} for {:?}",
        after.iter().map(|image| (&image.0, image.1.len())).collect::<Vec<_>>(),
        expected.iter().map(|image| (&image.0, image.1.len())).collect::<Vec<_>>()
    );

    // A finished edit is not repeated.
    if after.is_empty() || form == Form::Recompress {
        return;
    }
    let contents =
        survey(&mut Cursor::new(&out), &options()).expect("the walk found nothing wrong");
    let mut again = Edit::new(edit_options);
    form.wish(&mut again, choices);
    if let Some((plan, _)) = run(&contents, &out, &again, form)
        && form != Form::Compress
    {
        assert!(plan.is_unchanged());
    }
}

/// Chooses an edit of each image. Returns the images that the file must hold then; those in containers that are `left` do not
/// change.
fn wish(
    contents: &EditableFile,
    before: &[Stored],
    edit: &mut Edit,
    choices: &mut Choices,
    left: &dyn Fn(&EditableContainer) -> bool,
) -> Vec<Stored> {
    assert_eq!(contents.images().len(), before.len());
    let changes = choices.of(3) > 0;
    let mut after = Vec::new();
    let mut added = Vec::new();
    for (image, old) in contents.images().iter().zip(before) {
        let container = contents.container_of(image.index()).expect("each image lies in one");
        let stays = left(container);
        // Other edits leave it as it is, or are refused.
        let only_loses = container.is_in_place();
        if container.kind() != ContainerKind::NvFatbin {
            assert_eq!(image.size(), old.1.len() as u64);
        }
        if image.index() == container.images().start {
            after.append(&mut added);
            if changes && choices.of(8) == 0 && !only_loses {
                let (id, number) = (ADDED[choices.of(3) as usize], choices.of(4) as usize);
                edit.add(container.index(), id, number);
                if !stays {
                    added.push(stored(container.kind(), Some(id.to_owned()), NEW[number]));
                }
            }
        }
        match if changes { choices.of(6) } else { 5 } {
            0 => {
                edit.remove(image.index());
                after.extend(stays.then(|| old.clone()));
            }
            1 if only_loses => after.push(old.clone()),
            1 if stays => {
                edit.replace(image.index(), choices.of(4) as usize);
                after.push(old.clone());
            }
            1 => {
                let number = choices.of(4) as usize;
                edit.replace(image.index(), number);
                after.push(stored(container.kind(), old.0.clone(), NEW[number]));
            }
            _ => after.push(old.clone()),
        }
    }
    after.append(&mut added);
    after
}

/// Plans and writes, if that is possible.
fn run(
    contents: &EditableFile,
    data: &[u8],
    edit: &Edit,
    form: Form,
) -> Option<(EditPlan, Vec<u8>)> {
    let images = NEW.iter().map(|image| NewImage::new(Cursor::new(*image)));
    let edit = edit.clone().with_images(images);
    let plan = match contents.plan(&mut Cursor::new(data), &edit) {
        Ok(plan) => plan,
        Err(error) => {
            // A file that contradicts itself may be found to do so only by the self-check.
            assert_message(&error);
            return None;
        }
    };
    let mut out = Vec::new();
    match plan.write(&mut Cursor::new(data), &mut out) {
        Ok(()) => Some((plan, out)),
        Err(error) => {
            assert_message(&error);
            // Newly decompressed data may be of any sort.
            assert!(form == Form::Decompress, "{error}");
            None
        }
    }
}

/// An image: its bundle entry ID, if it has one, and its bytes; in fatbinaries decompressed, and without the zeros at their
/// end.
type Stored = (Option<String>, Vec<u8>);

/// Returns a new image as an edit stores it in a container of this kind.
fn stored(kind: ContainerKind, id: Option<String>, bytes: &[u8]) -> Stored {
    match kind {
        ContainerKind::NvFatbin => (None, without_padding(bytes).to_vec()),
        ContainerKind::OffloadBinary => (None, bytes.to_vec()),
        _ => (id, bytes.to_vec()),
    }
}

fn without_padding(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// Returns all images of a file, or its fault.
fn images(data: &[u8]) -> Result<Vec<Stored>, String> {
    match found(data) {
        (images, None) => Ok(images),
        (_, Some(error)) => Err(error),
    }
}

/// Returns the images that are found in a file, and its fault.
fn found(data: &[u8]) -> (Vec<Stored>, Option<String>) {
    struct Gather(Vec<Stored>, Option<String>);
    impl Visitor for Gather {
        fn image(&mut self, image: &mut Image<'_, '_>) -> io::Result<()> {
            let is_in_fatbin = image.container() == ContainerKind::NvFatbin;
            // Damaged code does not change.
            let code = if is_in_fatbin { image.code().ok().flatten() } else { None };
            let mut bytes = code.unwrap_or_default();
            if bytes.is_empty() {
                image.reader().read_to_end(&mut bytes)?;
            }
            if is_in_fatbin {
                bytes.truncate(without_padding(&bytes).len());
            }
            self.0.push((image.id().map(str::to_owned), bytes));
            Ok(())
        }
        fn finding(&mut self, finding: &Finding) -> io::Result<()> {
            if finding.severity() == Severity::Error {
                self.1 = Some(finding.to_string());
            }
            Ok(())
        }
    }
    let mut gather = Gather(Vec::new(), None);
    let mut options = options();
    // The file has become smaller, what it holds has not.
    options = options.with_max_expansion(1 << 20);
    options = options.with_max_decompressed(4 * LIMIT);
    walk(&mut Cursor::new(data), &options, &mut gather).expect("bytes can be read");
    (gather.0, gather.1)
}
