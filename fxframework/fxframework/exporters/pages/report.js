const length = Math.max(data.length, 1);

function colour(number) {
  const hue = 40 + ((number * 0.618034) % 1) * 280;  // no red: that is an error
  return `hsl(${hue} 55% ${css("--frame")})`;
}

// --- the timeline -------------------------------------------------------------------------------

const canvas = byId("timeline");
const ROW = 15, GAP = 6, HEAD = 16, COUNTER = 24, LOGS = 32;
const LOG_ROWS = 2, LONGEST_LOG = 320;  // rows of texts of logs, and pixels of one
const ERROR = 5;  // level of a log
const TALL = 1200, MOST_ROWS = 10;  // pixels of all folded tracks, and levels of one
let found = "";
let places = [], heads = [], logPlaces = [];

const STATES = [["ran", "#2da44e", 1], ["could run, and had no CPU", "#bf8700", 1], ["waited", "#8b949e", 0.35]];
const STATE = 5;  // pixels of the strip of states
const MANY = 300;  // arrows that are drawn clearly
let tops = [], statePlaces = [];

const lanes = data.tracks.map((track) => {
  let most = 0;
  for (const depth of track.depth) if (depth > most) most = depth;
  return Math.min(most + 1, 64);
});

const folds = Math.min(Math.max(Math.floor((TALL / lanes.length - HEAD - GAP) / ROW), 1), MOST_ROWS);
const foldable = lanes.map((rows) => rows > folds + 1);
const unfolded = new Set();

// Per track, the slices in which the process logged an error: the innermost one of each thread.
const failed = data.tracks.map((track) => {
  const marked = new Set();
  for (const logs of data.logs) logs.start.forEach((when, at) => {
    if (logs.level[at] < ERROR || !track.pid || logs.pid[at] !== track.pid) return;
    let inner = -1;
    track.start.forEach((start, row) => {
      const around = start <= when && when < start + track.dur[row];
      if (around && (inner < 0 || track.depth[row] > track.depth[inner])) inner = row;
    });
    if (inner >= 0) marked.add(inner);
  });
  return marked;
});
const rowsOf = (at) => (foldable[at] && !unfolded.has(at) ? folds : lanes[at]);
const foldAll = byId("fold");

function fold(at) {
  if (!unfolded.delete(at)) unfolded.add(at);
  draw();
}

function height() {
  let total = RULER + GAP;
  if (data.logs.length) total += HEAD + LOGS + GAP;
  if (data.cpus.length) total += HEAD + data.cpus.length * ROW + GAP;
  total += data.counters.length * (HEAD + COUNTER + GAP);
  for (const [at, track] of data.tracks.entries()) {
    total += HEAD + rowsOf(at) * ROW + GAP + (track.busy ? 8 : 0) + (track.states ? STATE + 2 : 0);
  }
  return Math.min(Math.max(total, 120), Math.floor(32000 / (window.devicePixelRatio || 1)));
}

function band(pen, wide, top, text) {
  pen.fillStyle = css("--band");
  pen.fillRect(0, top, wide, HEAD);
  pen.fillStyle = css("--ink");
  pen.fillText(text, 3, top + HEAD / 2);
  return top + HEAD;
}

function drawLogs(pen, wide, top) {
  const span = view.to - view.from, bins = new Map();
  for (const logs of data.logs) {
    logs.start.forEach((start, at) => {
      const x = Math.floor((((start - view.from) / span) * wide) / 4);
      if (x < 0 || x * 4 > wide) return;
      const bin = bins.get(x) || { count: 0, level: -1, text: "" };
      bin.count += 1;
      // The text is that of the most severe one.
      if (logs.level[at] > bin.level) { bin.level = logs.level[at]; bin.text = logs.message[at]; }
      bins.set(x, bin);
    });
  }
  top = band(pen, wide, top, "logs");
  const most = Math.max(...[...bins.values()].map((bin) => bin.count), 1);
  const shades = ["#8b949e", "#8b949e", "#8b949e", "#2da44e", "#bf8700", "#d1242f", "#8250df"];
  const rows = Array.from({ length: LOG_ROWS }, () => []);
  // The most severe ones get their text first; a text takes the first row with room for it.
  const order = [...bins.entries()].sort(([a, one], [b, other]) => other.level - one.level || a - b);
  for (const [at, { count, level, text }] of order) {
    const tall = 8 + ((LOGS - 8) * count) / most;
    pen.fillStyle = shades[level] || shades[0];
    pen.fillRect(at * 4, top + LOGS - tall, 3, tall);
    logPlaces.push([at * 4, top, count, text]);
  }
  for (const [at, { count, level, text }] of order) {
    const x = at * 4;
    const shown = count > 1 ? `${text} (+${count - 1})` : text;
    const room = Math.min(pen.measureText(shown).width + 6, LONGEST_LOG, wide - x - 6);
    const free = rows.findIndex((taken) => taken.every(([from, to]) => x + 6 + room < from || x > to));
    if (free < 0 || room < 30) continue;
    rows[free].push([x, x + 6 + room]);
    const y = top + LOGS - (free + 0.5) * (LOGS / LOG_ROWS);
    pen.fillStyle = css("--paper");
    pen.fillRect(x + 5, y - ROW / 2, room, ROW - 1);
    pen.fillStyle = level >= ERROR ? css("--red") : css("--soft");
    clipped(pen, shown, x + 6, y, room);
  }
  return top + LOGS + GAP;
}

