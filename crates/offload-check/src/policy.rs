//! The policy, and its text.

use std::collections::BTreeMap;

use device_code::KernelRule;
use device_select::{Device, Version, Wanted};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use crate::values::{Bytes, Percent};

/// A policy: the tables of `offload.toml`.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Policy {
    /// The table `targets`.
    pub targets: Targets,
    /// The table `budget`.
    pub budget: Budget,
    /// The table `kernels`.
    pub kernels: Vec<KernelPolicy>,
    /// The table `needs`.
    pub needs: Needs,
    /// The table `verify`.
    pub verify: Verify,
    /// The table `files`.
    pub files: Files,
}

/// The GPUs that a file must and may have code for.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Targets {
    /// GPUs that each file or package must have code for.
    pub require: Vec<Device>,
    /// The permitted GPUs: each image must be code that one of these can load. Default: none, for images of all.
    pub only: Vec<Wanted>,
}

/// The sizes that a file or package may have.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Budget {
    /// The most bytes of device code, as stored.
    pub device_code: Option<Bytes>,
    /// The most bytes of the file itself.
    pub file: Option<Bytes>,
    /// The most that device code may grow.
    pub growth: Option<Percent>,
    /// The file to compare with.
    pub base: Option<String>,
}

/// A rule that kernels must not hit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelPolicy {
    /// The rule: `vgpr_spills>0`.
    pub rule: KernelRule,
    /// Patterns of the names of kernels that may hit it.
    pub allow: Vec<String>,
}

/// The oldest software that must be able to load all code.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Needs {
    /// NVIDIA's driver.
    pub driver: Option<Version>,
    /// ROCm.
    pub rocm: Option<Version>,
}

/// The checks of `offload verify`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Verify {
    /// `true` if they are.
    pub enabled: bool,
}

/// The treatment of files that are not understood.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Files {
    /// Files of a format that is not read, and that may hold device code.
    pub unknown: Unknown,
}

/// The answer to a file that is not understood.
///
/// Exhaustive: there is nothing between a warning and silence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unknown {
    /// It fails.
    #[default]
    Error,
    /// It is a warning.
    Warning,
    /// It is passed over.
    Allow,
}

/// A text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
#[non_exhaustive]
pub struct Error {
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault.
    pub message: String,
}

/// The tables as they are written.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Tables {
    targets: TargetTable,
    budget: Budget,
    kernels: BTreeMap<Spanned<String>, Exceptions>,
    needs: NeedTable,
    verify: Verify,
    files: Files,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct TargetTable {
    require: Vec<Spanned<String>>,
    only: Vec<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct NeedTable {
    driver: Option<Spanned<String>>,
    rocm: Option<Spanned<String>>,
}

#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Exceptions {
    allow: Vec<String>,
}

/// A value as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    List(Vec<IgnoredAny>),
    Other(IgnoredAny),
}

/// Returns the place and the name of the first table or list that is empty. It would be a rule that is never applied.
fn empty(text: &str) -> Result<Option<(usize, String)>, toml::de::Error> {
    type Table<T> = BTreeMap<Spanned<String>, T>;
    let tables: Table<Table<Written>> = toml::from_str(text)?;
    let found = tables.iter().flat_map(|(name, table)| {
        let lists = table.iter().filter_map(|(key, value)| match value {
            Written::List(list) if list.is_empty() => Some(key),
            Written::List(_) | Written::Other(IgnoredAny) => None,
        });
        lists.chain(table.is_empty().then_some(name))
    });
    let first = found.min_by_key(|name| name.span().start);
    Ok(first.map(|name| (name.span().start, name.get_ref().clone())))
}

