"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const make = (tag, text, kind) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
};
const time = (ns, sign, minimumSignificantDigits = 4) => {
  if (ns === null) return "–";
  const size = Math.abs(ns), [unit, by] = size >= 1e9 ? ["s", 1e9] : size >= 1e6 ? ["ms", 1e6] : size >= 1e3 ? ["us", 1e3] : ["ns", 1];
  const least = by === 1 && Number.isInteger(ns) ? 1 : minimumSignificantDigits;
  return (sign && ns > 0 ? "+" : "") + (ns / by).toLocaleString("en", { minimumSignificantDigits: least, maximumSignificantDigits: 4 }) + " " + unit;
};
const often = (before, after) => before === after ? count(before) : `${count(before)} → ${count(after)}`;
const count = (number) => number === null ? "–" : number.toLocaleString("en");
const WIDE = new Set(["95% interval", "p99 before", "p99 after", "where"]);  // not on narrow windows
const UNCHANGED = new Set(["same", "unclear"]);
const hide = (id) => { byId(id).hidden = true; };

function table(where, head, rows, numeric) {
  const out = make("table"), line = out.createTHead().insertRow();
  const wide = (text) => WIDE.has(text) ? "wide " : "";
  head.forEach((text, at) => line.append(make("th", text, wide(text) + (numeric[at] ? "n" : ""))));
  const body = out.createTBody();
  for (const [kind, cells] of rows) {
    const row = body.insertRow();
    cells.forEach((text, at) => row.append(make("td", text, wide(head[at]) + (numeric[at] ? "n " : head[at] === "name" || head[at] === "path" ? "name " : "") + (at === 0 ? kind : ""))));
  }
  where.replaceChildren(out);
}

byId("summary").textContent = data.summary;
byId("sides").textContent = ["before: ", "after: "].map((word, at) => {
  const names = data.sides[at];
  return word + names.slice(0, 3).join(", ") + (names.length > 3 ? `, … (${names.length} runs)` : "");
}).join("; ");
for (const note of data.notes) byId("notes").append(make("li", note));

if (data.explained.length) {
  table(byId("explained"), ["change/run", "share", "reason", "path"], data.explained.map(
    ([change, share, reason, path]) => [change > 0 ? "slower" : "faster", [time(change, true),
      share === null ? "–" : (100 * share).toFixed(0) + "%", reason, path]]), [1, 1, 0, 0]);
} else hide("explained-section");

// --- Calls ---
const MOST = 500;
function calls() {
  const words = byId("find").value.toLowerCase(), also = byId("same").checked || words;
  const found = data.calls.filter((one) => (also || !UNCHANGED.has(one[0])) && one[1].toLowerCase().includes(words));
  table(byId("calls"), ["verdict", "name", "ratio", "95% interval", "before/call", "after/call", "p99 before", "p99 after", "change/run", "calls/run", "where"],
    found.slice(0, MOST).map(([verdict, name, ratio, low, high, change, before, after, where]) => [verdict, [
      verdict, name, ratio === null ? "–" : ratio.toFixed(2), low === null ? "–" : `${low.toFixed(2)}–${high.toFixed(2)}`,
      time(before[1]), time(after[1]), time(before[2]), time(after[2]), time(change, true), often(before[0], after[0]), where]]),
    [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0]);
  const more = found.length > MOST ? `, the first ${MOST} shown` : "";
  const cut = data.omitted ? `; ${count(data.omitted)} that did not change are not on this page` : "";
  byId("count").textContent = `${count(found.length)} of ${count(data.calls.length)} names${more}${cut}`;
}
if (data.calls.length) {
  byId("find").addEventListener("input", calls);
  byId("same").addEventListener("change", calls);
  calls();
} else hide("calls-section");

function sized(canvas, height) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  return [pen, width];
}
function label(pen, text, x, y, width) {
  if (width < 24) return;
  let shown = text;
  const room = Math.floor((width - 6) / 6.5);
  if (shown.length > room) shown = shown.slice(0, Math.max(room - 1, 1)) + "…";
  pen.fillText(shown, x + 3, y);
}

