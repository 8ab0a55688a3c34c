byId("title").textContent = data.odd.length
  ? `${data.unlike.toLocaleString("en")} of ${data.captures.toLocaleString("en")} captures are unlike the rest${data.unlike > data.odd.length ? `; the ${data.odd.length} most unlike` : ""}`
  : `none of ${data.captures.toLocaleString("en")} captures is unlike the rest`;
const most = Math.max(1, ...data.odd.map((one) => one.score));
for (const one of data.odd) {
  const reasons = make("table");
  for (const reason of one.reasons.slice(0, 200)) {
    const row = reasons.insertRow(), far = row.insertCell();
    const bar = make("span", undefined, reason.distance < 0 ? "bar less" : "bar");
    bar.style.width = `${Math.max(8 * Math.abs(reason.distance) / most, 0.1)}rem`;
    far.append(bar, Math.abs(reason.distance).toFixed(1));
    row.insertCell().textContent = reason.text;
  }
  byId("odd").append(make("h2", one.capture), reasons);
}
