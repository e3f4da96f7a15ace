//! Lists of names in messages.

use alloc::format;
use alloc::string::String;
#[cfg(feature = "files")]
use {alloc::vec::Vec, core::hash::Hash, fat_object::ImageInfo, std::collections::HashSet};

/// Returns the first five names, separated by commas, and the number of the others, as the answers of this crate list names.
///
/// ```
/// assert_eq!(device_select::few(["gfx906", "gfx90a"]), "gfx906, gfx90a");
/// assert_eq!(device_select::few(["a", "b", "c", "d", "e", "f", "g"]), "a, b, c, d, e and 2 more");
/// ```
#[must_use]
pub fn few<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    const MOST: usize = 5;
    let mut names = names.into_iter();
    let mut text = String::new();
    for name in names.by_ref().take(MOST) {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name.as_ref());
    }
    match names.count() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Returns the items in their order, each once.
///
/// ```
/// assert_eq!(device_select::each_once(["sm_90", "sm_80", "sm_90"]), ["sm_90", "sm_80"]);
/// ```
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
#[must_use]
pub fn each_once<T: Clone + Eq + Hash>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}

/// Returns the targets of images as they are loaded, the first five, each once.
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
#[must_use]
pub fn names<'i>(images: impl IntoIterator<Item = &'i ImageInfo>) -> String {
    few(each_once(images.into_iter().map(label)))
}

/// Returns the name of an image in such lists.
#[cfg(feature = "files")]
pub(crate) fn label(image: &ImageInfo) -> String {
    image.marked(image.label_of(&image.loaded_as()))
}