impl Policy {
    /// Reads a policy in TOML.
    ///
    /// # Errors
    ///
    /// The text is not TOML, has a key that does not exist, a value that is not understood, or an empty table or list:
    /// [`Error::line`] has the place.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let at = |offset: usize| {
            let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
            1 + before.iter().filter(|byte| **byte == b'\n').count()
        };
        let not_read = |error: toml::de::Error| Error {
            line: at(error.span().map_or(0, |span| span.start)),
            message: error.message().replace('\n', " "),
        };
        let tables: Tables = toml::from_str(text).map_err(not_read)?;
        if let Some((place, name)) = empty(text).map_err(not_read)? {
            let message = format!("'{name}' is empty: expected a rule, or nothing");
            return Err(Error { line: at(place), message });
        }
        let fault = |value: &Spanned<String>, message: String| Error {
            line: at(value.span().start),
            message,
        };
        let require =
            tables.targets.require.iter().map(|text| {
                Device::parse(text.get_ref()).map_err(|why| fault(text, why.to_string()))
            });
        let only = tables.targets.only.iter().map(|text| {
            Wanted::parse_known(text.get_ref()).map_err(|why| fault(text, why.to_string()))
        });
        let kernels = tables.kernels.into_iter().map(|(text, Exceptions { allow })| {
            let rule: KernelRule =
                text.get_ref().parse().map_err(|why| fault(&text, format!("{why}")))?;
            if rule.is_relative() {
                return Err(fault(
                    &text,
                    format!("{rule}: growth needs two files: see budget.growth"),
                ));
            }
            Ok(KernelPolicy { rule, allow })
        });
        let version = |text: Option<Spanned<String>>| {
            let read = |text: Spanned<String>| {
                text.get_ref()
                    .parse::<Version>()
                    .map_err(|why| fault(&text, format!("'{}': {why}", text.get_ref())))
            };
            text.map(read).transpose()
        };
        Ok(Policy {
            targets: Targets {
                require: require.collect::<Result<_, _>>()?,
                only: only.collect::<Result<_, _>>()?,
            },
            budget: tables.budget,
            kernels: kernels.collect::<Result<_, _>>()?,
            needs: Needs {
                driver: version(tables.needs.driver)?,
                rocm: version(tables.needs.rocm)?,
            },
            verify: tables.verify,
            files: tables.files,
        })
    }

    /// Returns what is missing for a rule to be applied: growth is measured against a base.
    #[must_use]
    pub fn missing(&self) -> Option<&'static str> {
        match (&self.budget.growth, &self.budget.base) {
            (Some(_), None) => Some("growth needs base, the file to compare with"),
            (None, Some(_)) => Some("base needs growth, a percentage such as 5%"),
            _ => None,
        }
    }

    /// Returns whether the policy asks for nothing but that files are understood.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Policy { targets, budget, kernels, needs, verify, .. } = self;
        let no_budget =
            budget.device_code.is_none() && budget.file.is_none() && budget.growth.is_none();
        targets.require.is_empty()
            && targets.only.is_empty()
            && no_budget
            && kernels.is_empty()
            && needs.driver.is_none()
            && needs.rocm.is_none()
            && !verify.enabled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_tables_are_read() {
        let policy = Policy::parse(
            r#"
            [targets]
            require = ["gfx942", "RX 7600"]
            only = ["gfx942", "compute_80"]
            [budget]
            device_code = "200M"
            file = 4096
            growth = "2.5 %"
            base = "old.whl"
            [kernels]
            "vgpr_spills>0" = { allow = ["*_debug"] }
            "registers > 128" = {}
            [needs]
            driver = "525"
            rocm = "6.2"
            [verify]
            enabled = true
            [files]
            unknown = "warning"
            "#,
        )
        .unwrap();
        let required: Vec<_> = policy.targets.require.iter().map(Device::name).collect();
        assert_eq!(required, ["gfx942", "gfx1102"]);
        assert_eq!(policy.targets.only.len(), 2);
        assert_eq!(policy.budget.device_code, Some(Bytes(200 << 20)));
        assert_eq!(policy.budget.file, Some(Bytes(4096)));
        assert_eq!(policy.budget.growth, Some(Percent(2.5)));
        assert_eq!(policy.kernels.len(), 2);
        assert_eq!(policy.needs.rocm, Some(Version::new(6, 2)));
        assert!(policy.verify.enabled && policy.files.unknown == Unknown::Warning);
        assert!(!policy.is_empty() && Policy::parse("").unwrap().is_empty());
    }

    #[test]
    fn growth_and_base_are_together() {
        for (text, missing) in [
            ("growth = \"5%\"", Some("growth needs base, the file to compare with")),
            ("base = \"old\"", Some("base needs growth, a percentage such as 5%")),
            ("growth = \"5%\"\nbase = \"old\"", None),
            ("file = 1", None),
        ] {
            let policy = Policy::parse(&format!("[budget]\n{text}\n")).unwrap();
            assert_eq!(policy.missing(), missing, "{text}");
        }
    }

    #[test]
    fn faults_have_the_number_of_their_line() {
        for (text, line, message) in [
            ("[budget]\nfile = 1\nfiles = 2\n", 3, "unknown field `files`"),
            ("\n[budgets]\n", 2, "unknown field `budgets`"),
            ("[budget]\ngrowth = 5\n", 2, "expected a percentage such as \"5%\""),
            ("[budget]\n\nfile = \"big\"\n", 3, "'big' is not a size"),
            ("[targets]\nrequire = [\n\"gfx942\",\n\"gfx9zz\"]\n", 4, ""),
            ("[targets]\nonly = \"gfx942\"\n", 2, "invalid type"),
            (
                "[kernels]\n\"vgprs>1\" = {}\n\"code>+5%\" = {}\n",
                3,
                "code>+5%: growth needs two files",
            ),
            ("[kernels]\n\"vgprs>1\" = { permit = [] }\n", 2, "unknown field `permit`"),
            ("[needs]\nrocm = \"new\"\n", 2, "'new': expected a version"),
            ("[files]\nunknown = \"perhaps\"\n", 2, "unknown variant `perhaps`"),
            ("[verify\n", 1, ""),
            ("[budget]\n\nfile = -1\n", 3, "expected a size such as 4096"),
            ("[budget]\nfile = 1.5\n", 2, "expected a size such as 4096"),
            ("[budget]\ngrowth = 5.5\n", 2, "expected a percentage such as \"5.5%\""),
            ("[targets]\nrequire = [\"gfx942\"]\nonly = []\n", 3, "'only' is empty"),
            ("[targets]\n\nrequire = []\nonly = []\n", 3, "'require' is empty"),
            ("[verify]\nenabled = true\n[kernels]\n", 3, "'kernels' is empty"),
            ("[budget]\nfile = 1\n\n[needs]\n[verify]\n", 4, "'needs' is empty"),
            ("verify.enabled = true\ntargets = {}\n", 2, "'targets' is empty"),
        ] {
            let error = Policy::parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.message.starts_with(message), "{text}: {error}");
            assert!(!error.to_string().contains('\n'), "{error:?}");
        }
    }
}
