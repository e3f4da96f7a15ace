//! A library of a wheel that gets its device code back.

use std::ops::Range;

use fat_edit::{EditOptions, Join, NoWayBack, PackInput, moved_out, new_compression};
use tool_kit::failure::Failure;
use tool_kit::scratch;

use super::packs::WheelPack;
use crate::unpacked::{Spool, Unpacked};
use crate::words::{CODES, of_plan};

/// A library with its device code.
pub(super) struct Joined {
    /// Its place in the temporary file of all.
    pub(super) place: Range<u64>,
    /// The name in packs.
    pub(super) name: String,
    /// `true` if it is the file that was split.
    pub(super) is_original: bool,
    /// Reason why it is another one, if packs note how that was laid out.
    pub(super) changed: Option<NoWayBack>,
}

/// Joins the library at a path in a wheel with its packs; `None` for another file.
pub(super) fn join<'p>(
    (path, host): (&str, &Unpacked),
    (packs, of_packs): (impl IntoIterator<Item = &'p WheelPack>, &'p Spool),
    (compress, max, options): (bool, u64, &EditOptions),
    spool: &mut Spool,
) -> Result<Option<Joined>, Failure> {
    let (reader, size) = host.subject();
    let Some((marker, wrappers)) = moved_out(reader)? else { return Ok(None) };
    let mut inputs: Vec<PackInput<'_>> = Vec::new();
    for pack in packs {
        inputs.extend(pack.of_library(path, &marker, of_packs)?);
    }
    let mut join = Join::new(&marker, &wrappers, inputs).with_max_decompressed(max);
    let name = marker.kernel_name().to_owned();
    if join.used().is_empty() {
        let text = format!("no kernel pack of these wheels has its code, of {name}");
        return Err(Failure::refused(text));
    }
    let mut changed = None;
    if let Some((recipe, expected)) = join.way_back(size) {
        match join.plan_back(&recipe, scratch::file(CODES)?).map_err(of_plan)? {
            Ok(plan) => {
                let mut hash = None;
                let file = Unpacked::rewritten(|out| {
                    hash = Some(plan.write_hashed(reader, out)?);
                    Ok(())
                })?;
                if hash == Some(expected) {
                    let place = spool.add(file)?;
                    return Ok(Some(Joined { place, name, is_original: true, changed }));
                }
                changed = Some(recipe.of_other_hash());
            }
            Err(reason) => changed = Some(reason),
        }
    }
    let compression = join.compression().or_else(|| compress.then(new_compression));
    let plan = join.plan_anew(reader, scratch::file(CODES)?, compression.as_ref(), options);
    let plan = plan.map_err(of_plan)?;
    let file = Unpacked::rewritten(|out| plan.write(reader, out).map(|_| ()))?;
    let place = spool.add(file)?;
    Ok(Some(Joined { place, name, is_original: false, changed }))
}
