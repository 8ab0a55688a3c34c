const STATES = ["running", "runnable", "blocked", "elapsed", "unaccounted"];
const kindOf = (state) => (STATES.includes(state) ? state : "other");

// The parts of a call as a strip; the longest call of the page is as wide as the page.
function strip(parts, key, longest) {
  const made = make("div", undefined, "strip");
  for (const part of parts) {
    if (!part[key]) continue;
    const piece = make("i", undefined, kindOf(part.state));
    piece.style.width = `${(100 * part[key]) / longest}%`;
    piece.title = `${part.state}: ${key === "ns" ? part.time : part.typical}, ${part.text}`;
    made.append(piece);
  }
  return made;
}

function list(title, texts) {
  const made = make("ul");
  for (const text of texts) made.append(make("li", text));
  return texts.length ? [make("h3", title), made] : [];
}

const title = `Why is ${data.name} slow?`;
document.title = title;
byId("title").textContent = title;
byId("subtitle").textContent = data.subtitle;
const longest = Math.max(1, ...data.calls.map((call) => Math.max(call.ns, call.typical_ns)));
for (const call of data.calls) {
  const times = make("div", undefined, "times"), table = make("table"), head = table.insertRow();
  times.append(make("span", `this call, ${call.time}`), strip(call.parts, "ns", longest));
  if (call.typical) times.append(make("span", `the typical call, ${call.typical}`), strip(call.parts, "typical_ns", longest));
  const heads = ["state", "#time", "#share", ...(call.typical ? ["#typical"] : []), "where it went"];
  for (const text of heads) {
    const kind = text.startsWith("#") ? "n" : "";
    head.append(make("th", text.replace("#", ""), text === "#share" ? "n share" : kind));
  }
  for (const part of call.parts) {
    const row = table.insertRow();
    row.className = part.ns ? "" : "faint";
    row.append(make("td", part.state, `state ${kindOf(part.state)}-state`));
    row.append(make("td", part.time, "n"), make("td", part.share, "n share"));
    if (call.typical) row.append(make("td", part.typical, "n"));
    const where = make("td", part.text), steps = make("ul");
    for (const step of part.steps) steps.append(make("li", step));
    if (part.steps.length) where.append(steps);
    row.append(where);
  }
  const calls = byId("calls");
  calls.append(make("h2", call.heading), times, table);
  calls.append(...list("Flows into it", call.flows), ...list("Logged meanwhile", call.lines));
}