function drawCounter(pen, wide, top, counter) {
  const span = view.to - view.from;
  let low = 0, high = 0;
  for (const value of counter.value) if (value !== null) { low = Math.min(low, value); high = Math.max(high, value); }
  top = band(pen, wide, top, `${counter.label}  ${low} \u2026 ${high}`);
  const y = (value) => top + COUNTER - 2 - ((value - low) / (high - low || 1)) * (COUNTER - 4);
  pen.strokeStyle = css("--accent");
  pen.beginPath();
  let last = null;
  counter.start.forEach((start, at) => {
    const value = counter.value[at];
    if (value === null) return;
    const x = ((start - view.from) / span) * wide;
    if (last === null) pen.moveTo(x, y(value)); else { pen.lineTo(x, y(last)); pen.lineTo(x, y(value)); }
    last = value;
  });
  if (last !== null) pen.lineTo(wide, y(last));
  pen.stroke();
  return top + COUNTER + GAP;
}

// Draw the rows of a track or a CPU that are in view, one of several in the same pixel.
function drawRows(pen, wide, top, track, rows, failures) {
  const span = view.to - view.from, filled = new Map();
  for (let at = 0; at < track.start.length; at++) {
    const open = track.dur[at] < 0;
    const start = track.start[at], end = open ? length : start + track.dur[at];
    if (end < view.from || start > view.to) continue;
    const x = ((start - view.from) / span) * wide;
    const w = Math.max(((end - start) / span) * wide, 1);
    const depth = track.depth ? track.depth[at] : 0;
    if (depth >= rows) continue;
    const y = top + depth * ROW;
    const pixel = Math.floor(x);
    if (w <= 1 && filled.get(depth) === pixel) continue;
    filled.set(depth, w <= 1 ? pixel : -1);
    const name = data.names[track.name[at]];
    const faded = found && !name.toLowerCase().includes(found);
    pen.globalAlpha = faded ? 0.15 : open ? 0.6 : 1;
    const bad = failures.has(at);
    pen.fillStyle = bad ? "#c92020" : colour(track.name[at]);
    pen.fillRect(x, y, w, ROW - 1);
    const left = Math.max(x, 0), room = Math.min(x + w, wide) - left;
    if (room > 24 && !faded) {
      pen.fillStyle = bad ? "#fff" : css("--on-frame");
      clipped(pen, name, left + 3, y + ROW / 2, room - 3);
    }
    places.push([x, y, w, track, at]);
  }
  pen.globalAlpha = 1;
}

function drawCpus(pen, wide, top) {
  top = band(pen, wide, top, "CPUs, and the threads that they ran");
  for (const cpu of data.cpus) {
    drawRows(pen, wide, top, cpu, 1, new Set());
    const label = cpu.label.replace("CPU ", ""), room = pen.measureText(label).width + 6;
    pen.fillStyle = css("--band");
    pen.fillRect(0, top, room, ROW - 1);
    pen.fillStyle = css("--ink");
    pen.fillText(label, 3, top + ROW / 2);
    top += ROW;
  }
  return top + GAP;
}

function drawStates(pen, wide, top, states) {
  const span = view.to - view.from;
  let last = -1;
  states.start.forEach((start, at) => {
    const x = ((start - view.from) / span) * wide, w = (states.dur[at] / span) * wide;
    if (x + w < 0 || x > wide || Math.floor(x + w) === last) return;
    last = Math.floor(x + w);
    const [what, shade, alpha] = STATES[states.state[at]];
    pen.globalAlpha = alpha;
    pen.fillStyle = shade;
    pen.fillRect(x, top, Math.max(w, 1), STATE);
    statePlaces.push([x, top, Math.max(w, 1), `${what}: ${time(states.dur[at])}, from ${moment(start)}`]);
  });
  pen.globalAlpha = 1;
  return top + STATE + 2;
}

