// The front of the page: a file is dropped, a GPU is asked for. Names of files are set as text.

const byId = (id) => document.getElementById(id);
/** The most GPUs, containers and faults that are shown. */
const MOST = 200;
/** The last answers, for programs that test the page. */
const last = {};
let [worker, file, isBusy, wanted] = [null, null, false, null];

/** Makes an element with a text. */
function make(name, text, attributes = {}) {
  const one = document.createElement(name);
  one.textContent = text;
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  return one;
}

/** Shows characters that are not seen, or that turn a text around, as numbers. */
function shown(text) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** Shortens digests, which name the layers of images. */
function short(text) {
  return shown(text).replace(/\b([0-9a-f]{12})[0-9a-f]{20,}\b/g, "$1…");
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  for (; bytes >= 1024 && at < units.length - 1; at += 1) bytes /= 1024;
  return `${at === 0 ? bytes : bytes.toFixed(1)} ${units[at]}`;
}

const count = (number, name) => `${number.toLocaleString("en")} ${name}${number === 1 ? "" : "s"}`;

function say(text, isError = false) {
  byId("work").classList.toggle("error", isError);
  byId("work").replaceChildren(...(text === "" ? [] : [make("span", text)]));
}

const module = (async () => {
  const bytes = Uint8Array.from(atob(byId("module").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
})();

/** Starts a worker; the one before ends, whatever it does. */
async function start() {
  worker?.terminate();
  const source = URL.createObjectURL(new Blob([`"use strict";(${work})();`], { type: "text/javascript" }));
  const own = new Worker(source);
  worker = own;
  own.onmessage = ({ data }) => own === worker && take(data);
  own.onerror = (event) => own === worker && fail(event.message);
  own.postMessage({ module: await module });
  return own;
}

function fail(message) {
  isBusy = false;
  worker?.terminate();
  worker = null;
  say(`${file === null ? "" : `${shown(file.name)}: `}${message}`, true);
}

/** Says that the report failed. Questions are answered by a new worker, which makes none. */
async function goOn(message) {
  isBusy = false;
  last.hasNoReport = true;
  say(`${shown(file.name)}: no report: ${message}`, true);
  (await start()).postMessage({ file, isBrief: true });
}

/** Reads a file. */
async function open(dropped) {
  [file, isBusy] = [dropped, true];
  for (const key of Object.keys(last)) delete last[key];
  byId("answer").hidden = byId("page").hidden = true;
  byId("verdict").replaceChildren();
  byId("drop").classList.add("small");
  history.replaceState(null, "", "#");
  say(`Reading ${shown(file.name)} ...`);
  (await start()).postMessage({ file });
}

function take({ type, value, at, message }) {
  const isReport = last.listing !== undefined && last.listing.error === undefined && !last.hasNoReport;
  last[type] = value ?? message;
  if (type === "progress") showProgress(at);
  else if (type === "gpus") showProducts(value);
  else if (type === "fault" && isReport) goOn(message);
  else if (type === "fault") fail(message);
  else if (value.error !== undefined && type !== "verdict") fail(value.offset === null ? value.error : `at byte 0x${value.offset.toString(16)}: ${value.error}`);
  else if (type === "listing") showListing(value);
  else if (type === "verdict") showVerdict(value);
  else {
    isBusy = false;
    say("");
    offloadReport.show(value);
    last.isDone = true;
  }
}

function showProgress(at) {
  if (!isBusy) return;
  const bar = make("progress", "", { max: file.size, value: at, "aria-label": "Part of the file that was read" });
  byId("work").replaceChildren(bar, make("span", `Reading ${shown(file.name)}: ${size(at)} of ${size(file.size)}`));
}

function showProducts(products) {
  const options = products.map(({ name, processor }) => make("option", processor, { value: name }));
  byId("gpus").replaceChildren(...options);
}

/** Says which GPUs the file has code for. */
function showListing({ images, files, targets, findings, is_package: isPackage }) {
  byId("answer").hidden = false;
  byId("name").textContent = shown(file.name);
  const holding = files.filter((one) => one.images > 0).length;
  const format = isPackage ? `a package; ${count(holding, "file")} with device code` : files[0]?.format ?? "not read";
  const found = images.length === 0 ? "no device images" : count(images.length, "device image");
  byId("what").textContent = `${size(file.size)}, ${format}: ${found}.`;
  const chips = targets.slice(0, MOST).map((target) => {
    const button = make("button", `${shown(target.name)} · ${size(target.size)}`, { type: "button", title: `${count(target.images, "image")}: ask about this GPU` });
    button.addEventListener("click", () => {
      byId("gpu").value = target.name;
      ask();
    });
    const item = make("li", "");
    item.append(button);
    return item;
  });
  if (targets.length > MOST) chips.push(make("li", `and ${targets.length - MOST} more`, { class: "more" }));
  byId("served").replaceChildren(...chips);
  const faults = findings.map(({ level, member, message }) => make("li", `${level}: ${member === "" ? "" : `${short(member)}: `}${short(message)}`));
  byId("faults").hidden = faults.length === 0;
  byId("faults").open = faults.length > 0 && faults.length < 4;
  byId("faults").querySelector("summary").textContent = `${count(faults.length, "finding")} about this file`;
  byId("faults").querySelector("ul").replaceChildren(...faults.slice(0, MOST));
  if (!last.hasNoReport) say("Counting bytes ...");
  if (byId("gpu").value.trim() !== "") ask();
}

function ask() {
  const gpu = byId("gpu").value.trim();
  if (gpu === "" || file === null) return;
  if (worker === null) {
    byId("verdict").replaceChildren(make("p", "No answer: the file could not be read.", { class: "say unknown" }));
    return;
  }
  byId("verdict").replaceChildren(make("p", isBusy ? "Answers when the file was read." : "", { class: "hint" }));
  worker.postMessage({ gpu });
}

/** Shows the answer for a GPU, and why each container gives it an image or not. */
function showVerdict({ error, near, gpu, doubt, advice, verdicts, answers }) {
  if (error !== undefined) {
    const meant = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
    byId("verdict").replaceChildren(make("p", `${shown(error)}.${meant}`, { class: "say unknown" }));
    return;
  }
  const words = { yes: "Yes", no: "No", partly: "In part", unknown: "Unknown" };
  // An archive of several container images has an answer for each.
  const parts = verdicts.slice(0, MOST).map(({ image, answer, message }) => {
    const said = make("p", "", { class: `say ${answer}` });
    const subject = image === undefined ? "the file" : `the image ${shown(image)}`;
    said.append(make("strong", `${words[answer]}, ${gpu}: `), `${subject} ${short(message)}.`);
    return said;
  });
  if (verdicts.length > MOST) parts.push(make("p", `and ${verdicts.length - MOST} more images`, { class: "hint" }));
  if (doubt !== null) parts.push(make("p", shown(doubt), { class: "hint" }));
  if (verdicts.some(({ answer }) => answer === "no") && advice !== null) parts.push(make("p", `Install a build for ${gpu}, or build with ${advice}`, { class: "hint" }));
  if (answers.length > 0) parts.push(table(answers));
  byId("verdict").replaceChildren(...parts);
}

/** Makes a table with a heading for each container, and a row for each image in it: the ones that this GPU gets come first. */
function table(answers) {
  const place = make("table", "");
  place.append(make("caption", "Each container, and what this GPU gets from it", { class: "hidden" }));
  const head = place.createTHead().insertRow();
  for (const name of ["Image", "For this GPU"]) head.append(make("th", name, { scope: "col" }));
  let rows = 0;
  for (const { member, path, images } of answers) {
    const left = Math.max(0, MOST - rows);
    rows += images.length;
    if (left === 0 || images.length === 0) continue;
    const body = place.createTBody();
    const where = [member, ...path].filter((step) => step !== "");
    body.insertRow().append(make("th", where.map(short).join(" › "), { scope: "rowgroup", colspan: 2, title: where.map(shown).join(" › ") }));
    const isGiven = (image) => image.given !== "no";
    for (const image of [...images.filter(isGiven), ...images.filter((image) => !isGiven(image))].slice(0, left)) {
      const row = body.insertRow();
      if (isGiven(image)) row.className = "given";
      const given = isGiven(image) ? `${image.given}${image.condition === null ? "" : `: if ${image.condition}`}` : image.reason;
      for (const text of [image.target ?? image.kind ?? "-", given]) row.append(make("td", shown(text)));
    }
  }
  if (rows > MOST) place.createTBody().insertRow().append(make("td", `and ${(rows - MOST).toLocaleString("en")} more images`, { colspan: 2 }));
  const around = make("div", "", { class: "table", tabindex: 0, role: "region", "aria-label": "Containers" });
  around.append(place);
  return around;
}

byId("file").addEventListener("change", ({ target }) => {
  const [chosen] = target.files;
  // The same file may be chosen again.
  target.value = "";
  if (chosen !== undefined) open(chosen);
});
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  ask();
});
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    event.preventDefault();
    byId("drop").classList.toggle("over", name === "dragover");
    const [dropped] = name === "drop" ? event.dataTransfer.files : [];
    if (dropped !== undefined) open(dropped);
  });
}
module.then(start, (error) => say(`This browser cannot run the page: ${error.message}`, true));
globalThis.offloadFront = Object.freeze({ last });
