// The picture: tiles are buttons, so that a keyboard and a screen reader find them.

const map = document.getElementById("map");
/** The tiles in the picture, and their elements. */
let tiles = [];

/** Draws the rows in the row that is shown. */
function drawMap(view) {
  const [w, h] = [map.clientWidth, map.clientHeight];
  if (w === 0 || h === 0) return;
  tiles = tilesOf(view.found?.tree ?? view.node, view.measure, { x: 0, y: 0, w, h });
  tiles.forEach((tile) => { tile.element = tileElement(tile, view, w, h); });
  map.replaceChildren(...tiles.map((tile) => tile.element));
  if (tiles.length > 0) tiles[0].element.tabIndex = 0;
  else map.replaceChildren(make("p", emptyText(view), { class: "empty" }));
  map.setAttribute("aria-label", `Treemap of ${nameOf(view.node, view.gpus)}: ${tiles.length} tiles. Enter opens a tile, Escape goes up, arrows go to the next tile.`);
}

function emptyText({ node, measure, found }) {
  if (found !== null && found.top.length === 0) return "No name contains this text.";
  const isLeaf = node.children.length === 0;
  return isLeaf ? "Nothing smaller is known of this." : measure === "stored" ? "No bytes of their own in the file: see Uncompressed." : "No bytes.";
}

function tileElement({ node, box, depth, isAround }, view, w, h) {
  const element = make("button", "", { type: "button", tabindex: "-1", class: `tile ${colourOf(node)}` });
  element.classList.toggle("around", isAround);
  element.classList.toggle("more", node.type === "more" || (node.type === "kind" && node.gpu !== undefined));
  element.classList.toggle("gone", isGone(node, view));
  setHue(element, node, view);
  const part = (length, whole) => `${(100 * length) / whole}%`;
  Object.assign(element.style, { left: part(box.x, w), top: part(box.y, h), width: part(box.w, w), height: part(box.h, h) });
  const [name, amount] = [shortName(node, view.gpus), size(node[view.measure])];
  element.setAttribute("aria-label", `${nameOf(node, view.gpus)}, ${amount}, ${percent(node[view.measure], view.node[view.measure])}, level ${depth}`);
  element.append(...labels(node, name, amount, box, isAround));
  return element;
}

/** The width of a character, about. */
const CHARACTER = 6.9;

/** Returns the name and the size of a tile, as far as they have room. */
function labels(node, name, amount, box, isAround) {
  const room = Math.floor((box.w - 12) / CHARACTER);
  const lines = Math.floor((box.h - 4) / 15);
  if (room < 3 || lines < 1) return [];
  const sized = make("span", amount, { class: "size" });
  if (isAround) {
    const isWide = room >= Math.min(name.length, 14) + amount.length + 2;
    const text = make("span", fitting(node, name, isWide ? room - amount.length - 2 : room), { class: "name" });
    return isWide ? [text, sized] : [text];
  }
  const isFitting = name.length <= room;
  // Part of a short name says nothing.
  if (!isFitting && room < 8) return [];
  const text = make("span", fitting(node, name, isFitting || lines < 3 ? room : room * 2), { class: "name" });
  text.classList.toggle("long", !isFitting && lines >= 3);
  return amount.length <= room && lines >= (isFitting ? 2 : 4) ? [text, sized] : [text];
}

/** Returns a name of at most so many characters: names of files lose their middle, since the ends differ. */
function fitting(node, name, room) {
  if (name.length <= room || !["file", "package", "member"].includes(node.type)) return name;
  const half = Math.max(Math.floor((room - 1) / 2), 1);
  return `${name.slice(0, half)}…${name.slice(name.length - half)}`;
}

/** Sets the colour of an element to that of the GPU of a row. */
function setHue(element, node, view) {
  if (node.gpu === undefined) return;
  const colour = view.colours[node.gpu];
  element.style.setProperty("--hue", colour.hue);
  element.classList.toggle("odd", colour.isOdd);
}

/** Returns whether a row is code that `offload thin` would remove for the chosen GPU. */
function isGone(node, view) {
  const kept = view.kept.get(node.holder);
  return kept !== undefined && node.gpu !== undefined && !kept.has(node.gpu);
}

function tileAt(element) {
  const found = element?.closest?.(".tile");
  return tiles.find((tile) => tile.element === found);
}

/** Returns the tile to which an arrow leads: the nearest one of the same level, else of any. */
function neighbour(from, key) {
  const isAcross = key === "ArrowLeft" || key === "ArrowRight";
  const sign = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  const middle = ({ box }) => ({ x: box.x + box.w / 2, y: box.y + box.h / 2 });
  const here = middle(from);
  const distance = (tile) => {
    const there = middle(tile);
    const [along, aside] = isAcross ? [there.x - here.x, there.y - here.y] : [there.y - here.y, there.x - here.x];
    return along * sign <= 1 ? Infinity : Math.abs(along) + 2 * Math.abs(aside);
  };
  const nearest = (among) => among.reduce((best, tile) => (distance(tile) < distance(best) ? tile : best), from);
  const same = nearest(tiles.filter((tile) => tile.depth === from.depth));
  return same === from ? nearest(tiles) : same;
}

/** Moves the focus to a tile. */
function focusTile(tile) {
  tiles.forEach((one) => { one.element.tabIndex = one === tile ? 0 : -1; });
  tile.element.focus();
}

function onMapKey(event, open) {
  const tile = tileAt(event.target);
  if (tile === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key.startsWith("Arrow")) focusTile(neighbour(tile, event.key));
  else if (event.key === "Home") focusTile(tiles[0]);
  else if (event.key === "End") focusTile(tiles[tiles.length - 1]);
  else if (event.key === "Enter" || event.key === " ") open(tile.node);
  else return;
  event.preventDefault();
}

/** Shows the way from a tile to the picture of what is in it, or back, unless motion is unwanted. */
function zoom(box) {
  if (box === undefined || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const [w, h] = [map.clientWidth, map.clientHeight];
  const from = `translate(${box.x}px, ${box.y}px) scale(${box.w / w}, ${box.h / h})`;
  map.animate([{ transform: from, opacity: 0.4 }, { transform: "none", opacity: 1 }], { duration: 180, easing: "ease-out" });
}
