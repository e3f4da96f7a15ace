//! What the public types promise, whatever is in them: this file compiles, or a promise is broken.
#![forbid(unsafe_code)]

use core::convert::Infallible;
use core::error::Error as StdError;
use core::fmt::{Debug, Display};
use core::hash::Hash;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::str::FromStr;

use target_id::{
    Conflict, ConflictKind, Error, Family, Feature, Features, NvidiaArch, NvidiaScope, OffloadKind,
    Options, Processor, Setting, Side, Target, TargetId, Triple, Verdict,
};

/// Sent to and shared by threads, printed for debugging, cloned, compared, a key of a map.
fn value<T>()
where
    T: Clone + Debug + Eq + Hash + Send + Sync + Unpin + UnwindSafe + RefUnwindSafe + 'static,
{
}
fn copied<T: Copy>() {}
fn ordered<T: Ord>() {}
fn displayed<T: Display>() {}
fn text<T: Display + FromStr<Err = Infallible> + for<'a> From<&'a str> + AsRef<str>>() {}
fn parsed<T: Display + FromStr<Err = Error>>() {}
fn defaulted<T: Default>() {}

#[test]
fn public_types_keep_their_promises() {
    value::<Conflict>();
    value::<ConflictKind>();
    value::<Error>();
    value::<Family>();
    value::<Feature>();
    value::<Features>();
    value::<NvidiaArch>();
    value::<NvidiaScope>();
    value::<OffloadKind>();
    value::<Options>();
    value::<Processor>();
    value::<Setting>();
    value::<Side>();
    value::<Target>();
    value::<TargetId>();
    value::<Triple>();
    value::<Verdict>();

    copied::<(Family, Features, NvidiaArch, NvidiaScope, Options, Processor, Setting, Side)>();
    ordered::<(Family, Feature, Features, NvidiaArch, NvidiaScope, OffloadKind, Setting, Side)>();
    ordered::<(Target, TargetId, Triple)>();
    displayed::<Conflict>();
    displayed::<ConflictKind>();
    displayed::<Family>();
    displayed::<Side>();
    displayed::<Target>();
    displayed::<Verdict>();
    text::<Feature>();
    text::<OffloadKind>();
    text::<Triple>();
    parsed::<NvidiaArch>();
    parsed::<Processor>();
    parsed::<Setting>();
    parsed::<TargetId>();
    defaulted::<(Features, Options)>();
    let _: &dyn StdError = &Error::EmptyProcessor;
}

#[test]
fn what_is_displayed_is_read_back() {
    fn back<T: Display + FromStr + PartialEq + Debug>(text: &str)
    where
        T::Err: Debug,
    {
        let value: T = text.parse().unwrap();
        assert_eq!(value.to_string(), text);
        assert_eq!(value.to_string().parse::<T>().unwrap(), value);
    }
    for kind in ["host", "openmp", "hip", "hipv4", "cuda", "sycl", "", "HIP", "level zero"] {
        back::<OffloadKind>(kind);
    }
    for triple in ["amdgcn-amd-amdhsa", "amdgcn-amd-amdhsa-", "x86_64-linux-gnu", "", "?"] {
        back::<Triple>(triple);
    }
    for feature in ["xnack", "sramecc", "tgsplit", ""] {
        back::<Feature>(feature);
    }
    for id in ["gfx90a:sramecc-:xnack+", "gfx90a", "sm_90a", "generic", "gfx9999:new+"] {
        back::<TargetId>(id);
    }
    for arch in ["sm_20", "sm_90a", "compute_100f"] {
        back::<NvidiaArch>(arch);
    }
    for name in ["gfx906", "gfx9-generic", "r600"] {
        back::<Processor>(name);
    }
    for setting in ["on", "off"] {
        back::<Setting>(setting);
    }
    assert_eq!("mullins".parse::<Processor>().unwrap().name(), "gfx703");
    let name = || "GFX906".to_owned();
    assert_eq!(name().parse::<Processor>(), Err(Error::NotAmdgpuProcessor { name: name() }));
    for text in ["", "+", "On"] {
        assert_eq!(text.parse::<Setting>(), Err(Error::NotSetting { text: text.into() }));
    }
    assert_eq!(format!("{:>8}|{:<8}|", OffloadKind::Hip, Setting::On), "     hip|on      |");
}

#[test]
fn equal_target_ids_are_those_of_equal_text() {
    let cuda = Triple::parse("nvptx64-nvidia-cuda");
    let read_for = TargetId::parse_for(&cuda, "gfx906").unwrap();
    let read: TargetId = "gfx906".parse().unwrap();
    // Only for one of them the name is that of a processor of AMD's.
    assert_ne!(read_for.processor_info(), read.processor_info());
    assert_eq!(read_for, read);
    let ids = ["gfx1100", "gfx906", "gfx906:sramecc-", "gfx906:xnack-", "gfx906:xnack+", "sm_80"];
    let ids = ids.map(|id| TargetId::parse(id).unwrap());
    assert!(ids.is_sorted());
}
