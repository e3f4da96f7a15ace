// The page: what is shown, and what keys and clicks do.

const element = (id) => document.getElementById(id);

/**
 * Shows data: an object of the shape that the README of this crate describes. May be called again with other data.
 */
function show(data) {
  const root = makeTree(data);
  const view = {
    data, root, node: root, measure: "stored", gpu: null, kept: new Map(), query: "", found: null,
    gpus: data.gpus, colours: colours(data.gpus), hasAllChips: false, choose,
  };
  const redraw = () => {
    view.kept = view.gpu === null ? new Map() : keptOf(view);
    view.found = isFiltered(view) ? find(view.node, view.query, view.gpus) : null;
    drawSummary(view);
    drawLegend(view);
    drawChoice(view);
    drawPath(view, open);
    drawMap(view);
    drawTable(view);
    describe(null, view);
  };
  function choose(gpu) {
    const before = view.gpu;
    const wasInMap = map.contains(document.activeElement);
    view.gpu = gpu;
    redraw();
    if (wasInMap && tiles.length > 0) focusTile(tiles[0]);
    else element("legend").querySelector(`[data-gpu="${gpu ?? before}"]`)?.focus();
  }
  /** Opens a row; of one that has no rows in it, the row around it. */
  function open(node) {
    const target = node.children.length > 0 ? node : node.parent;
    if (target === null || target.id === view.node.id) describe(node, view);
    else location.hash = target.id;
  }
  const up = () => {
    if (view.node.parent !== null) location.hash = view.node.parent.id;
    else if (view.gpu !== null) choose(null);
  };
  const follow = () => {
    const before = view.node;
    view.node = nodeOf(root, location.hash.slice(1));
    const box = tiles.find((tile) => tile.node.id === view.node.id)?.box;
    const wasInMap = map.contains(document.activeElement);
    const wasInTable = table.contains(document.activeElement);
    redraw();
    if (box !== undefined) zoom(box);
    const same = tiles.find((tile) => tile.node.id === before.id) ?? tiles[0];
    if (wasInMap && same !== undefined) focusTile(same);
    if (wasInTable) focusRow([...table.tBodies[0].rows].find((row) => row.node === before) ?? table.tBodies[0].rows[0]);
  };
  const isAllPacked = largest(root, "stored").every((node) => node.type !== "file" && node.type !== "member" && node.name === "package");
  if (isAllPacked && root.plain > 0) view.measure = "plain";
  drawHead(view);
  listen(view, { open, up, follow, redraw });
  element("page").hidden = false;
  view.node = nodeOf(root, location.hash.slice(1));
  redraw();
}

/** Returns whether names are sought; what is in a found row is shown whole. */
function isFiltered({ node, query, gpus }) {
  return query !== "" && !pathOf(node).slice(1).some((one) => isNamed(one, query, gpus));
}

/** Ends the listeners of the data that was shown before. */
let stop = new AbortController();

/** Listens to what a user does. */
function listen(view, { open, up, follow, redraw }) {
  stop.abort();
  stop = new AbortController();
  const on = (target, name, call) => target.addEventListener(name, call, { signal: stop.signal });
  const onTile = (call) => (event) => {
    const tile = tileAt(event.target);
    if (tile !== undefined) call(tile.node);
  };
  on(window, "hashchange", follow);
  on(map, "click", onTile(open));
  on(map, "mouseover", onTile((node) => describe(node, view)));
  on(map, "focusin", onTile((node) => describe(node, view)));
  on(map, "keydown", (event) => onMapKey(event, open));
  on(table.tBodies[0], "click", (event) => {
    const row = event.target.closest("tr");
    if (row?.node === undefined) return;
    if (event.target.closest(".fold") !== null && row.node.children.length > 0) toggleRow(row.node, !opened.has(row.node), view);
    else open(row.node);
  });
  on(table.tBodies[0], "keydown", (event) => onTableKey(event, view, open));
  on(document, "keydown", (event) => {
    const isTyping = event.target.matches?.("input[type=search]");
    if (event.key === "/" && !isTyping) element("query").focus();
    else if (event.key === "Escape" && isTyping) setQuery("");
    else if (!isTyping && (event.key === "Escape" || event.key === "Backspace")) up();
    else return;
    event.preventDefault();
  });
  const setQuery = (text) => {
    element("query").value = text;
    view.query = text.trim();
    redraw();
  };
  on(element("query"), "input", () => setQuery(element("query").value));
  on(element("tools"), "submit", (event) => event.preventDefault());
  on(element("measures"), "change", (event) => {
    view.measure = event.target.value;
    redraw();
  });
  const resized = new ResizeObserver(() => {
    const focused = tileAt(document.activeElement)?.node;
    drawMap(view);
    const same = tiles.find((tile) => tile.node === focused);
    if (same !== undefined) focusTile(same);
  });
  resized.observe(map);
  stop.signal.addEventListener("abort", () => resized.disconnect());
}

