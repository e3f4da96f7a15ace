// How numbers and names are written.

/** Names of kinds of bytes. */
const KINDS = {
  "code": "machine code", "data": "constants and data", "mercury": "Mercury code", "symbols": "symbols",
  "metadata": "metadata", "relocations": "relocations", "debug": "debug information", "headers": "headers",
  "other": "other sections", "ptx": "PTX", "lto-ir": "LTO-IR", "spirv": "SPIR-V", "bitcode": "LLVM bitcode",
  "opaque": "format that is not looked into", "container": "containers and their padding",
  "registration": "registration of device code", "host-code": "machine code of the host", "host-data": "data of the host",
  "host-symbols": "symbols of the host", "host-relocations": "relocations of the host",
  "host-debug": "debug information of the host", "host-headers": "headers of the host file", "padding": "padding",
  "host-other": "other bytes of the host", "not-understood": "not understood",
  "other-members": "other files of the package", "package-overhead": "headers of the package",
  "package": "the package as a whole",
};

/** What the sum of smaller rows consists of, by the type of the row around it. */
const SMALLER = { all: "file", package: "file", file: "GPU", member: "GPU", gpu: "kernel" };

/** Returns a text in which everything is visible: what has no shape or turns the direction is written as a number. */
function shown(text) {
  const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
  return text.replace(hidden, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** Returns the order of two GPUs: of AMD's, the last two digits are hexadecimal. */
function compareGpus(a, b) {
  const number = (name) => name.replace(/^gfx(\d+)([0-9a-f]{2})(?![0-9a-f])/, (_, major, minor) => `gfx${major}.${parseInt(minor, 16)}`);
  return compareNames(number(a.name), number(b.name));
}

/** Returns the order of two names: numbers in them by their values. */
const compareNames = new Intl.Collator("en", { numeric: true }).compare;

function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}

/** Returns the name of a row. */
function nameOf(node, gpus) {
  switch (node.type) {
    case "all": return count(rowsOf(node.children), "file");
    case "host": return "host code";
    case "more": return `${node.count.toLocaleString("en")} smaller ${SMALLER[node.parent.type] ?? "row"}${node.count === 1 ? "" : "s"}`;
    case "kind": return Object.hasOwn(KINDS, node.name) ? KINDS[node.name] : shown(node.name);
    case "gpu": return shown(gpus[node.gpu].name);
    default: return node.name === "" ? "(no name)" : shown(node.name);
  }
}

/** Returns the name of a row; of a file, the last part of its path. */
function shortName(node, gpus) {
  if (!["file", "package", "member"].includes(node.type)) return nameOf(node, gpus);
  const separator = node.name.includes("/") ? "/" : "\\";
  const last = node.name.slice(node.name.lastIndexOf(separator) + 1);
  return last === "" ? nameOf(node, gpus) : shown(last);
}

/** Returns a number of bytes as `offload size` prints it. */
function size(bytes) {
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  if (bytes < 1024) return `${bytes} B`;
  let amount = bytes / 1024;
  let unit = 0;
  for (; amount >= 1023.95 && unit + 1 < units.length; unit += 1) amount /= 1024;
  return `${amount.toFixed(1)} ${units[unit]}`;
}

/** Returns a share in percent. */
function percent(part, whole) {
  const share = whole === 0 ? 0 : (100 * part) / whole;
  return share > 0 && share < 0.05 ? "< 0.1 %" : `${share.toFixed(1)} %`;
}

/** Returns what bytes are, by which they are coloured: of a GPU, of the host, not understood, of several of these, or other. */
function colourOf(node) {
  if (node.type === "kind" && node.name === "not-understood") return "unknown";
  if (node.gpu !== undefined) return "gpu";
  if (node.type === "host" || node.parent?.type === "host") return "host";
  if (node.type === "more") return "more";
  return node.type === "kind" ? "other" : "around";
}

/** Makes an element with a text and attributes. */
function make(name, text = "", attributes = {}) {
  const element = document.createElement(name);
  element.textContent = text;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
