const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const hide = (id) => { byId(id).hidden = true; };
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function make(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

// A time in the unit that fits: a length with four digits, a moment with at most three decimals.
function time(ns, sign = false, length = true) {
  if (ns === null) return "–";
  const size = Math.abs(ns), [unit, by] = size >= 1e9 ? ["s", 1e9] : size >= 1e6 ? ["ms", 1e6] : size >= 1e3 ? ["us", 1e3] : ["ns", 1];
  const digits = length && size < 1e12 ? { minimumSignificantDigits: by === 1 && Number.isInteger(ns) ? 1 : 4, maximumSignificantDigits: 4 } : { maximumFractionDigits: 3 };
  return (sign && ns > 0 ? "+" : "") + (ns / by).toLocaleString("en", digits) + " " + unit;
}
const moment = (ns) => time(ns, false, false);

// A table that scrolls. Before a head, # marks numbers, * names, and ~ what narrow windows leave out;
// `dress` gets each row with its number.
function table(where, heads, rows, dress = () => {}) {
  const made = make("table"), top = made.createTHead().insertRow(), body = made.createTBody();
  const kinds = heads.map((head) => (head.includes("#") ? "n " : "") + (head.includes("*") ? "name " : "") + (head.includes("~") ? "wide " : ""));
  heads.forEach((head, at) => top.append(make("th", head.replace(/^[#*~]+/, ""), kinds[at])));
  rows.forEach((cells, number) => {
    const row = body.insertRow();
    cells.forEach((cell, at) => row.append(make("td", cell ?? "", kinds[at] + (!kinds[at] && /\S{32}/.test(cell) ? "long" : ""))));
    dress(row, number);
  });
  const scroll = make("div", undefined, "scroll");
  scroll.append(made);
  where.replaceChildren(scroll);
}

// The pen for a canvas that is empty, as wide as the page, and of a height.
function sized(canvas, height) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  return [pen, width];
}

// A text around the height y, of which as much is drawn as has room.
function clipped(pen, text, x, y, room) {
  pen.save();
  pen.beginPath(); pen.rect(x, y - 8, room, 16); pen.clip();
  pen.fillText(text, x, y);
  pen.restore();
}

// The part of a span that is in a view of this width: its left edge and its width.
function within(left, wide, width) {
  const start = Math.max(left, 0);
  return [start, Math.min(left + wide, width) - start];
}

// An axis of time in the first RULER pixels, with lines down to the bottom.
const RULER = 20, LABEL = 80;  // pixels from one label to the next, at least
function ruler(pen, width, height, from, to) {
  const span = to - from, least = (span * LABEL) / width;
  let step = Math.pow(10, Math.floor(Math.log10(least)));
  step *= [1, 2, 5, 10].find((more) => step * more >= least) || 10;
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const x = ((at - from) / span) * width, text = moment(at);
    pen.fillStyle = css("--line");
    pen.fillRect(x, 0, 1, height);
    pen.fillStyle = css("--soft");
    if (x + 3 + pen.measureText(text).width <= width) pen.fillText(text, x + 3, RULER / 2);
  }
}

// Lets a canvas show a part of a span of time: scroll to zoom, drag to move, double-click to see
// everything. `tell` gets the events of the mouse, `press` those of clicks. Returns the part.
function zoomable(canvas, [first, last], draw, tell, press = () => {}) {
  const view = { from: first, to: last };
  view.show = (from, to) => {
    const span = Math.min(Math.max(to - from, 10), last - first);
    view.from = Math.min(Math.max(from, first), last - span);
    view.to = view.from + span;
    requestAnimationFrame(draw);
  };
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && Math.abs(event.deltaY) < Math.abs(event.deltaX)) return;
    event.preventDefault();
    const part = event.offsetX / canvas.clientWidth, span = view.to - view.from;
    const at = view.from + part * span, wide = span * Math.exp(event.deltaY * 0.002);
    view.show(at - part * wide, at + (1 - part) * wide);
  }, { passive: false });
  let held = null;
  canvas.addEventListener("pointerdown", (event) => { held = [event.clientX, view.from, view.to]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", (event) => {
    if (held && Math.abs(event.clientX - held[0]) < 3) press(event);
    held = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!held) { tell(event); return; }
    const shift = ((held[0] - event.clientX) / canvas.clientWidth) * (held[2] - held[1]);
    view.show(held[1] + shift, held[2] + shift);
  });
  canvas.addEventListener("dblclick", () => view.show(first, last));
  return view;
}

// A flame graph of frames [name, depth, left, width, …]; a click zooms to one, and on the top level
// returns. `paint` gives colours of frame and text, `label` the text, `tell` what is said under the
// mouse. Returns a function that draws it.
const FRAME = 18, LEVELS = 64;
function flameGraph(canvas, frames, { paint, label, tell }) {
  const all = [0, Math.max(...frames.filter((one) => one[1] === 0).map((one) => one[2] + one[3]))];
  const levels = frames.reduce((most, one) => Math.max(most, one[1]), 0) + 1;
  let [from, span] = all;
  const draw = () => {
    const [pen, width] = sized(canvas, Math.min(levels, LEVELS) * FRAME + 2);
    for (const frame of frames) {
      const [x, wide] = within(((frame[2] - from) / span) * width, (frame[3] / span) * width, width);
      if (wide < 0.3) continue;
      const [back, ink] = paint(frame);
      pen.fillStyle = back;
      pen.fillRect(x, frame[1] * FRAME, Math.max(wide - 0.5, 0.3), FRAME - 1);
      pen.fillStyle = ink;
      if (wide > 24) clipped(pen, label(frame), x + 3, (frame[1] + 0.5) * FRAME, wide - 4);
    }
  };
  const frameAt = (event) => {
    const at = from + (event.offsetX / canvas.clientWidth) * span, depth = Math.floor(event.offsetY / FRAME);
    return frames.find((one) => one[1] === depth && one[2] <= at && at < one[2] + one[3]);
  };
  canvas.addEventListener("click", (event) => {
    const frame = frameAt(event);
    const zooms = frame && frame[1] > 0 && !(frame[2] === from && frame[3] === span);
    [from, span] = zooms ? [frame[2], frame[3]] : all;
    draw();
  });
  canvas.addEventListener("mousemove", (event) => { const frame = frameAt(event); tell(frame ? frame : null); });
  return draw;
}

// Draw now, and whenever the width or the colours of the page change.
function drawAlways(draw) {
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}
