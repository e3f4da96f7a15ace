//! The ledger of a walk: claims to the bytes of a file, and what each claim gets.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use fat_object::{Finding, ImageInfo, PathStep};

use crate::account::{Account, FunctionShare, ImageShare};
use crate::claims::{Claim, apportion, resolve};
use crate::image::Divided;
use crate::kind::{Amount, Kind, OF_IMAGES};
use crate::rest::Rest;

/// The claims of a walk.
#[derive(Debug)]
pub(crate) struct Ledger {
    spaces: Vec<Space>,
    images: Vec<Seen>,
    rest: Vec<Rest>,
}

/// Bytes that offsets count in: the file, and what was decompressed.
#[derive(Debug)]
struct Space {
    size: u64,
    is_compressed: bool,
    claims: Vec<Claim<Label>>,
}

/// The owner of claimed bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Label {
    Rest(usize),
    /// The header of an image's entry in its container, and its padding.
    Entry(usize),
    Image(usize),
    /// A compressed container.
    Space(usize),
}

/// An image that was visited.
#[derive(Debug)]
struct Seen {
    info: ImageInfo,
    divided: Divided,
    entry: Amount,
    stored: u64,
    /// Its bytes that no other image got, where it is not compressed by itself.
    got: u64,
}

impl Ledger {
    /// The space of the file.
    pub(crate) const FILE: usize = 0;
    /// The bytes of the file that nothing else claims.
    pub(crate) const REST: usize = 0;

    pub(crate) fn new() -> Self {
        let mut ledger = Ledger { spaces: Vec::new(), images: Vec::new(), rest: Vec::new() };
        let rest = ledger.add_rest(Kind::NotUnderstood, &Arc::default(), "");
        ledger.add_space(0, false, rest);
        ledger
    }

    /// Adds bytes of no image.
    pub(crate) fn add_rest(&mut self, kind: Kind, path: &Arc<[PathStep]>, section: &str) -> usize {
        let (path, section) = (Arc::clone(path), section.to_owned());
        let amount = Amount::default();
        self.rest.push(Rest { kind, path, section, amount, is_damaged: false });
        self.rest.len() - 1
    }

    /// Adds an image.
    pub(crate) fn add_image(&mut self, info: ImageInfo, divided: Divided) -> usize {
        let entry = Amount::default();
        self.images.push(Seen { info, divided, entry, stored: 0, got: 0 });
        self.images.len() - 1
    }

    /// Adds bytes that offsets count in. A rest gets the bytes without another claim.
    pub(crate) fn add_space(&mut self, size: u64, is_compressed: bool, rest: usize) -> usize {
        let claims = vec![Claim::new(0..size, 0, Label::Rest(rest))];
        self.spaces.push(Space { size, is_compressed, claims });
        self.spaces.len() - 1
    }

    /// Adds a claim to bytes of a space.
    pub(crate) fn claim(&mut self, space: usize, range: Range<u64>, depth: u32, label: Label) {
        let space = self.spaces.get_mut(space);
        space.into_iter().for_each(|it| it.claims.push(Claim::new(range.clone(), depth, label)));
    }

    /// Takes back the last claim to bytes of a space.
    pub(crate) fn unclaim(&mut self, space: usize) {
        self.spaces.get_mut(space).and_then(|space| space.claims.pop());
    }

    /// Gives the bytes of the last claim in a space to another owner.
    pub(crate) fn relabel(&mut self, space: usize, label: Label) {
        let claim = self.spaces.get_mut(space).and_then(|space| space.claims.last_mut());
        claim.into_iter().for_each(|claim| claim.label = label);
    }

    /// Returns the containers around bytes of no image.
    pub(crate) fn path(&self, rest: usize) -> Arc<[PathStep]> {
        self.rest.get(rest).map_or_else(Arc::default, |rest| Arc::clone(&rest.path))
    }

    /// Sets the kind of bytes of no image, unless they are damaged.
    pub(crate) fn set_kind(&mut self, rest: usize, kind: Kind) {
        let rest = self.rest.get_mut(rest).filter(|rest| !rest.is_damaged);
        rest.into_iter().for_each(|rest| rest.kind = kind);
    }

    /// Notes that bytes of no image are damaged: they are not understood.
    pub(crate) fn set_damaged(&mut self, rest: usize) {
        self.set_kind(rest, Kind::NotUnderstood);
        self.rest.get_mut(rest).into_iter().for_each(|rest| rest.is_damaged = true);
    }

