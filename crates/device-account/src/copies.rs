//! Images and functions that are equal, and the bytes that their copies waste.

use std::collections::HashMap;

use crate::account::{Account, ImageShare};
use crate::kind::Amount;

/// Something that is there several times.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copies {
    /// The GPU.
    pub target: String,
    /// The name of a function, as the first copy has it; `None` for images.
    pub function: Option<String>,
    /// The copies, in the order in which they were added.
    pub copies: Vec<Copy>,
}

/// One of several copies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copy {
    /// The file, as it was named, and the containers from outside in.
    pub place: String,
    /// Its bytes.
    pub amount: Amount,
}

impl Copies {
    /// Returns the bytes of all copies but the largest one.
    #[must_use]
    pub fn wasted(&self) -> Amount {
        let all: Amount = self.copies.iter().map(|copy| copy.amount).sum();
        let largest =
            self.copies.iter().map(|copy| copy.amount).max_by_key(|it| (it.stored, it.plain));
        largest.map_or(all, |largest| all.without(largest))
    }

    /// Returns equal images, and then equal functions, of files with their names and [hashes](crate::Accountant::with_hashes): those first whose copies waste most. Images are
    /// equal if all their bytes are; functions if their GPU, machine code and constants are, whatever their names. Functions
    /// in sections that relocations change are not compared. Hashes are compared: XXH3 of 128 bits, which does not resist
    /// deliberate collisions.
    #[must_use]
    pub fn find<'a>(files: impl IntoIterator<Item = (&'a str, &'a Account)>) -> Vec<Self> {
        let mut found: Vec<Copies> = Vec::new();
        let mut known: HashMap<(String, bool, u128), usize> = HashMap::new();
        let mut add = |target: &str, function: Option<&str>, hash: u128, copy: Copy| {
            let key = (target.to_owned(), function.is_some(), hash);
            let at = *known.entry(key).or_insert(found.len());
            if let Some(copies) = found.get_mut(at) {
                copies.copies.push(copy);
            } else {
                let (target, function) = (target.to_owned(), function.map(str::to_owned));
                found.push(Copies { target, function, copies: vec![copy] });
            }
        };
        for (name, account) in files {
            for image in account.images() {
                let (target, place) = (image.target(), place(name, image));
                let copy = |amount| Copy { place: place.clone(), amount };
                if let Some(hash) = image.hash {
                    add(&target, None, hash, copy(image.amount()));
                }
                for function in &image.functions {
                    if let Some(hash) = function.hash {
                        add(&target, Some(&function.name), hash, copy(function.amount));
                    }
                }
            }
        }
        found.retain(|copies| copies.copies.len() > 1);
        found.sort_by_key(|copies| {
            let Amount { stored, plain } = copies.wasted();
            (copies.function.is_some(), std::cmp::Reverse((stored, plain)))
        });
        found
    }
}

/// Returns the place of an image as text.
fn place(file: &str, image: &ImageShare) -> String {
    let steps = image.info.path().iter().map(|step| format!(" {step}"));
    format!("{file}{}", steps.collect::<String>())
}