// --- Flame graph ---
const ROW = 18;
const total = Math.max(data.frames.reduce((sum, one) => Math.max(sum, one[2] + one[3]), 0), 1);
let zoom = [0, total, 0];
function shade(before, after) {
  let share = 0;
  if (before !== after) share = !before ? 1 : !after ? -1 : Math.max(-1, Math.min(1, Math.log(after / before) / Math.log(1.5)));
  const full = share > 0 ? [201, 32, 32] : [30, 96, 200], strength = Math.abs(share);
  const none = css("--neutral").split(" ").map(Number);
  return [`rgb(${none.map((low, at) => Math.round(low + (full[at] - low) * strength)).join(",")})`, strength > 0.55 ? "#fff" : css("--ink")];
}
function flame() {
  const canvas = byId("flame"), levels = data.frames.reduce((most, one) => Math.max(most, one[1]), 0) + 1;
  const [pen, width] = sized(canvas, Math.min(levels, 60) * ROW + 2);
  const scale = width / zoom[1];
  for (const [name, depth, left, wide, before, after] of data.frames) {
    let x = (left - zoom[0]) * scale, w = wide * scale;
    if (x + w <= 0 || x >= width || w < 0.3) continue;
    w = Math.min(x + w, width) - Math.max(x, 0);
    x = Math.max(x, 0);
    const [back, ink] = shade(before, after);
    pen.fillStyle = back;
    pen.fillRect(x, depth * ROW + 1, Math.max(w - 0.5, 0.5), ROW - 1);
    pen.fillStyle = ink;
    label(pen, name, x, depth * ROW + ROW / 2, w);
  }
}
function frameAt(event) {
  const box = byId("flame").getBoundingClientRect();
  const at = zoom[0] + (event.clientX - box.left) / box.width * zoom[1], depth = Math.floor((event.clientY - box.top) / ROW);
  return data.frames.find((one) => one[1] === depth && one[2] <= at && at < one[2] + one[3]);
}
if (data.frames.length) {
  byId("widths").textContent = data.widths.toUpperCase();
  byId("flame").addEventListener("click", (event) => {
    const one = frameAt(event);
    zoom = one && one[1] > 0 && !(one[2] === zoom[0] && one[3] === zoom[1]) ? [one[2], one[3], one[1]] : [0, total, 0];
    flame();
  });
  byId("flame").addEventListener("mousemove", (event) => {
    const one = frameAt(event);
    byId("flame-tip").textContent = !one ? "" : `${one[0]}: ${time(one[4])} before, ${time(one[5])} after` +
      (one[4] && one[5] ? `, ${(100 * (one[5] / one[4] - 1)).toFixed(1)}%` : one[5] ? ", new" : ", gone");
  });
} else hide("flame-section");

// --- Distributions ---
const TICKS = 3;
const SVG = "http://www.w3.org/2000/svg";
function shape([name, first, before, after]) {
  const figure = make("figure"), svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 300 100");
  svg.setAttribute("preserveAspectRatio", "none");
  const bins = before.length;
  for (let part = 0; part <= TICKS; part++) {
    const grid = document.createElementNS(SVG, "path"), x = 300 * part / TICKS;
    grid.setAttribute("d", `M${x} 0L${x} 100`);
    grid.setAttribute("stroke", "var(--line)");
    grid.setAttribute("vector-effect", "non-scaling-stroke");
    svg.append(grid);
  }
  const sides = [before, after].map((side) => { const sum = side.reduce((a, b) => a + b, 0) || 1; return side.map((one) => one / sum); });
  const most = Math.max(...sides[0], ...sides[1]), step = 300 / before.length;
  sides.forEach((side, at) => {
    let path = "M0 100";
    side.forEach((share, bin) => { const y = 98 - 94 * share / most; path += `L${bin * step} ${y}L${(bin + 1) * step} ${y}`; });
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("d", path + "L300 100Z");
    line.setAttribute("fill", at ? "var(--after)" : "var(--before)");
    line.setAttribute("fill-opacity", "0.35");
    line.setAttribute("stroke", at ? "var(--after)" : "var(--before)");
    line.setAttribute("vector-effect", "non-scaling-stroke");
    svg.append(line);
  });
  // The edges of bins are powers of two: even steps of the axis are even steps of the logarithm.
  const low = Math.log(data.shapes.edges[first]), step2 = Math.log(data.shapes.edges[1] / data.shapes.edges[0]);
  const axis = make("div", undefined, "axis");
  for (let part = 0; part <= TICKS; part++) axis.append(make("span", time(Math.exp(low + step2 * bins * part / TICKS))));
  figure.append(make("figcaption", `${name}: up to ${(100 * most).toFixed(0)}% of the calls in a bar`), svg, axis);
  return figure;
}
if (data.shapes.names.length) byId("shapes").append(...data.shapes.names.map(shape));
else hide("shapes-section");

