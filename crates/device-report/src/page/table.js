// The table: the same rows as the picture, with numbers.

const table = document.querySelector("#rows table");
/** The rows that are shown of one row, until more are asked for. */
const STEP = 100;
const COLUMNS = [
  { key: "name", title: "Name", isText: true },
  { key: "size", title: "Size" },
  { key: "share", title: "Share" },
  { key: "plain", title: "Uncompressed" },
];
/** The rows that are open, and how many rows of a row are shown. */
const opened = new Set();
const limits = new Map();

/** The column and the direction by which rows are sorted. */
const sorting = { key: "size", isUp: false };

/** Draws the rows in the row that is shown, or the ones that are sought. */
function drawTable(view) {
  const other = view.measure === "stored" ? "plain" : "stored";
  COLUMNS[3].title = other === "plain" ? "Uncompressed" : "In the file";
  const heads = COLUMNS.map((column) => headElement(column, view));
  table.tHead.rows[0].replaceChildren(...heads);
  const rows = [];
  const top = view.found === null ? view.node.children : view.found.top;
  const whole = view.node[view.measure];
  const add = (node, of, level) => {
    rows.push(rowElement(node, level, of, whole, other, view));
    if (opened.has(node)) addAll(node, node.children, level + 1);
  };
  const addAll = (around, children, level) => {
    const sorted = children.filter((child) => child.stored > 0 || child.plain > 0).sort(order(view));
    const limit = limits.get(around) ?? STEP;
    sorted.slice(0, limit).forEach((child, at) => add(child, [at + 1, sorted.length], level));
    if (sorted.length > limit) rows.push(moreElement(around, sorted.length - limit, level, view));
  };
  addAll(view.found ?? view.node, top, 1);
  table.tBodies[0].replaceChildren(...rows);
  const sum = (measure) => top.reduce((all, node) => all + node[measure], 0);
  const foot = [sum(view.measure), sum(other)];
  table.tFoot.replaceChildren(footElement(view, top.length, foot, whole));
  table.caption.classList.toggle("hidden", view.found === null);
  table.caption.textContent = view.found === null ? `What is in ${nameOf(view.node, view.gpus)}` : `Names with “${shown(view.query)}”. Smaller rows that the page has as a sum are not sought.`;
  if (rows.length > 0) rows[0].tabIndex = 0;
}

/** Returns the order of rows. Sums of smaller rows are last. */
function order(view) {
  const other = view.measure === "stored" ? "plain" : "stored";
  const by = { name: null, size: view.measure, share: view.measure, plain: other }[sorting.key];
  const compare = (a, b) => {
    if (by === null) return compareNames(nameOf(a, view.gpus), nameOf(b, view.gpus));
    return a[by] - b[by] || a[other] - b[other];
  };
  const isSum = (node) => Number(node.type === "more");
  return (a, b) => isSum(a) - isSum(b) || (sorting.isUp ? compare(a, b) : compare(b, a));
}

function headElement({ key, title, isText }, view) {
  const head = make("th", "", { scope: "col", class: key });
  const button = make("button", title, { type: "button", title: `Sort by ${title.toLowerCase()}` });
  const isSorted = sorting.key === key;
  if (isSorted) head.setAttribute("aria-sort", sorting.isUp ? "ascending" : "descending");
  button.addEventListener("click", () => {
    sorting.isUp = isSorted ? !sorting.isUp : isText === true;
    sorting.key = key;
    drawTable(view);
    table.querySelector(`thead th.${key} button`).focus();
  });
  head.append(button);
  return head;
}

