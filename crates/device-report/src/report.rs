//! The tree of a report, from accounts.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use device_account::{Account, Amount, Kind, PackageShare, apportion};
use serde::Serialize;

use crate::data::{Gpu, Node, NodeKind, Note, Thin};
use crate::fold::{self, MOST_ROWS};
use crate::page;
use crate::quote::quoted;
use crate::thin;

/// The version of the data: it grows when a reader of the last one would be wrong.
const VERSION: u32 = 1;

/// A file or a package, with the accounts of the files in it.
#[derive(Clone, Debug)]
pub struct File<'a> {
    name: &'a str,
    accounts: &'a [(String, Account)],
    share: Option<&'a PackageShare>,
    argument: Option<String>,
    uneditable: Option<String>,
}

impl<'a> File<'a> {
    /// Creates a file with its account; several if more files belong to it.
    #[must_use]
    pub fn new(name: &'a str, accounts: &'a [(String, Account)]) -> Self {
        File { name, accounts, share: None, argument: None, uneditable: None }
    }

    /// Makes it a package, whose members have these bytes, in the order of the accounts. Default: it is a file.
    #[must_use]
    pub fn with_share(self, share: &'a PackageShare) -> Self {
        File { share: Some(share), ..self }
    }

    /// Sets the path for command lines. Without one there are none.
    #[must_use]
    pub fn with_path(self, path: &[u8]) -> Self {
        File { argument: Some(quoted(path)), ..self }
    }

    /// Sets the reason why `offload thin` cannot change it. Default: it can.
    #[must_use]
    pub fn with_uneditable(self, why: String) -> Self {
        File { uneditable: Some(why), ..self }
    }

    /// Returns the accounts, each with its bytes in the file.
    fn parts(&self) -> impl Iterator<Item = (&'a str, &'a Account, u64)> {
        let stored = self.share.map(|share| &share.members);
        self.accounts.iter().enumerate().map(move |(at, (name, account))| {
            let of_package = stored.map(|stored| stored.get(at).copied().unwrap_or(0));
            (&**name, account, of_package.unwrap_or(account.size()))
        })
    }
}

/// The data of a page.
#[derive(Debug, Serialize)]
pub struct Report {
    version: u32,
    tool: String,
    most_rows: usize,
    /// Bytes that nothing describes, or that are damaged.
    not_understood: Amounts,
    /// `true` if bytes of compressed data were apportioned to what is in it.
    is_apportioned: bool,
    gpus: Vec<Gpu>,
    notes: Vec<Note>,
    files: Vec<Node>,
}

/// An amount as the data has it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Amounts {
    stored: u64,
    plain: u64,
}

impl Report {
    /// Makes the data of files, with notes about them.
    #[must_use]
    pub fn new(files: &[File<'_>], notes: Vec<Note>) -> Self {
        let mut gpus = Gpus::default();
        let mut trees: Vec<Node> = files.iter().map(|file| tree(file, &mut gpus)).collect();
        let names = gpus.largest(&trees);
        let wanted: BTreeMap<usize, _> = names
            .iter()
            .filter_map(|&at| Some((at, thin::wanted(gpus.names.get(at)?)?)))
            .collect();
        for (file, tree) in files.iter().zip(&mut trees) {
            let mut of_file = of_gpus(tree);
            of_file.retain(|gpu, _| wanted.contains_key(gpu));
            for gpu in of_file.into_keys() {
                let mut thin = Thin { gpu, ..Thin::default() };
                for (_, account, stored) in file.parts() {
                    if let Some(wanted) = wanted.get(&gpu) {
                        thin::add(&mut thin, wanted.clone(), account, stored, &gpus.by_name);
                    }
                }
                tree.thin.push(thin);
            }
        }
        let mut not_understood = Amounts::default();
        trees.iter().for_each(|tree| add_not_understood(tree, &mut not_understood));
        let all = files.iter().flat_map(File::parts);
        let is_apportioned = all.into_iter().any(|(_, account, stored)| {
            account.is_apportioned() || stored != account.size()
        });
        let is_askable = |at: &usize| wanted.contains_key(at);
        let gpus = gpus.names.into_iter().enumerate().map(|(at, name)| Gpu {
            argument: Some(quoted(name.as_bytes())).filter(|_| is_askable(&at)),
            name: fold::shortened(name),
        });
        Report {
            version: VERSION,
            tool: format!("offload {}", env!("CARGO_PKG_VERSION")),
            most_rows: MOST_ROWS,
            not_understood,
            is_apportioned,
            gpus: gpus.collect(),
            notes,
            files: fold::fold(trees),
        }
    }

    /// Returns the rows of the files: all that they consist of.
    #[must_use]
    pub fn files(&self) -> &[Node] {
        &self.files
    }

    /// Returns the GPUs.
    #[must_use]
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Writes the page.
    ///
    /// # Errors
    ///
    /// An error of writing.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        page::write(out, &serde_json::to_string(self)?)
    }

    /// Writes the data alone, as JSON.
    ///
    /// # Errors
    ///
    /// An error of writing.
    pub fn write_data(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(out, self).map_err(io::Error::from)
    }
}

/// The GPUs of all files, in the order in which they are found.
#[derive(Debug, Default)]
struct Gpus {
    names: Vec<String>,
    by_name: HashMap<String, usize>,
}

impl Gpus {
    fn index(&mut self, name: String) -> usize {
        let next = self.names.len();
        *self.by_name.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    /// Returns the largest ones.
    fn largest(&self, trees: &[Node]) -> Vec<usize> {
        let mut sums = vec![0_u128; self.names.len()];
        for (gpu, sum) in trees.iter().flat_map(of_gpus) {
            if let Some(all) = sums.get_mut(gpu) {
                *all += u128::from(sum);
            }
        }
        let mut order: Vec<usize> = (0..sums.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(sums.get(at)), at));
        order.truncate(thin::MOST_CHOICES);
        order
    }
}