function drawArrows(pen, wide) {
  const span = view.to - view.from;
  const seen = data.arrows.filter(([, , sent, , , arrived]) => arrived >= view.from && sent <= view.to);
  pen.strokeStyle = pen.fillStyle = css("--ink");
  pen.globalAlpha = seen.length > MANY ? 0.12 : 0.6;
  const place = (track, depth, when) => [
    ((when - view.from) / span) * wide, tops[track] + (Math.min(depth, rowsOf(track) - 1) + 0.5) * ROW,
  ];
  for (const [from, above, sent, to, below, arrived] of seen) {
    const [x0, y0] = place(from, above, sent), [x1, y1] = place(to, below, arrived);
    const bend = Math.min(Math.max(Math.abs(x1 - x0) / 2, 8), 60);
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x1, y1); pen.lineTo(x1 - 6, y1 - 3); pen.lineTo(x1 - 6, y1 + 3);
    pen.fill();
  }
  pen.globalAlpha = 1;
}

function drawTrack(pen, wide, top, track, number) {
  const span = view.to - view.from;
  const rows = rowsOf(number), hidden = lanes[number] - rows;
  const name = track.process.trim() ? `${track.process} / ${track.label}` : track.label;
  const sign = foldable[number] ? (hidden ? "\u25b8 " : "\u25be ") : "";
  if (foldable[number]) heads.push([top, number]);
  top = band(pen, wide, top, sign + name + (hidden ? `, ${hidden} more levels: click` : ""));
  if (track.busy) {
    const { from, width, share } = track.busy;
    pen.fillStyle = css("--accent");
    share.forEach((part, at) => {
      const x = ((from + at * width - view.from) / span) * wide;
      const end = x + (width / span) * wide;
      if (end < 0 || x > wide) return;
      pen.globalAlpha = part / 100;
      pen.fillRect(x, top, Math.max(end - x, 1), 6);
    });
    pen.globalAlpha = 1;
    top += 8;
  }
  if (track.states) top = drawStates(pen, wide, top, track.states);
  tops[number] = top;
  drawRows(pen, wide, top, track, rows, failed[number]);
  return top + rows * ROW + GAP;
}

function draw() {
  const [pen, wide] = sized(canvas, height());
  places = [];
  heads = [];
  logPlaces = [];
  statePlaces = [];
  foldAll.hidden = !foldable.includes(true);
  foldAll.textContent = unfolded.size ? "Fold all threads" : "Unfold all threads";
  ruler(pen, wide, canvas.clientHeight, view.from, view.to);
  let top = RULER + GAP;
  if (data.logs.length) top = drawLogs(pen, wide, top);
  for (const counter of data.counters) top = drawCounter(pen, wide, top, counter);
  if (data.cpus.length) top = drawCpus(pen, wide, top);
  data.tracks.forEach((track, at) => { top = drawTrack(pen, wide, top, track, at); });
  drawArrows(pen, wide);
  overview();
}

function overview() {
  const target = byId("overview");
  const [pen, wide] = sized(target, 40);
  const bins = new Float64Array(Math.ceil(wide));
  for (const track of data.tracks) for (let at = 0; at < track.start.length; at++) {
    if (track.depth[at]) continue;
    const from = Math.floor((track.start[at] / length) * wide);
    const to = Math.floor(((track.start[at] + Math.max(track.dur[at], 0)) / length) * wide);
    for (let x = Math.max(from, 0); x <= to && x < bins.length; x++) bins[x]++;
  }
  const most = Math.max(...bins, 1);
  pen.fillStyle = css("--soft");
  bins.forEach((count, x) => pen.fillRect(x, 40 - (36 * count) / most, 1, (36 * count) / most));
  pen.fillStyle = css("--accent");
  pen.globalAlpha = 0.25;
  pen.fillRect((view.from / length) * wide, 0, Math.max(((view.to - view.from) / length) * wide, 2), 40);
  pen.globalAlpha = 1;
}

const headAt = (y) => heads.find(([top]) => y >= top && y < top + HEAD);

function describe(event) {
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  canvas.style.cursor = headAt(y) ? "pointer" : "";
  const hit = places.findLast(([left, top, w]) => x >= left && x <= left + Math.max(w, 3) && y >= top && y < top + ROW);
  const tip = byId("tip");
  const log = logPlaces.findLast(([left, top]) => y >= top && y < top + LOGS && x >= left - 3 && x <= left + 6);
  if (!hit && log) { tip.textContent = log[3] + (log[2] > 1 ? ` (and ${log[2] - 1} more)` : ""); return; }
  const state = statePlaces.findLast(([left, top, w]) => y >= top && y < top + STATE && x >= left && x <= left + w);
  if (!hit && state) { tip.textContent = state[3]; return; }
  if (!hit) { tip.textContent = moment(view.from + ((view.to - view.from) * x) / box.width); return; }
  const [, , , track, at] = hit;
  const open = track.dur[at] < 0, number = data.tracks.indexOf(track);
  const bad = number >= 0 && failed[number].has(at) ? ", its process logged an error" : "";
  const where = track.process ? `${track.process} / ${track.label}` : track.label;
  tip.textContent = `${data.names[track.name[at]]}: ${open ? "never closed" : time(track.dur[at])}${bad}, from ${moment(track.start[at])}, ${where}`;
}