function rowElement(node, level, [at, of], whole, other, view) {
  const row = make("tr", "", { "aria-level": level, "aria-posinset": at, "aria-setsize": of, tabindex: "-1" });
  row.node = node;
  const isAround = node.children.length > 0;
  if (isAround) row.setAttribute("aria-expanded", opened.has(node));
  row.classList.toggle("gone", isGone(node, view));
  const name = make("td", "", { class: "name" });
  const inner = make("div", "", { class: "cell" });
  inner.style.setProperty("--level", level - 1);
  inner.append(make("span", "", { class: isAround ? "fold" : "fold none", "aria-hidden": "true" }));
  const swatch = make("span", "", { class: `swatch ${colourOf(node)}`, "aria-hidden": "true" });
  setHue(swatch, node, view);
  const text = view.found === null || level > 1 ? shortName(node, view.gpus) : nameOf(node, view.gpus);
  inner.append(swatch, make("span", text, { class: "text", title: nameOf(node, view.gpus) }));
  if (view.found !== null && level === 1) inner.lastChild.append(make("small", placeOf(node, view)));
  name.append(inner);
  const amount = node[view.measure];
  const share = make("td", percent(amount, whole), { class: "share" });
  share.style.setProperty("--share", whole === 0 ? 0 : Math.min(amount / whole, 1));
  row.append(name, make("td", sizeOrDash(amount), { class: "size" }), share, make("td", sizeOrDash(node[other]), { class: "plain" }));
  return row;
}

/** Returns the names of the rows around a row. */
function placeOf(node, view) {
  return pathOf(node).slice(0, -1).filter((one) => one.type !== "all").map((one) => shortName(one, view.gpus)).join(" › ");
}

function sizeOrDash(bytes) {
  return bytes === 0 ? "–" : size(bytes);
}

function moreElement(around, left, level, view) {
  const row = make("tr", "", { "aria-level": level, class: "further" });
  const cell = make("td", "", { colspan: COLUMNS.length });
  const button = make("button", `Show ${Math.min(left, STEP * 5)} of ${left.toLocaleString("en")} more`, { type: "button" });
  button.addEventListener("click", () => {
    const at = [...table.tBodies[0].rows].indexOf(row);
    limits.set(around, (limits.get(around) ?? STEP) + STEP * 5);
    drawTable(view);
    focusRow(table.tBodies[0].rows[at]);
  });
  cell.append(button);
  row.append(cell);
  return row;
}

function footElement(view, rows, [amount, other], whole) {
  const row = make("tr");
  row.append(make("th", `all ${count(rows, "row")}`, { scope: "row", class: "name" }), make("td", size(amount), { class: "size" }));
  row.append(make("td", percent(amount, whole), { class: "share" }), make("td", size(other), { class: "plain" }));
  return row;
}

/** Opens or closes a row, and keeps the focus. */
function toggleRow(node, isOpen, view) {
  if (isOpen) opened.add(node);
  else opened.delete(node);
  drawTable(view);
  focusRow([...table.tBodies[0].rows].find((row) => row.node === node));
}

function focusRow(row) {
  if (row === undefined || row === null || row.node === undefined) return;
  for (const one of table.tBodies[0].rows) one.tabIndex = one === row ? 0 : -1;
  row.focus();
}

/** Returns the row before or after a row; not the places of rows that are not shown. */
function rowBeside(row, side) {
  let at = row[side];
  while (at !== null && at.node === undefined) at = at[side];
  return at;
}

function onTableKey(event, view, open) {
  const row = event.target;
  if (row.node === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  const node = row.node;
  const isOpen = opened.has(node);
  if (event.key === "ArrowDown") focusRow(rowBeside(row, "nextElementSibling"));
  else if (event.key === "ArrowUp") focusRow(rowBeside(row, "previousElementSibling"));
  else if (event.key === "ArrowRight" && node.children.length > 0 && !isOpen) toggleRow(node, true, view);
  else if (event.key === "ArrowLeft" && isOpen) toggleRow(node, false, view);
  else if (event.key === "ArrowLeft") focusRow([...table.tBodies[0].rows].find((one) => one.node === node.parent));
  else if (event.key === "Enter") open(node);
  else return;
  event.preventDefault();
}
