// Where the rectangles of a treemap lie. Knows no document.

/**
 * Divides a box among amounts, the largest first, into boxes that are as square as can be: rows along the shorter side
 * (Bruls, Huizing and van Wijk: Squarified Treemaps, 2000).
 */
function squarify(amounts, { x, y, w, h }) {
  const boxes = [];
  let left = amounts.reduce((sum, amount) => sum + amount, 0);
  while (boxes.length < amounts.length && left > 0) {
    const isWide = w >= h;
    const [side, area] = [isWide ? h : w, w * h];
    const start = boxes.length;
    let [end, row, worst] = [start, 0, Infinity];
    for (; end < amounts.length; end += 1) {
      const sum = row + amounts[end];
      const depth = (area * sum) / left / side;
      const length = (amount) => (side * amount) / sum;
      const next = Math.max(length(amounts[start]) / depth, depth / length(amounts[end]));
      if (end > start && !(next <= worst)) break;
      [row, worst] = [sum, next];
    }
    const depth = ((isWide ? w : h) * row) / left;
    let at = isWide ? y : x;
    for (const amount of amounts.slice(start, end)) {
      const length = (side * amount) / row;
      boxes.push(isWide ? { x, y: at, w: depth, h: length } : { x: at, y, w: length, h: depth });
      at += length;
    }
    if (isWide) [x, w] = [x + depth, Math.max(w - depth, 0)];
    else [y, h] = [y + depth, Math.max(h - depth, 0)];
    left -= row;
  }
  // Sums of very large numbers are not exact: what remains has no area.
  while (boxes.length < amounts.length) boxes.push({ x, y, w: 0, h: 0 });
  return boxes;
}

/** The height of a name above the tiles in a tile, and the space around tiles. */
const HEADING = 20;
const GAP = 2;
/** The smallest area of a tile, and the smallest tile that shows what is in it. */
const SMALLEST_AREA = 60;
const SMALLEST_AROUND = { w: 44, h: 40 };
/** The most tiles of a picture. */
const MOST_TILES = 2500;

/** Returns so many rows in a row that have room in a box, the largest first, and one for all others. */
function withRoom(node, measure, box, most) {
  const children = largest(node, measure);
  const area = (child) => (child[measure] / node[measure]) * box.w * box.h;
  const isSmall = (child, at) => at >= most || child.type === "more" || area(child) < SMALLEST_AREA;
  const small = children.filter(isSmall);
  if (small.length < 2) return children;
  const sum = (of) => small.reduce((all, child) => all + of(child), 0);
  const all = {
    type: "more", name: "", parent: node, file: node.file, holder: node.holder, children: [], gpu: node.gpu,
    stored: sum((child) => child.stored), plain: sum((child) => child.plain),
    count: rowsOf(small),
  };
  return [...children.filter((child, at) => !isSmall(child, at)), all].sort((a, b) => b[measure] - a[measure]);
}

/** Returns the tiles of a row in a box, from outside in: each with its row, box and depth. The row itself has none. */
function tilesOf(root, measure, box) {
  for (let most = MOST_TILES; ; most /= 2) {
    const tiles = tilesWith(most, root, measure, box);
    if (tiles.length <= MOST_TILES) return tiles;
  }
}

/** Returns these tiles, at most so many for each row; only some if they are too many. */
function tilesWith(most, root, measure, box) {
  const tiles = [];
  let places = [{ node: root, box, depth: 1 }];
  while (places.length > 0 && tiles.length <= MOST_TILES) {
    const next = [];
    for (const { node, box: around, depth } of places) {
      const children = withRoom(node, measure, around, most);
      const boxes = squarify(children.map((child) => child[measure]), around);
      for (const [at, child] of children.entries()) {
        const { x, y, w, h } = boxes[at];
        const inner = { x: x + GAP / 2, y: y + GAP / 2, w: w - GAP, h: h - GAP };
        if (inner.w < 1 || inner.h < 1) continue;
        const isAround = child.children.length > 0 && inner.w >= SMALLEST_AROUND.w && inner.h >= SMALLEST_AROUND.h;
        tiles.push({ node: child, box: inner, depth, isAround });
        const room = { x: inner.x + GAP, y: inner.y + HEADING, w: inner.w - 2 * GAP, h: inner.h - HEADING - GAP };
        if (isAround) next.push({ node: child, box: room, depth: depth + 1 });
      }
    }
    places = next;
  }
  return tiles;
}