    /// Gives each byte of the file, which has this size, to one claim.
    pub(crate) fn settle(mut self, size: u64, findings: Vec<Finding>) -> Account {
        if let Some(file) = self.spaces.first_mut() {
            file.size = size;
            file.claims.push(Claim::new(0..size, 0, Label::Rest(Self::REST)));
        }
        let images = self.images.iter();
        let mut is_apportioned = images.clone().any(|image| image.info.compression().is_some());
        let mut shared: u64 = images.map(|image| image.divided.shared).sum();
        // The bytes in the file of each space. A space comes before the spaces in it.
        let mut stored = vec![0; self.spaces.len()];
        stored.iter_mut().take(1).for_each(|file| *file = size);
        for (at, space) in mem::take(&mut self.spaces).into_iter().enumerate() {
            let mut got = vec![0; space.claims.len()];
            shared += resolve(space.size, &space.claims, |claim, range| {
                let got = got.get_mut(claim);
                got.into_iter().for_each(|got| *got += range.end - range.start);
            });
            is_apportioned |= space.is_compressed;
            let parts = apportion(stored.get(at).copied().unwrap_or(0), &got);
            for ((claim, plain), in_file) in space.claims.iter().zip(got).zip(parts) {
                if let Label::Space(inner) = claim.label {
                    stored.get_mut(inner).into_iter().for_each(|sum| *sum += in_file);
                } else {
                    self.give(claim.label, Amount::new(in_file, plain));
                }
            }
        }
        Account {
            size,
            images: self.images.into_iter().map(Seen::share).collect(),
            rest: self.rest.into_iter().filter(|rest| rest.amount != Amount::default()).collect(),
            shared,
            is_apportioned,
            findings,
        }
    }

    /// Gives bytes to the owner of a claim.
    fn give(&mut self, label: Label, amount: Amount) {
        match label {
            Label::Rest(rest) => {
                self.rest.get_mut(rest).into_iter().for_each(|rest| rest.amount += amount);
            }
            Label::Entry(image) => {
                self.images.get_mut(image).into_iter().for_each(|image| image.entry += amount);
            }
            Label::Image(image) => {
                self.images.get_mut(image).into_iter().for_each(|image| {
                    image.stored += amount.stored;
                    image.got += amount.plain;
                });
            }
            Label::Space(_) => {}
        }
    }
}

impl Seen {
    fn share(self) -> ImageShare {
        let Seen { info, divided, entry, stored, got } = self;
        let weights = OF_IMAGES.map(|kind| divided.kinds.get(kind));
        // Another image may have got some of its bytes.
        let plain = match info.compression() {
            None => apportion(got, &weights),
            Some(_) => weights.to_vec(),
        };
        let stored = apportion(stored, &weights);
        let mut functions = vec![Amount::default(); divided.functions.len()];
        let (mut kinds, mut rest) = (Vec::new(), Vec::new());
        for ((kind, stored), plain) in OF_IMAGES.into_iter().zip(stored).zip(plain) {
            let amount = Amount::new(stored, plain);
            kinds.push((kind, amount));
            let own = divided.functions.iter().map(|function| function.kinds.get(kind));
            let whole = divided.kinds.get(kind);
            rest.push((kind, divide(amount, whole, own.collect(), &mut functions)));
        }
        for kinds in [&mut kinds, &mut rest] {
            kinds.push((Kind::Container, entry));
            kinds.retain(|(_, amount)| *amount != Amount::default());
        }
        let named = divided.functions.into_iter().zip(functions);
        let functions =
            named.map(|(it, amount)| FunctionShare { name: it.name, amount, hash: it.hash });
        ImageShare { info, kinds, functions: functions.collect(), rest, hash: divided.hash }
    }
}

/// Divides an amount among functions by their own bytes, of `whole` bytes. Returns what is left: the part of no function.
fn divide(amount: Amount, whole: u64, mut own: Vec<u64>, functions: &mut [Amount]) -> Amount {
    let rest = whole - own.iter().sum::<u64>();
    own.push(rest);
    let parts = apportion(amount.stored, &own).into_iter().zip(apportion(amount.plain, &own));
    let mut left = amount;
    for (function, (stored, plain)) in functions.iter_mut().zip(parts) {
        let part = Amount::new(stored, plain);
        *function += part;
        left = left.without(part);
    }
    left
}
