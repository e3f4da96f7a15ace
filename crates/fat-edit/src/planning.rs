//! The plan of an edit: its steps, one after the other.

use std::collections::BTreeSet;
use std::io::{Read, Seek};

use byte_parts::{ReadSeek, Source};
use fat_object::FileFormat;

use crate::edit::{BundleEdit, Edit};
use crate::error::{Error, Problem};
use crate::plan::EditPlan;
use crate::planner::Planner;
use crate::survey::EditableFile;
use crate::{check, dispatch, kpack, restore};

fn plan(
    contents: &EditableFile,
    input: &mut dyn ReadSeek,
    edit: &Edit,
) -> Result<EditPlan, Problem> {
    if let Some(finding) = contents.findings.first()
        && !edit.options.allow_findings
    {
        return Err(finding.clone().into());
    }
    if contents.containers.is_empty() {
        return Err(Problem::no_device_code());
    }
    let mut source = Source::new(input)?;
    if source.len() != contents.size {
        return Err(Problem::input_changed());
    }
    if contents.format == FileFormat::Kpack {
        return kpack::plan(contents, &mut source, edit);
    }
    let mut planner = Planner::new(contents, edit)?;
    planner.leave_uneditable()?;
    planner.note_emptied()?;
    let window = 0..contents.size;
    let new = planner.containers(&mut source, &contents.root, &[])?;
    let splices = match &edit.bundles {
        BundleEdit::Compress(_) => {
            restore::lay_out(&mut planner, (&mut source, &window), &new, &plan)?
        }
        _ => dispatch::file(&mut planner, &mut source, &window, &contents.root, &[], &new)?,
    };
    planner.check_done()?;
    planner.note_offload_binaries();
    let images = planner.image_changes();
    let expected = planner.expected();
    let Planner { changes, notes, derived, .. } = planner;
    let mut plan = EditPlan {
        parts: splices,
        derived,
        new_images: edit.new_images.clone(),
        input_size: contents.size,
        containers: changes,
        images,
        notes,
        needs: BTreeSet::new(),
    };
    // The way back from a compressed file is compared with what is expected of it.
    if !edit.unlimited {
        plan.needs = check::check(contents, &mut source, &plan, expected)?;
    }
    Ok(plan)
}

impl EditableFile {
    /// Works out the new file, from headers and sizes. Nothing is written.
    ///
    /// ```
    /// use std::io::Cursor;
    /// use fat_edit::{Change, CompressOptions, Edit, survey};
    /// use fat_object::Options;
    ///
    /// # if ccob::Method::default().codec().is_none() { return Ok(()); }
    /// let id = "hipv4-amdgcn-amd-amdhsa--gfx90a";
    /// let bundle = bundle_format::layout([(id, 5000)], 4096)?.to_vec(&[&[7; 5000]])?;
    /// let mut file = Cursor::new(bundle);
    ///
    /// let surveyed = survey(&mut file, &Options::default())?;
    /// let mut edit = Edit::default();
    /// edit.compress(CompressOptions::default());
    /// let plan = surveyed.plan(&mut file, &edit)?;
    /// assert_eq!(plan.containers()[0].change, Change::Compressed);
    /// assert!(plan.size() < surveyed.size());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Time grows as n log n with sections, symbols, relocations and containers; linked files are scanned as a whole
    /// where bundles move. Memory: headers and tables, and see [the bounds](crate#bounds).
    ///
    /// # Errors
    ///
    /// [`Error`] of any kind but [`Write`](crate::ErrorKind::Write).
    pub fn plan<R: Read + Seek>(&self, mut input: R, edit: &Edit) -> Result<EditPlan, Error> {
        Ok(plan(self, &mut input, edit)?)
    }
}
