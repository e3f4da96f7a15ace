// The data as a tree: rows know the row around them, and their place in the address of the page.

/** Returns the root of the rows: the only file, or a row around all files. */
function makeTree(data) {
  const sum = (measure) => data.files.reduce((all, file) => all + file[measure], 0);
  const all = { name: "", type: "all", stored: sum("stored"), plain: sum("plain"), children: data.files };
  const root = data.files.length === 1 ? data.files[0] : all;
  root.parent = null;
  root.id = "";
  link(root);
  return root;
}

/** Sets what rows below a row have: the row around them, their file, the member or file that they are in, an address. */
function link(node) {
  node.children ??= [];
  node.file = node.type === "file" || node.type === "package" ? node : (node.parent?.file ?? null);
  node.holder = node.type === "member" ? node : (node.parent?.holder ?? node.file);
  node.children.forEach((child, at) => {
    child.parent = node;
    child.id = node.id === "" ? `${at}` : `${node.id}.${at}`;
    link(child);
  });
}

/** Returns the row of an address; the nearest one around it if there is none. */
function nodeOf(root, id) {
  let node = root;
  for (const at of id.split(".")) {
    const child = node.children[Number(at)];
    if (at === "" || child === undefined) break;
    node = child;
  }
  return node;
}

/** Returns a row and the rows around it, from outside in. */
function pathOf(node) {
  const path = [];
  for (let at = node; at !== null; at = at.parent) path.unshift(at);
  return path;
}

/** Returns the rows in a row that are not empty, the largest first. */
function largest(node, measure) {
  const children = node.children.filter((child) => child[measure] > 0);
  return children.sort((a, b) => b[measure] - a[measure]);
}

/** Returns the number of rows, those in sums among them. */
function rowsOf(nodes) {
  return nodes.reduce((all, node) => all + (node.type === "more" ? node.count : 1), 0);
}

/** Calls a function with a row and all rows below it. */
function each(node, call) {
  call(node);
  node.children.forEach((child) => each(child, call));
}

/** Returns whether the name of a row contains a text. */
function isNamed(node, text, gpus) {
  return nameOf(node, gpus).toLowerCase().includes(text.toLowerCase());
}

/** Returns the outermost rows whose names contain a text, and a copy of the tree that has only these. */
function find(root, text, gpus) {
  const top = [];
  const copy = (node) => {
    if (node !== root && isNamed(node, text, gpus)) {
      top.push(node);
      return node;
    }
    const children = node.children.map(copy).filter((child) => child !== null);
    const sum = (measure) => children.reduce((all, child) => all + child[measure], 0);
    return children.length === 0 ? null : { ...node, children, stored: sum("stored"), plain: sum("plain") };
  };
  return { tree: copy(root) ?? { ...root, children: [], stored: 0, plain: 0 }, top };
}
