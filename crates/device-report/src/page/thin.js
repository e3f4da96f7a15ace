// A chosen GPU: what `offload thin` would remove, and the command line.

/** The most files that one command line names. */
const MOST_FILES = 20;

/** Returns the files that the shown row is about. */
function filesOf(view) {
  return view.node.file === null ? view.root.children.filter((node) => node.file === node) : [view.node.file];
}

/** Returns the GPUs whose code stays when a GPU is chosen, by the files and members with code for it: others stay as they are. */
function keptOf(view) {
  const kept = new Map();
  for (const file of filesOf(view)) {
    const thin = resultOf(file, view.gpu);
    if (thin === undefined || refusal({ file, thin }) !== undefined) continue;
    const gpus = new Set([view.gpu, ...(thin.also ?? [])]);
    for (const holder of [file, ...file.children]) {
      if (holder.children.some((child) => child.gpu === view.gpu)) kept.set(holder, gpus);
    }
  }
  return kept;
}

/** Returns the result of `offload thin` for a GPU of a file; `undefined` if it has none. */
function resultOf(file, gpu) {
  return (file.thin ?? []).find((one) => one.gpu === gpu);
}

/** Returns why `offload thin` fails for a file; `undefined` if it does not. */
function refusal({ file, thin }) {
  return file.uneditable ?? thin.refused;
}

/** Shows the chosen GPU. */
function drawChoice(view) {
  const place = document.getElementById("choice");
  place.hidden = view.gpu === null;
  if (view.gpu === null) return;
  const gpu = view.data.gpus[view.gpu];
  const files = filesOf(view);
  const results = files.map((file) => ({ file, thin: resultOf(file, view.gpu) }));
  const concerned = results.filter((one) => one.thin !== undefined);
  const name = shown(gpu.name);
  const close = make("button", "×", { type: "button", class: "close", "aria-label": "Choose no GPU" });
  close.addEventListener("click", () => view.choose(null));
  const parts = [make("h2", `Only ${name}`), close];
  if (gpu.argument === null || gpu.argument === undefined) {
    parts.push(make("p", "There is no estimate for this target: offload thin cannot be asked for it, or it is not one of the largest."));
  } else if (concerned.length === 0) {
    parts.push(make("p", `No code for ${name} here.`));
  } else {
    const refused = concerned.filter((one) => refusal(one) !== undefined);
    const editable = concerned.filter((one) => refusal(one) === undefined);
    if (editable.length > 0) parts.push(...removal(editable, files.length - concerned.length, view), ...commandLine(editable, gpu, view));
    if (refused.length > 0) parts.push(refusals(refused, view));
  }
  place.replaceChildren(...parts);
}

/** Returns the element that says which files cannot be edited, and why. */
function refusals(refused, view) {
  const why = shown(refusal(refused[0]));
  const text = make("p", "", { class: "refused" });
  const which = refused.length === 1 ? shortName(refused[0].file, view.gpus) : `${count(refused.length, "file")}, such as ${shortName(refused[0].file, view.gpus)}`;
  text.append(make("code", "offload thin"), ` refuses ${which}: ${why}`);
  return text;
}

