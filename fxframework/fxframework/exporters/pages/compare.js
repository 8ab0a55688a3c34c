const often = (before, after) => before === after ? count(before) : `${count(before)} → ${count(after)}`;
const count = (number) => number === null ? "–" : number.toLocaleString("en");
const UNCHANGED = new Set(["same", "unclear"]);

// The kind of change, which is the first cell of a row, is also its colour.
const coloured = (row) => row.cells[0].classList.add(row.cells[0].textContent);

byId("summary").textContent = data.summary;
byId("sides").textContent = ["before: ", "after: "].map((word, at) => {
  const names = data.sides[at];
  return word + names.slice(0, 3).join(", ") + (names.length > 3 ? `, … (${names.length} runs)` : "");
}).join("; ");
for (const note of data.notes) byId("notes").append(make("li", note));

if (data.explained.length) {
  table(byId("explained"), ["#change/run", "#share", "reason", "*path"], data.explained.map(
    ([change, share, reason, path]) => [time(change, true), share === null ? "–" : (100 * share).toFixed(0) + "%", reason, path]),
    (row, at) => row.cells[0].classList.add(data.explained[at][0] > 0 ? "slower" : "faster"));
} else hide("explained-section");

// --- Calls ---
const MOST = 500;
function calls() {
  const words = byId("find").value.toLowerCase(), also = byId("same").checked || words;
  const found = data.calls.filter((one) => (also || !UNCHANGED.has(one[0])) && one[1].toLowerCase().includes(words));
  table(byId("calls"), ["verdict", "*name", "#ratio", "#~95% interval", "#before/call", "#after/call", "#~p99 before", "#~p99 after", "#change/run", "#calls/run", "~where"],
    found.slice(0, MOST).map(([verdict, name, ratio, low, high, change, before, after, where]) => [
      verdict, name, ratio === null ? "–" : ratio.toFixed(2), low === null ? "–" : `${low.toFixed(2)}–${high.toFixed(2)}`,
      time(before[1]), time(after[1]), time(before[2]), time(after[2]), time(change, true), often(before[0], after[0]), where]),
    coloured);
  const more = found.length > MOST ? `, the first ${MOST} shown` : "";
  const cut = data.omitted ? `; ${count(data.omitted)} that did not change are not on this page` : "";
  byId("count").textContent = `${count(found.length)} of ${count(data.calls.length)} names${more}${cut}`;
}
if (data.calls.length) {
  byId("find").addEventListener("input", calls);
  byId("same").addEventListener("change", calls);
  calls();
} else hide("calls-section");

// --- Flame graph ---
function shade(before, after) {
  let share = 0;
  if (before !== after) share = !before ? 1 : !after ? -1 : Math.max(-1, Math.min(1, Math.log(after / before) / Math.log(1.5)));
  const full = share > 0 ? [201, 32, 32] : [30, 96, 200], strength = Math.abs(share);
  const none = css("--neutral").split(" ").map(Number);
  return [`rgb(${none.map((low, at) => Math.round(low + (full[at] - low) * strength)).join(",")})`, strength > 0.55 ? "#fff" : css("--ink")];
}
const pictures = [];
if (data.frames.length) {
  byId("widths").textContent = data.widths.toUpperCase();
  pictures.push(flameGraph(byId("flame"), data.frames, {
    paint: ([, , , , before, after]) => shade(before, after),
    label: ([name]) => name,
    tell: (frame) => {
      const [name, , , , before, after] = frame ?? [];
      byId("flame-tip").textContent = !frame ? "" : `${name}: ${time(before)} before, ${time(after)} after` +
        (before && after ? `, ${(100 * (after / before - 1)).toFixed(1)}%` : after ? ", new" : ", gone");
    },
  }));
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
const LANE = 14;
const verdicts = new Map(data.calls.map((one) => [one[1], one[0]]));
// The colours of the flame graph: red took longer, blue shorter, grey did not change.
function slice(name) {
  const verdict = verdicts.get(name);
  if (["slower", "more", "new"].includes(verdict)) return ["#c92020", "#fff"];
  if (["faster", "fewer", "gone"].includes(verdict)) return ["#1e60c8", "#fff"];
  return [`rgb(${css("--neutral")})`, css("--ink")];
}
let view = null, places = [];
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
  const scale = width / (view.to - view.from);
  const zero = -view.from * scale;
  ruler(pen, width, height, view.from, view.to);
  data.timelines.forEach((side, at) => {
    side.slices.forEach(([track, depth, name, start, length]) => {
      const [x, wide] = within((start - view.from) * scale, length * scale, width);
      if (wide < 0) return;
      const y = places[at].tops[track] + depth * LANE, text = side.names[name];
      const [back, ink] = slice(text);
      pen.fillStyle = back;
      pen.fillRect(x, y, Math.max(wide - 1, 0.7), LANE - 1);
      pen.fillStyle = ink;
      if (wide > 24) clipped(pen, text, x + 3, y + LANE / 2, wide - 4);
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
  view = zoomable(byId("timelines"), [first, Math.max(last, first + 1)], timelines, (event) => {
    const at = view.from + (event.offsetX / event.target.clientWidth) * (view.to - view.from), y = event.offsetY;
    let text = "";
    data.timelines.forEach((side, number) => side.slices.forEach(([track, depth, name, start, length]) => {
      const top = places[number].tops[track] + depth * LANE;
      if (start <= at && at < start + length && top <= y && y < top + LANE) text = `${side.names[name]}: ${time(length)}, ${moment(start)} from the anchor`;
    }));
    byId("time-tip").textContent = text;
  });
  pictures.push(timelines);
} else hide("time-section");

for (const [title, rows] of Object.entries(data.moves)) {
  if (!rows.length) continue;
  const section = make("section"), where = make("div");
  table(where, ["verdict", "#before", "#after", "*name"], rows.map(([verdict, name, before, after]) => [verdict, before, after, name]), coloured);
  section.append(make("h2", title[0].toUpperCase() + title.slice(1)), where);
  byId("moves").append(section);
}
drawAlways(() => pictures.forEach((draw) => draw()));