/** Returns a colour for each GPU: neighbours in the order of their names differ most. */
function colours(gpus) {
  const order = gpus.map((_, at) => at).sort((a, b) => compareGpus(gpus[a], gpus[b]));
  const all = [];
  order.forEach((gpu, at) => { all[gpu] = { hue: (145 + at * 137.508) % 360, isOdd: at % 2 === 1 }; });
  return all;
}

/** Writes what holds for all data: the title, the sum, faults, how bytes are counted. */
function drawHead(view) {
  const { data, root } = view;
  const name = nameOf(root, view.gpus);
  element("title").textContent = name;
  document.title = `${shortName(root, view.gpus)}: where the bytes go`;
  for (const input of element("measures").querySelectorAll("input")) input.checked = input.value === view.measure;
  element("query").value = "";
  drawNotes(data);
  const foot = [
    "Each byte is in one row, and the rows add up to the size of the file.",
    data.is_apportioned ? "Bytes of compressed data are apportioned to what is in it." : "",
    `This page has at most ${data.most_rows.toLocaleString("en")} rows and ${data.most_gpus} GPUs, the largest ones: the others are summed (“smaller kernels”).`,
    "Rows too small to see are one tile in the picture; the table has them.",
    `Written by ${shown(data.tool)}; loads nothing.`,
  ];
  element("foot").textContent = foot.filter((text) => text !== "").join(" ");
}

/** Writes the sum, and what it consists of. */
function drawSummary({ root, measure }) {
  const sums = { gpu: 0, host: 0, other: 0, unknown: 0, more: 0, around: 0 };
  each(root, (node) => {
    if (node.children.length === 0) sums[colourOf(node)] += node[measure];
  });
  const whole = root[measure];
  const parts = [[sums.gpu, "device code"], [sums.host, "host code"], [sums.other + sums.around, "containers and other files"], [sums.unknown, "not understood"], [sums.more, "in smaller rows"]];
  const texts = parts.filter(([bytes]) => bytes > 0).map(([bytes, what]) => `${percent(bytes, whole)} ${what}`);
  element("summary").textContent = `${size(whole)}${measure === "plain" ? " uncompressed" : ""}: ${texts.join(", ")}.`;
}

/** Shows what is wrong with the files. */
function drawNotes({ notes, errors, warnings, not_understood: unknown }) {
  const place = element("notes");
  const bytes = Math.max(unknown.stored, unknown.plain);
  place.hidden = notes.length === 0 && bytes === 0;
  place.classList.toggle("error", errors > 0);
  const said = [];
  if (errors > 0) said.push(count(errors, "error"));
  if (warnings > 0) said.push(count(warnings, "warning"));
  if (bytes > 0) said.push(`${size(bytes)} not understood`);
  if (notes.length === 0) {
    place.replaceChildren(make("p", `${said.join(", ")}: nothing describes these bytes, or they are damaged.`));
    return;
  }
  const details = make("details");
  details.open = errors > 0 && notes.length <= 3;
  details.append(make("summary", `${said.join(", ")}`));
  const list = make("ul");
  notes.forEach((note) => list.append(make("li", `${note.is_error ? "error" : "warning"}: ${shown(note.file)}: ${shown(note.message)}`)));
  const left = errors + warnings - notes.length;
  if (left > 0) list.append(make("li", `and ${left.toLocaleString("en")} more`));
  details.append(list);
  place.replaceChildren(details);
}

/** The most GPUs that are drawn until more are asked for. */
const MOST_CHIPS = 40;

