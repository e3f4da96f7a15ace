//! The bound of a page: the largest rows, and sums of the others.

use std::cmp::Reverse;

use device_code::demangled;

use crate::data::{Node, NodeKind};

/// The most rows of a page. Rows of kinds of bytes and sums of smaller rows are not counted: there are few in each row.
pub const MOST_ROWS: usize = 10_000;

/// The most characters of a name; longer ones lose their middle.
pub const MOST_OF_NAME: usize = 300;

/// Keeps the largest rows of trees, each with the rows around it, and sums the others in rows of the kind
/// [`More`](NodeKind::More). Rows of the same parent are in order of their size.
pub(crate) fn fold(mut trees: Vec<Node>) -> Vec<Node> {
    let mut weights = Vec::new();
    trees.iter().for_each(|tree| weigh(tree, &mut weights));
    let mut order: Vec<usize> = (0..weights.len()).collect();
    // A row is not smaller than those in it, and comes before them; what is in rows of weight 0 is counted apart, too.
    order.sort_by_key(|&at| (Reverse(weights.get(at)), at));
    let mut is_kept = vec![false; weights.len()];
    for at in order.into_iter().take(MOST_ROWS) {
        if let Some(is_kept) = is_kept.get_mut(at) {
            *is_kept = true;
        }
    }
    prune(&mut trees, &mut is_kept.into_iter());
    trees
}

/// Returns the larger one of the sizes of a row: both are shown.
fn weight(node: &Node) -> u64 {
    node.stored.max(node.plain)
}

/// Returns whether a row stays, however small it is, if the row around it does.
fn is_counted_apart(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Kind | NodeKind::Host | NodeKind::More)
}

/// Adds the weights of a tree, in the order of [`prune`].
fn weigh(node: &Node, weights: &mut Vec<u64>) {
    weights.push(if is_counted_apart(node) { 0 } else { weight(node) });
    node.children.iter().for_each(|child| weigh(child, weights));
}

/// Sums the rows that are not kept.
fn prune(nodes: &mut Vec<Node>, is_kept: &mut impl Iterator<Item = bool>) {
    let mut more = Node { kind: NodeKind::More, ..Node::default() };
    nodes.retain_mut(|node| {
        let stays = is_kept.next() == Some(true) || is_counted_apart(node);
        let stays = stays && node.kind != NodeKind::More;
        prune(&mut node.children, is_kept);
        if !stays {
            more.absorb(node);
            more.gpu = node.gpu.filter(|_| node.kind != NodeKind::Gpu);
        }
        stays
    });
    nodes.sort_by(|a, b| {
        let key = |node: &Node| (Reverse(node.stored), Reverse(node.plain), node.kind);
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    for node in nodes.iter_mut() {
        let name = match node.kind {
            NodeKind::Function => demangled(node.name.as_bytes()).into_owned(),
            _ => std::mem::take(&mut node.name),
        };
        node.name = shortened(name);
    }
    if more.count > 0 {
        nodes.push(more);
    }
}

/// Returns a name without its middle if it is long.
pub(crate) fn shortened(name: String) -> String {
    let length = name.chars().count();
    if length <= MOST_OF_NAME {
        return name;
    }
    let half = MOST_OF_NAME / 2;
    let start = name.chars().take(half);
    let end = name.chars().skip(length - half + 1);
    start.chain(['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, stored: u64) -> Node {
        let (name, kind) = (name.to_owned(), NodeKind::Function);
        Node { name, kind, stored, plain: stored, gpu: Some(0), ..Node::default() }
    }

    #[test]
    fn the_largest_rows_stay_and_the_others_are_summed() {
        let number = MOST_ROWS as u64 + 5;
        let children: Vec<_> = (0..number).map(|at| function(&format!("f{at}"), at)).collect();
        let sum = (0..number).sum();
        let gpu =
            Node { kind: NodeKind::Gpu, stored: sum, plain: sum, children, ..Node::default() };
        let folded = fold(vec![gpu]);
        let [gpu] = &folded[..] else { panic!("{} rows", folded.len()) };
        // The GPU is a row, too.
        assert_eq!(gpu.children.len(), MOST_ROWS);
        let (first, last) = (gpu.children.first().unwrap(), gpu.children.last().unwrap());
        assert_eq!((&*first.name, first.stored), ("f10004", number - 1));
        assert_eq!((last.kind, last.count, last.stored), (NodeKind::More, 6, 15));
        assert_eq!(last.gpu, Some(0));
        assert_eq!(gpu.children.iter().map(|child| child.stored).sum::<u64>(), sum);
    }

    #[test]
    fn long_names_lose_their_middle() {
        let name = format!("start{}end", "ü".repeat(MOST_OF_NAME));
        let short = shortened(name);
        assert_eq!(short.chars().count(), MOST_OF_NAME);
        assert!(short.starts_with("startü") && short.ends_with("üend") && short.contains('…'));
        assert_eq!(shortened("ü".repeat(MOST_OF_NAME)).chars().count(), MOST_OF_NAME);
    }
}