const view = zoomable(canvas, [0, length], draw, describe, (event) => {
  const head = headAt(event.offsetY);
  if (head) fold(head[1]);
});
foldAll.addEventListener("click", () => {
  if (unfolded.size) unfolded.clear();
  else foldable.forEach((able, at) => { if (able) unfolded.add(at); });
  draw();
});
canvas.addEventListener("keydown", (event) => {
  const span = view.to - view.from;
  const moves = { w: [0.1, -0.1], s: [-0.1, 0.1], a: [-0.1, -0.1], d: [0.1, 0.1] };
  const move = moves[event.key.toLowerCase()];
  if (move) view.show(view.from + span * move[0], view.to + span * move[1]);
});
byId("overview").addEventListener("pointerdown", (event) => {
  const span = view.to - view.from, at = (event.offsetX / event.target.clientWidth) * length;
  view.show(at - span / 2, at + span / 2);
});
byId("find").addEventListener("input", (event) => { found = event.target.value.toLowerCase(); draw(); });

// --- flame graph --------------------------------------------------------------------------------

const flames = data.flame.map(({ capture, frames }) => {
  if (data.flame.length > 1) byId("flames").append(make("h3", capture));
  const target = make("canvas", undefined, "flame");
  byId("flames").append(target);
  const text = ([name, , , , ns]) => `${data.names[name]} ${time(ns)}`;
  return flameGraph(target, frames, {
    paint: ([name]) => [colour(name), css("--on-frame")],
    label: text,
    tell: (frame) => { target.title = frame ? text(frame) : ""; },
  });
});

// --- tables -------------------------------------------------------------------------------------

byId("title").textContent = data.title;
document.title = data.title;
byId("subtitle").textContent = `${moment(data.length)}; ${data.captures.length} capture${data.captures.length === 1 ? "" : "s"}` + (data.begins ? `; time 0 is ${data.begins}` : "");
const jump = (row, start, span) => {
  row.dataset.start = start;
  row.addEventListener("click", () => { view.show(start - span, start + 2 * span); canvas.scrollIntoView({ block: "start" }); });
};
if (data.slowest.length) {
  table(byId("slowest"), ["name", "thread", "#start", "#duration"],
    data.slowest.map((each) => [data.names[each.name], each.thread, moment(each.start), (each.open ? "never closed, " : "") + time(each.dur)]),
    (row, at) => jump(row, data.slowest[at].start, Math.max(data.slowest[at].dur, 10)));
} else hide("slowest-section");
if (data.byname.length) {
  table(byId("byname"), ["name", "#count", "#total", "#mean", "#longest"],
    data.byname.map(([name, count, total, longest]) => [data.names[name], count, time(total), time(total / count), time(longest)]));
} else hide("byname-section");
if (!flames.length) hide("flame-section");
if (data.logs.length) {
  const rows = data.logs.flatMap((logs) => logs.start.map((start, at) => [moment(start), logs.severity[at], logs.tag[at], logs.message[at]]));
  table(byId("logs"), ["#time", "severity", "tag", "message"], rows, (row) => { row.children[1].className = row.children[1].textContent.toLowerCase(); });
} else hide("logs-section");
table(byId("captures"), ["name", "format", "#bytes", "#records", "tables"],
  data.captures.map((each) => [each.name, each.format, each.size, each.records, each.rows.map(([name, rows]) => `${name} ${rows}`).join(", ")]));
const findings = data.captures.flatMap((capture) => capture.findings.map((each) => [each.code, each.severity, each.offset, each.message, each.hex, capture.name]));
if (findings.length) {
  table(byId("findings"), ["code", "severity", "#offset", "message", "bytes there", "capture"], findings,
    (row) => { row.children[1].className = row.children[1].textContent; });
} else hide("findings-section");
const drawn = data.tracks.reduce((sum, track) => sum + track.start.length, 0);
const all = data.tracks.reduce((sum, track) => sum + track.total, 0);
const legend = [];
if (data.tracks.some((track) => track.states)) legend.push("The strip under the name of a thread is green where it ran, amber where it could run and had no CPU, and grey where it waited.");
if (data.arrows.length) legend.push("Arrows are flows.");
byId("legend").textContent = legend.join(" ");
if (drawn < all) byId("limits").textContent = `The ${drawn} longest of ${all} slices are drawn; a bar above a track shows how busy it was.`;
if (!data.tracks.length && !data.counters.length && !data.logs.length && !data.cpus.length) hide("timeline-section");
drawAlways(() => [draw, ...flames].forEach((one) => one()));
