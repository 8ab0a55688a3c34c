"use strict";
const root = document.documentElement;
const frames = [...document.querySelectorAll("g.f")].map((group) => {
  const rect = group.querySelector("rect"), title = group.querySelector("title").textContent;
  return { group, rect, text: group.querySelector("text"), title,
    name: title.slice(0, title.lastIndexOf(" (")), x: +rect.getAttribute("x"),
    y: +rect.getAttribute("y"), width: +rect.getAttribute("width") };
});
const FULL = +root.getAttribute("width"), LETTER = 7;
const place = (id, x) => { document.getElementById(id).setAttribute("x", x); };
const label = (id, text) => { document.getElementById(id).textContent = text; };
const cut = (text, letters) => (text.length <= letters ? text
  : letters < 3 ? "" : text.slice(0, letters - 2) + "..");
const title = document.getElementById("title").textContent;
let WIDTH = FULL, shown = [0, FULL, 0];

function fill() {  // the width of the window
  WIDTH = Math.max(root.getBoundingClientRect().width, 200);
  place("title", WIDTH / 2);
  place("find", WIDTH - 60);
  place("matched", WIDTH - 8);
  label("title", cut(title, Math.floor((WIDTH - 220) / 10)));
  show(...shown);
}

function show(left, width, top) {
  const scale = WIDTH / width;
  shown = [left, width, top];
  for (const frame of frames) {
    const x = (frame.x - left) * scale, wide = frame.width * scale;
    const above = frame.y < top && x <= 0.01 && x + wide >= WIDTH - 0.01;
    const seen = above || (frame.y >= top && x > -0.01 && x < WIDTH - 0.01);
    frame.group.style.display = seen ? "" : "none";
    if (!seen) continue;
    frame.group.classList.toggle("above", above && top > 0);
    const from = Math.max(x, 0), to = Math.min(x + wide, WIDTH);
    frame.rect.setAttribute("x", from);
    frame.rect.setAttribute("width", Math.max(to - from, 0));
    frame.text.setAttribute("x", from + 3);
    const letters = Math.floor((to - from - 4) / LETTER);
    frame.text.textContent = letters < 3 ? "" : cut(frame.name, letters);
  }
  label("back", top > 0 ? "Reset zoom" : "");
}
const reset = () => show(0, FULL, 0);

function search(words) {
  let sum = 0, until = -1;
  for (const frame of frames) {
    const hit = words !== "" && frame.name.toLowerCase().includes(words.toLowerCase());
    frame.group.classList.toggle("found", hit);
    frame.hit = hit;
  }
  const hits = frames.filter((frame) => frame.hit).sort((a, b) => a.x - b.x || b.width - a.width);
  for (const { x, width } of hits) {  // what is within another one counts once
    const end = x + width;
    if (end > until) { sum += end - Math.max(x, until); until = end; }
  }
  label("matched", words === "" ? "" : `${words}: ${(100 * sum / FULL).toFixed(1)}%`);
}
const ask = () => { const words = prompt("Search frames for", ""); if (words !== null) search(words); };

for (const frame of frames) frame.group.addEventListener("click", () => {
  if (frame.width > 0) show(frame.x, frame.width, frame.y);
});
document.getElementById("back").addEventListener("click", reset);
document.getElementById("find").addEventListener("click", ask);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") { reset(); search(""); }
  if (event.key === "/") { event.preventDefault(); ask(); }
});
if (root.localName === "svg") {  // a picture of its own, not part of a page
  root.setAttribute("width", "100%");
  root.removeAttribute("viewBox");
  addEventListener("resize", fill);
  fill();
} else reset();
