//! The tree of a file, from its accounts.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use device_account::{Account, Amount, apportion};

use crate::data::{Node, NodeKind};
use crate::file::{File, Part};
use crate::quote::Shell;

/// The most GPUs of a page, the largest first; the others are summed.
pub const MOST_GPUS: usize = 200;

/// The GPUs of all files.
#[derive(Debug, Default)]
pub(crate) struct Gpus {
    pub(crate) names: Vec<String>,
    pub(crate) by_name: HashMap<String, usize>,
}

impl Gpus {
    fn index(&mut self, name: String) -> usize {
        let next = self.names.len();
        *self.by_name.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        })
    }

    /// Orders the GPUs by their size in all trees, and sums the rows of all but the largest [`MOST_GPUS`].
    pub(crate) fn ranked(self, trees: &mut [Node]) -> Self {
        let mut sums = vec![0_u128; self.names.len()];
        for (gpu, sum) in trees.iter().flat_map(of_gpus) {
            if let Some(all) = sums.get_mut(gpu) {
                *all += u128::from(sum);
            }
        }
        let mut order: Vec<usize> = (0..sums.len()).collect();
        order.sort_by_key(|&at| (Reverse(sums.get(at)), at));
        order.truncate(MOST_GPUS);
        let mut ranks = vec![None; sums.len()];
        let mut ranked = Gpus::default();
        for at in order {
            if let (Some(rank), Some(name)) = (ranks.get_mut(at), self.names.get(at)) {
                *rank = Some(ranked.index(name.clone()));
            }
        }
        trees.iter_mut().for_each(|tree| tree.rank(&ranks));
        ranked
    }
}

/// Returns the GPUs of a tree, with their bytes.
pub(crate) fn of_gpus(tree: &Node) -> BTreeMap<usize, u64> {
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

/// Returns the tree of a file. Its path is a word of this shell.
pub(crate) fn tree(file: &File<'_>, shell: Shell, gpus: &mut Gpus) -> Node {
    let argument = file.path.as_deref().and_then(|path| shell.quoted(path));
    let name = file.name.to_owned();
    let mut node = Node { name, argument, uneditable: file.uneditable.clone(), ..Node::default() };
    if let Some(share) = file.share {
        node.kind = NodeKind::Package;
        for Part { path, account, stored, .. } in file.parts() {
            node.children.push(member(path, account, stored, gpus));
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

/// Returns the tree of an account with `stored` bytes in its file: they are apportioned to GPUs, as in rows by target, and then in each.
fn member(name: &str, account: &Account, stored: u64, gpus: &mut Gpus) -> Node {
    let mut member = Node { name: name.to_owned(), kind: NodeKind::Member, ..Node::default() };
    let groups = groups(account, gpus);
    let weights: Vec<u64> = groups.iter().map(Group::stored).collect();
    for (group, stored) in groups.into_iter().zip(apportion(stored, &weights)) {
        let (kind, gpu, count) = (group.kind, group.gpu, group.images);
        let children = group.children(stored);
        let Some(kind) = kind else {
            children.for_each(|child| member.add(child));
            continue;
        };
        let name = gpu.and_then(|gpu| gpus.names.get(gpu)).map_or("host", |name| name);
        let mut node = Node { name: name.to_owned(), kind, gpu, count, ..Node::default() };
        children.for_each(|child| node.add(child));
        node.sum();
        member.add(node);
    }
    member.sum();
    member
}

/// The bytes of a GPU, of the host, or of no target.
#[derive(Debug, Default)]
struct Group {
    kind: Option<NodeKind>,
    gpu: Option<usize>,
    images: u64,
    /// Bytes by what they are: functions, and kinds of the others.
    leaves: BTreeMap<(NodeKind, String), Amount>,
}

impl Group {
    fn add(&mut self, kind: NodeKind, name: &str, amount: Amount) {
        *self.leaves.entry((kind, name.to_owned())).or_default() += amount;
    }

    fn stored(&self) -> u64 {
        let sum: Amount = self.leaves.values().copied().sum();
        sum.stored
    }

    /// Returns its rows, with `stored` bytes in the file.
    fn children(self, stored: u64) -> impl Iterator<Item = Node> {
        let weights: Vec<u64> = self.leaves.values().map(|amount| amount.stored).collect();
        let gpu = self.gpu;
        let leaves = self.leaves.into_iter().zip(apportion(stored, &weights));
        leaves.map(move |(((kind, name), Amount { plain, .. }), stored)| Node {
            name,
            kind,
            gpu,
            ..Node::of(Amount::new(stored, plain))
        })
    }
}

/// Returns the bytes of an account by target, in the order of its rows.
fn groups(account: &Account, gpus: &mut Gpus) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut of_gpu: HashMap<usize, usize> = HashMap::new();
    for image in account.images() {
        let gpu = gpus.index(image.target());
        let at = *of_gpu.entry(gpu).or_insert(groups.len());
        if at == groups.len() {
            let kind = Some(NodeKind::Gpu);
            groups.push(Group { kind, gpu: Some(gpu), ..Group::default() });
        }
        let Some(group) = groups.get_mut(at) else { continue };
        group.images += 1;
        for function in &image.functions {
            group.add(NodeKind::Function, &function.name, function.amount);
        }
        for (kind, amount) in &image.rest {
            group.add(NodeKind::Kind, kind.as_str(), *amount);
        }
    }
    for row in account.rest() {
        let kind = (row.target == "host").then_some(NodeKind::Host);
        let known = groups.iter().position(|group| group.gpu.is_none() && group.kind == kind);
        let at = known.unwrap_or(groups.len());
        if known.is_none() {
            groups.push(Group { kind, ..Group::default() });
        }
        if let Some(group) = groups.get_mut(at) {
            group.add(NodeKind::Kind, &row.name, row.amount);
        }
    }
    groups
}

impl Node {
    /// Gives rows of GPUs their ranks, and sums the rows of GPUs without one.
    fn rank(&mut self, ranks: &[Option<usize>]) {
        let mut more = Node { kind: NodeKind::More, ..Node::default() };
        self.children.retain_mut(|child| {
            let rank = child.gpu.map(|gpu| ranks.get(gpu).copied().flatten());
            let stays = rank != Some(None);
            if stays {
                child.gpu = rank.flatten();
                child.rank(ranks);
            } else {
                more.absorb(child);
            }
            stays
        });
        self.children.extend(Some(more).filter(|more| more.count > 0));
    }

    /// Adds a row to a sum of smaller rows.
    pub(crate) fn absorb(&mut self, row: &Node) {
        self.stored = self.stored.saturating_add(row.stored);
        self.plain = self.plain.saturating_add(row.plain);
        self.count += if row.kind == NodeKind::More { row.count } else { 1 };
    }

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
