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
    if (thin === undefined) continue;
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
    parts.push(...removal(concerned, files.length, view), ...commandLine(concerned, gpu, view));
  }
  place.replaceChildren(...parts);
}

/** Returns the elements that say what would be removed. */
function removal(concerned, number, view) {
  const sum = (of) => concerned.reduce((all, one) => all + of(one), 0);
  const isStored = sum(({ thin }) => thin.stored) > 0 || sum(({ thin }) => thin.plain) === 0;
  const measure = isStored ? "stored" : "plain";
  const [gone, whole] = [sum(({ thin }) => thin[measure]), sum(({ file }) => file[measure])];
  const bar = make("div", "", { class: "bar", role: "img", "aria-label": `${percent(gone, whole)} would be removed` });
  bar.append(make("span"));
  bar.firstChild.style.width = `${whole === 0 ? 0 : 100 - (100 * gone) / whole}%`;
  const text = make("p", "Images that ");
  text.append(make("code", "offload thin"), ` would remove from ${concerned.length === 1 ? shortName(concerned[0].file, view.gpus) : count(concerned.length, "file")}: `, make("strong", size(gone)), ` of ${size(whole)}${isStored ? "" : " uncompressed"} (${percent(gone, whole)}).`);
  const also = new Set(concerned.flatMap(({ thin }) => thin.also ?? []));
  const names = [...also].map((at) => view.gpus[at]).sort(compareGpus).map((one) => shown(one.name));
  if (names.length > 0) text.append(` It also keeps code of ${names.join(", ")} that this GPU could load.`);
  if (concerned.length < number) text.append(` ${count(number - concerned.length, "file")} without code for it ${number - concerned.length === 1 ? "is" : "are"} left out.`);
  const emptied = sum(({ thin }) => thin.emptied ?? 0);
  if (emptied > 0) {
    text.append(` ${count(emptied, "container")} would lose all device code, which `, make("code", "--allow-empty"), " permits: check that nothing needs it.");
  }
  const hint = make("p", "An estimate: the bytes of these images, as this page counts them. The size of the new file is not computed here; alignment and compression change it. ", { class: "hint" });
  hint.append("With ", make("code", "--dry-run"), " the command prints the exact size and writes nothing.");
  return [bar, text, hint];
}

/** Returns the elements with the command line. */
function commandLine(concerned, gpu, view) {
  const editable = concerned.filter(({ file }) => file.argument !== undefined && file.uneditable === undefined);
  const why = concerned.find(({ file }) => file.uneditable !== undefined)?.file.uneditable;
  const names = new Set(editable.map(({ file }) => shortName(file, view.gpus)));
  if (editable.length === 0) return [make("p", why === undefined ? "There is no command line: the file has no path." : `offload thin does not change it: ${shown(why)}.`)];
  if (editable.length > MOST_FILES || names.size < editable.length) return [make("p", "Open one of the files for its command line.")];
  const empty = editable.some(({ thin }) => thin.emptied > 0) ? " --allow-empty" : "";
  const files = editable.map(({ file }) => file.argument).join(" ");
  const line = `offload thin --keep ${gpu.argument}${empty} ${files} -o thinned/`;
  const block = make("div", "", { class: "command" });
  const copy = make("button", "Copy", { type: "button" });
  copy.addEventListener("click", () => copyText(line, block.firstChild, copy));
  block.append(make("code", line, { tabindex: "0" }), copy);
  const left = why === undefined ? [] : [make("p", `Some files cannot be changed: ${shown(why)}.`)];
  return [block, ...left];
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