/** Draws the GPUs with their shares, the largest first: a click chooses one. */
function drawLegend(view) {
  const sums = new Map();
  const add = (key, bytes) => sums.set(key, (sums.get(key) ?? 0) + bytes);
  each(view.node, (node) => {
    const colour = colourOf(node);
    if (node.children.length === 0 && colour !== "around") add(colour === "gpu" ? node.gpu : colour, node[view.measure]);
  });
  if (view.gpu !== null) add(view.gpu, 0);
  const whole = view.node[view.measure];
  const gpus = [...sums.keys()].filter((key) => typeof key === "number");
  gpus.sort((a, b) => sums.get(b) - sums.get(a) || compareGpus(view.gpus[a], view.gpus[b]));
  const isDrawn = (gpu, at) => view.hasAllChips || at < MOST_CHIPS || gpu === view.gpu;
  const left = gpus.filter((gpu, at) => !isDrawn(gpu, at));
  const chips = gpus.filter(isDrawn).map((gpu) => {
    const chip = make("button", "", { type: "button", class: "chip", "aria-pressed": view.gpu === gpu, "data-gpu": gpu, title: "Show what is left if only this GPU is kept" });
    chip.append(swatch("gpu", { gpu }, view), make("span", shown(view.gpus[gpu].name)), make("small", percent(sums.get(gpu), whole)));
    chip.addEventListener("click", () => view.choose(view.gpu === gpu ? null : gpu));
    return chip;
  });
  if (left.length > 0) {
    const more = make("button", "", { type: "button", class: "chip", title: "Show these GPUs" });
    more.append(swatch("more", {}, view), make("span", count(left.length, "smaller GPU")), make("small", percent(left.reduce((sum, gpu) => sum + sums.get(gpu), 0), whole)));
    more.addEventListener("click", () => {
      view.hasAllChips = true;
      drawLegend(view);
      element("legend").querySelector(`[data-gpu="${left[0]}"]`).focus();
    });
    chips.push(more);
  }
  const others = [["host", "host code"], ["other", "containers, other files"], ["unknown", "not understood"], ["more", "smaller rows"]];
  for (const [key, text] of others.filter(([key]) => sums.has(key))) {
    const chip = make("span", "", { class: "chip" });
    chip.append(swatch(key, {}, view), make("span", text), make("small", percent(sums.get(key), whole)));
    chips.push(chip);
  }
  element("legend").replaceChildren(...chips);
}

function swatch(colour, node, view) {
  const one = make("span", "", { class: `swatch ${colour}`, "aria-hidden": "true" });
  setHue(one, node, view);
  return one;
}

/** Draws the way from all files to the row that is shown. */
function drawPath(view, open) {
  const list = make("ol");
  pathOf(view.node).forEach((node) => {
    const item = make("li");
    if (node === view.node) {
      item.append(make("span", nameOf(node, view.gpus), { "aria-current": "location" }));
    } else {
      const button = make("button", shortName(node, view.gpus), { type: "button", title: nameOf(node, view.gpus) });
      button.addEventListener("click", () => open(node));
      item.append(button);
    }
    list.append(item);
  });
  const sum = make("span", size(view.node[view.measure]), { class: "sum" });
  element("path").replaceChildren(list, sum);
}

/** Says under the picture what a row is. */
function describe(node, view) {
  const place = element("about");
  if (node === null) {
    place.replaceChildren(make("span", "Click or Enter opens a tile, Escape goes up, arrows move.", { class: "hint" }));
    return;
  }
  const [path, amount] = [pathOf(node).slice(pathOf(view.node).length), node[view.measure]];
  const names = path.map((one) => nameOf(one, view.gpus)).join(" › ") || nameOf(node, view.gpus);
  const other = view.measure === "stored" ? `${size(node.plain)} uncompressed` : `${size(node.stored)} in the file`;
  const images = node.type === "gpu" && node.count > 0 ? `, ${count(node.count, "image")}` : "";
  const shares = `${percent(amount, view.node[view.measure])} of this picture, ${percent(amount, view.root[view.measure])} of all`;
  place.replaceChildren(make("strong", names), make("span", `${size(amount)} (${shares}); ${other}${images}`));
}

globalThis.offloadReport = Object.freeze({ show });
const written = JSON.parse(element("data").textContent);
if (written !== null) show(written);