// --- Timelines ---
const LANE = 14, RULER = 20, LABEL = 80;
const verdicts = new Map(data.calls.map((one) => [one[1], one[0]]));
// The colours of the flame graph: red took longer, blue shorter, grey did not change.
function slice(name) {
  const verdict = verdicts.get(name);
  if (["slower", "more", "new"].includes(verdict)) return ["#c92020", "#fff"];
  if (["faster", "fewer", "gone"].includes(verdict)) return ["#1e60c8", "#fff"];
  return [`rgb(${css("--neutral")})`, css("--ink")];
}
function ruler(pen, width, height) {
  const least = (span[1] - span[0]) * LABEL / width;
  let step = Math.pow(10, Math.floor(Math.log10(least)));
  step *= [1, 2, 5, 10].find((more) => step * more >= least) || 10;
  for (let at = Math.ceil(span[0] / step) * step; at <= span[1]; at += step) {
    const x = (at - span[0]) / (span[1] - span[0]) * width;
    pen.fillStyle = css("--line");
    pen.fillRect(x, 0, 1, height);
    pen.fillStyle = css("--soft");
    const text = time(at, false, 1);
    if (x + 3 + pen.measureText(text).width <= width) pen.fillText(text, x + 3, RULER / 2);
  }
}
let span = [0, 1], whole = [0, 1], places = [];
function layout() {
  let y = RULER + 4;
  places = data.timelines.map((side, at) => {
    const heads = [{ y, text: `${at ? "after" : "before"}: ${side.name}` }];
    y += 18;
    const depths = side.tracks.map(() => 0);
    for (const [track, depth] of side.slices) depths[track] = Math.max(depths[track], depth + 1);
    const tops = depths.map((depth, track) => {
      heads.push({ y, text: side.tracks[track], soft: true });
      const top = y + 15;
      y = top + depth * LANE + 4;
      return top;
    });
    return { heads, tops };
  });
  return y + 4;
}
function timelines() {
  const height = layout(), [pen, width] = sized(byId("timelines"), height);
  const scale = width / (span[1] - span[0]);
  const zero = -span[0] * scale;
  ruler(pen, width, height);
  data.timelines.forEach((side, at) => {
    side.slices.forEach(([track, depth, name, start, length]) => {
      let x = (start - span[0]) * scale, w = length * scale;
      if (x + w < 0 || x > width) return;
      w = Math.min(x + w, width) - Math.max(x, 0);
      x = Math.max(x, 0);
      const y = places[at].tops[track] + depth * LANE, text = side.names[name];
      const [back, ink] = slice(text);
      pen.fillStyle = back;
      pen.fillRect(x, y, Math.max(w - 1, 0.7), LANE - 1);
      pen.fillStyle = ink;
      label(pen, text, x, y + LANE / 2, w);
    });
    for (const { y, text, soft } of places[at].heads) {
      pen.fillStyle = css(soft ? "--soft" : "--ink");
      pen.fillText(text, 4, y + 8);
    }
  });
  pen.fillStyle = css("--ink");
  if (zero >= 0 && zero <= width) pen.fillRect(zero, 0, 1, height);
}
if (data.timelines.length && data.timelines.some((side) => side.slices.length)) {
  const all = data.timelines.flatMap((side) => side.slices);
  const first = Math.min(...all.map((one) => one[3])), last = Math.max(...all.map((one) => one[3] + one[4]));
  whole = span = [first, Math.max(last, first + 1)];
  const canvas = byId("timelines");
  let held = null;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect(), part = (event.clientX - box.left) / box.width;
    const by = Math.exp(event.deltaY * 0.002), wide = Math.min((span[1] - span[0]) * by, whole[1] - whole[0]);
    const at = span[0] + part * (span[1] - span[0]);
    span = [at - part * wide, at + (1 - part) * wide];
    timelines();
  }, { passive: false });
  canvas.addEventListener("mousedown", (event) => { held = [event.clientX, span]; });
  addEventListener("mouseup", () => { held = null; });
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    if (held) {
      const by = (event.clientX - held[0]) / box.width * (held[1][1] - held[1][0]);
      span = held[1].map((one) => one - by);
      timelines();
      return;
    }
    const at = span[0] + (event.clientX - box.left) / box.width * (span[1] - span[0]), y = event.clientY - box.top;
    let text = "";
    data.timelines.forEach((side, number) => side.slices.forEach(([track, depth, name, start, length]) => {
      const top = places[number].tops[track] + depth * LANE;
      if (start <= at && at < start + length && top <= y && y < top + LANE) text = `${side.names[name]}: ${time(length)}, ${time(start)} from the anchor`;
    }));
    byId("time-tip").textContent = text;
  });
  canvas.addEventListener("dblclick", () => { span = whole; timelines(); });
} else hide("time-section");

for (const [title, rows] of Object.entries(data.moves)) {
  if (!rows.length) continue;
  const section = make("section"), where = make("div", undefined, "scroll");
  table(where, ["verdict", "before", "after", "name"], rows.map(([verdict, name, before, after]) => [verdict, [verdict, before, after, name]]), [0, 1, 1, 0]);
  section.append(make("h2", title[0].toUpperCase() + title.slice(1)), where);
  byId("moves").append(section);
}
function draw() {
  if (!byId("flame-section").hidden) flame();
  if (!byId("time-section").hidden) timelines();
}
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