/// Returns the GPUs of a tree, with their bytes.
fn of_gpus(tree: &Node) -> BTreeMap<usize, u64> {
    let members = tree.children.iter().flat_map(|child| match child.kind {
        NodeKind::Member => child.children.iter().collect(),
        _ => vec![child],
    });
    let mut sums = BTreeMap::new();
    for node in members.filter(|node| node.kind == NodeKind::Gpu) {
        if let Some(gpu) = node.gpu {
            let sum: &mut u64 = sums.entry(gpu).or_default();
            // Files with holes may be of any size: only the order of these sums matters.
            *sum = sum.saturating_add(node.stored.max(node.plain));
        }
    }
    sums
}

/// Returns the tree of a file.
fn tree(file: &File<'_>, gpus: &mut Gpus) -> Node {
    let (name, argument) = (file.name.to_owned(), file.argument.clone());
    let mut node = Node { name, argument, uneditable: file.uneditable.clone(), ..Node::default() };
    if let Some(share) = file.share {
        node.kind = NodeKind::Package;
        for (name, account, stored) in file.parts() {
            let path = name.strip_prefix(file.name).and_then(|path| path.strip_prefix(':'));
            node.children.push(member(path.unwrap_or(name), account, stored, gpus));
        }
        for (name, amount) in &share.rest {
            node.add_kind(name, *amount);
        }
    } else {
        match &file.accounts {
            [(_, only)] => node.children = member("", only, only.size(), gpus).children,
            several => several.iter().for_each(|(name, account)| {
                node.children.push(member(name, account, account.size(), gpus));
            }),
        }
    }
    node.sum();
    node
}

/// Returns the tree of an account.
fn member(name: &str, account: &Account, stored: u64, gpus: &mut Gpus) -> Node {
    let leaves = leaves(account, gpus);
    let weights: Vec<u64> = leaves.values().map(|amount| amount.stored).collect();
    let mut groups: BTreeMap<(NodeKind, Option<usize>), Node> = BTreeMap::new();
    let mut member = Node { name: name.to_owned(), kind: NodeKind::Member, ..Node::default() };
    for ((leaf, amount), stored) in leaves.into_iter().zip(apportion(stored, &weights)) {
        let amount = Amount::new(stored, amount.plain);
        let Leaf { group, gpu, kind, name } = leaf;
        let node = Node { name, kind, gpu, ..Node::of(amount) };
        let Some(group) = group else {
            member.add(node);
            continue;
        };
        let name = gpu.and_then(|gpu| gpus.names.get(gpu)).cloned();
        let parent = groups.entry((group, gpu)).or_insert_with(|| Node {
            name: name.unwrap_or_else(|| "host".to_owned()),
            kind: group,
            gpu,
            ..Node::default()
        });
        parent.add(node);
    }
    for image in account.images() {
        let gpu = gpus.index(image.target());
        if let Some(group) = groups.get_mut(&(NodeKind::Gpu, Some(gpu))) {
            group.count += 1;
        }
    }
    for (_, mut group) in groups {
        group.sum();
        member.add(group);
    }
    member.sum();
    member
}

/// The name of bytes in an account: equal names are one row.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Leaf {
    group: Option<NodeKind>,
    gpu: Option<usize>,
    kind: NodeKind,
    name: String,
}

/// Returns the rows of an account: functions of GPUs, and kinds of the other bytes.
fn leaves(account: &Account, gpus: &mut Gpus) -> BTreeMap<Leaf, Amount> {
    let mut leaves: BTreeMap<Leaf, Amount> = BTreeMap::new();
    for image in account.images() {
        let gpu = gpus.index(image.target());
        let mut add = |kind, name: &str, amount| {
            let (group, gpu, name) = (Some(NodeKind::Gpu), Some(gpu), name.to_owned());
            *leaves.entry(Leaf { group, gpu, kind, name }).or_default() += amount;
        };
        for function in &image.functions {
            add(NodeKind::Function, &function.name, function.amount);
        }
        image.rest.iter().for_each(|(kind, amount)| add(NodeKind::Kind, kind.as_str(), *amount));
    }
    for row in account.rest() {
        let group = (row.target == "host").then_some(NodeKind::Host);
        let leaf = Leaf { group, gpu: None, kind: NodeKind::Kind, name: row.name };
        *leaves.entry(leaf).or_default() += row.amount;
    }
    leaves
}

/// Adds the bytes of a tree that are not understood.
fn add_not_understood(node: &Node, sum: &mut Amounts) {
    if node.kind == NodeKind::Kind && node.name == Kind::NotUnderstood.as_str() {
        sum.stored += node.stored;
        sum.plain += node.plain;
    }
    node.children.iter().for_each(|child| add_not_understood(child, sum));
}

impl Node {
    fn of(amount: Amount) -> Self {
        Node { stored: amount.stored, plain: amount.plain, ..Node::default() }
    }

    /// Adds a row, unless it is nothing.
    fn add(&mut self, child: Node) {
        if child.stored > 0 || child.plain > 0 {
            self.children.push(child);
        }
    }

    fn add_kind(&mut self, name: &str, amount: Amount) {
        self.add(Node { name: name.to_owned(), kind: NodeKind::Kind, ..Node::of(amount) });
    }

    /// Sets its bytes to the sum of its children.
    fn sum(&mut self) {
        let children = self.children.iter().map(|child| Amount::new(child.stored, child.plain));
        let Amount { stored, plain, .. } = children.sum();
        (self.stored, self.plain) = (stored, plain);
    }
}
