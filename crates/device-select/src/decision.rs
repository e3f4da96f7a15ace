//! The decision of a rule about all images of a file.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use fat_object::ImageInfo;

use crate::rule::{Rule, is_host, is_misnamed};
use crate::wanted::{Fate, Wanted};

/// The decision of a [`Rule`] about the images of a file, apart from those of the host.
///
/// ```
/// use device_select::{Rule, Wanted};
///
/// let file = std::fs::File::open("../../examples/data/hip.o")?;
/// let listing = fat_object::list(file, &fat_object::Options::default())?;
/// let rule = Rule::keep([Wanted::parse("gfx906:xnack+")?]);
/// let decision = rule.decide(listing.images());
/// assert_eq!(decision.stay_too[0].target().id(), "gfx9-generic");
/// assert_eq!(decision.go.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Decision<'i> {
    /// Images that stay because a device that is asked for could load them, too.
    pub stay_too: Vec<&'i ImageInfo>,
    /// Images that stay because they may be for any device.
    pub stay_unknown: Vec<&'i ImageInfo>,
    /// Images that go.
    pub go: Vec<&'i ImageInfo>,
    /// Images that are dropped although their names may be asked for: they hold other code than their names say.
    pub misnamed: Vec<&'i ImageInfo>,
    /// Images that are dropped and leave nothing in their NVIDIA fatbinary that a requested device could load.
    pub unserved: Vec<&'i ImageInfo>,
}

/// A target that is asked for, and that no image is for.
#[derive(Debug)]
pub struct Missing<'w> {
    wanted: &'w Wanted,
    near: Option<String>,
    generic: Option<&'static str>,
}

impl Missing<'_> {
    /// Returns the target as it was asked for.
    #[must_use]
    pub fn text(&self) -> &str {
        self.wanted.text()
    }

    /// Returns what to say of it, given the names of the images: `no such image; the file has gfx906`.
    #[must_use]
    pub fn words(&self, images: &str) -> String {
        match (&self.near, self.generic) {
            (Some(near), _) => format!("did you mean {near}? The file has {images}"),
            (None, None) => format!("no such image; the file has {images}"),
            (None, Some(generic)) => {
                format!("no such image; the file has {images}; code for {generic} would run on it")
            }
        }
    }
}

impl Rule {
    /// Returns the targets of the rule.
    #[must_use]
    pub fn wanted(&self) -> &[Wanted] {
        match self {
            Rule::Keep { wanted, .. } | Rule::Drop { wanted } => wanted,
        }
    }

    /// Returns the targets of the rule that [mean](Self::means) no image of a file.
    #[must_use]
    pub fn missing(&self, images: &[ImageInfo]) -> Vec<Missing<'_>> {
        let is_exact = !matches!(self, Rule::Keep { exact: false, .. });
        let is_missing = |wanted: &&Wanted| !images.iter().any(|image| self.means(wanted, image));
        let missing = self.wanted().iter().filter(is_missing).map(|wanted| Missing {
            wanted,
            near: wanted.closest(images.iter().filter(|image| !is_host(image))),
            generic: wanted.generic().filter(|_| !is_exact),
        });
        missing.collect()
    }

    /// Returns what to say of the targets whose processors are not known, unless an image is named so.
    #[must_use]
    pub fn doubts(&self, images: &[ImageInfo]) -> Vec<String> {
        let is_named = |wanted: &Wanted| {
            images.iter().any(|image| !is_host(image) && wanted.names(image.target()))
        };
        let doubts = self.wanted().iter().filter_map(|wanted| Some((wanted, wanted.doubt()?)));
        doubts.filter(|(wanted, _)| !is_named(wanted)).map(|(_, doubt)| doubt).collect()
    }

    /// Returns what becomes of all images of a file, by their [fates](Self::fates).
    #[must_use]
    pub fn decide<'i>(&self, images: &'i [ImageInfo]) -> Decision<'i> {
        let mut decision = Decision::default();
        for (image, fate) in images.iter().zip(self.fates(images)) {
            match fate {
                _ if is_host(image) => {}
                Fate::Stays => {}
                Fate::StaysToo => decision.stay_too.push(image),
                Fate::StaysUnknown => decision.stay_unknown.push(image),
                Fate::Goes | Fate::GoesUnserved => {
                    decision.go.push(image);
                    if is_misnamed(image) {
                        decision.misnamed.push(image);
                    }
                    if matches!(fate, Fate::GoesUnserved) {
                        decision.unserved.push(image);
                    }
                }
            }
        }
        decision
    }
}