/** Returns the elements that say what would be removed. `without` files have no code for the GPU. */
function removal(concerned, without, view) {
  const sum = (of) => concerned.reduce((all, one) => all + of(one), 0);
  const isStored = sum(({ thin }) => thin.stored) > 0 || sum(({ thin }) => thin.plain) === 0;
  const measure = isStored ? "stored" : "plain";
  const [gone, whole] = [sum(({ thin }) => thin[measure]), sum(({ file }) => file[measure])];
  const isKnown = isStored && concerned.every(({ thin }) => thin.saved !== undefined);
  const saved = isKnown ? sum(({ thin }) => thin.saved) : gone;
  const bar = make("div", "", { class: "bar", role: "img", "aria-label": `${percent(saved, whole)} would be saved` });
  bar.append(make("span"));
  bar.firstChild.style.width = `${whole === 0 ? 0 : 100 - (100 * saved) / whole}%`;
  const text = make("p", "Images that ");
  text.append(make("code", "offload thin"), ` would remove from ${concerned.length === 1 ? shortName(concerned[0].file, view.gpus) : count(concerned.length, "file")}: `, make("strong", size(gone)), ` of ${size(whole)}${isStored ? "" : " uncompressed"} (${percent(gone, whole)}).`);
  const also = new Set(concerned.flatMap(({ thin }) => thin.also ?? []));
  const names = [...also].map((at) => view.gpus[at]).sort(compareGpus).map((one) => shown(one.name));
  if (names.length > 0) text.append(` It also keeps code of ${names.join(", ")} that this GPU could load.`);
  if (without > 0) text.append(` ${count(without, "file")} without code for it ${without === 1 ? "is" : "are"} left out.`);
  const emptied = sum(({ thin }) => thin.emptied ?? 0);
  if (emptied > 0) {
    text.append(` ${count(emptied, "container")} would lose all device code, which `, make("code", "--allow-empty"), " permits: check that nothing needs it.");
  }
  return [bar, text, isKnown ? newSize(saved, gone, whole, concerned.length) : estimate()];
}

/** Returns the element that says how large the new files are. */
function newSize(saved, gone, whole, files) {
  const isOne = files === 1;
  const text = make("p");
  if (saved === 0 && gone > 0) {
    text.append(isOne ? "The file " : "The files ", make("strong", isOne ? "keeps its size" : "keep their size", { class: "saved" }), ": the removed bytes cannot leave it, and become zeros.");
    return text;
  }
  text.append(isOne ? "The new file has " : "The new files have ", make("strong", size(whole - saved), { class: "saved" }), `: ${size(saved)} less (${percent(saved, whole)}).`);
  if (gone - saved > gone / 100) text.append(" Removed bytes that cannot leave the file become zeros.");
  return text;
}

/** Returns the element that says why the size of the new files is not known. */
function estimate() {
  const text = make("p", "An estimate: the bytes of these images, as this page counts them. The new file has to be compressed again, which is not done here. ", { class: "hint" });
  text.append("With ", make("code", "--dry-run"), " the command prints the exact size and writes nothing.");
  return text;
}

/** Returns the elements with the command line. */
function commandLine(concerned, gpu, view) {
  const editable = concerned.filter(({ file }) => file.argument !== undefined);
  const names = new Set(editable.map(({ file }) => shortName(file, view.gpus)));
  if (editable.length === 0) return [make("p", "There is no command line: the file has no path, or one that cannot be typed.")];
  if (editable.length > MOST_FILES || names.size < editable.length) return [make("p", "Open one of the files for its command line.")];
  const empty = editable.some(({ thin }) => thin.emptied > 0) ? " --allow-empty" : "";
  const files = editable.map(({ file }) => file.argument).join(" ");
  const line = `offload thin --keep ${gpu.argument}${empty} ${files} -o thinned/`;
  const block = make("div", "", { class: "command" });
  const copy = make("button", "Copy", { type: "button" });
  copy.addEventListener("click", () => copyText(line, block.firstChild, copy));
  block.append(make("code", line, { tabindex: "0" }), copy);
  const quoted = /['"$]/.test(line);
  const shell = view.data.shell === "windows" ? "PowerShell" : "bash and other POSIX shells; PowerShell and cmd quote names in other ways";
  return quoted ? [block, make("p", `Quoted for ${shell}.`, { class: "hint" })] : [block];
}

/** Copies a text; selects it where pages may not copy. */
function copyText(text, element, button) {
  const select = () => getSelection().selectAllChildren(element);
  const say = (word) => {
    button.textContent = word;
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  };
  if (navigator.clipboard === undefined) {
    select();
    return;
  }
  navigator.clipboard.writeText(text).then(() => say("Copied"), select);
}
