/** Runs in a worker: reads the dropped file, and answers with the module. Its text is all that the worker gets. */
function work() {
  /** Bytes that are read at a time. */
  const BLOCK = 1 << 20;
  const reader = new FileReaderSync();
  let [file, wasm, block, blockAt, said] = [null, null, new Uint8Array(0), 0, 0];
  const slice = (from, to) => new Uint8Array(reader.readAsArrayBuffer(file.slice(from, to)));

  function read(offset, place, size) {
    try {
      let found;
      if (size >= BLOCK) {
        found = slice(offset, offset + size);
      } else {
        if (offset < blockAt || offset >= blockAt + block.length) {
          blockAt = Math.floor(offset / BLOCK) * BLOCK;
          block = slice(blockAt, blockAt + BLOCK);
        }
        found = block.subarray(offset - blockAt, offset - blockAt + size);
      }
      new Uint8Array(wasm.memory.buffer, place, found.length).set(found);
      const now = Date.now();
      if (now > said + 100) {
        said = now;
        postMessage({ type: "progress", at: offset });
      }
      return found.length;
    } catch {
      return -1;
    }
  }

  /** Asks the module, with a text. */
  function ask(question, text, ...more) {
    const bytes = new TextEncoder().encode(text);
    const place = wasm.input(bytes.length);
    new Uint8Array(wasm.memory.buffer, place, bytes.length).set(bytes);
    const size = wasm[question](...more);
    return JSON.parse(new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.output(), size)));
  }

  onmessage = ({ data }) => {
    try {
      if (data.module !== undefined) {
        wasm = new WebAssembly.Instance(data.module, { page: { read } }).exports;
        postMessage({ type: "gpus", value: ask("gpus", "") });
      } else if (data.file !== undefined) {
        file = data.file;
        [block, blockAt] = [new Uint8Array(0), 0];
        const listing = ask("open", file.name, file.size);
        postMessage({ type: "listing", value: listing });
        if (listing.error === undefined) postMessage({ type: "report", value: ask("account", "") });
      } else {
        postMessage({ type: "verdict", value: ask("judge", data.gpu) });
      }
    } catch (error) {
      postMessage({ type: "fault", message: `a fault of this page: ${error.message}` });
    }
  };
}
