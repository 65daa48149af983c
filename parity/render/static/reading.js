// What a reader of the code wants to see: arguments, gradients, tests, the
// whole source, another form. Chosen once and kept; what an address names is
// shown in any case. Without this file all is shown.
(() => {
  const tools = document.querySelector("#tools .switches");
  if (!tools) return;
  const KEY = "parity-read-switches";
  const boxes = [...tools.querySelectorAll("[type=checkbox]")];
  const form = tools.querySelector("select");
  let kept = {};
  try { kept = JSON.parse(localStorage.getItem(KEY) || "{}") || {}; } catch { /* a browser that keeps nothing */ }
  for (const box of boxes) box.checked = kept[box.name] === true;
  const show = () => {
    for (const box of boxes) document.body.classList.toggle(`with-${box.name}`, box.checked);
    const other = form ? form.value : "";
    for (const part of document.querySelectorAll("details.form")) {
      part.hidden = part.dataset.form !== other;
      part.open = !part.hidden;
    }
    for (const part of document.querySelectorAll(".owner, .helpers")) part.hidden = Boolean(other);
    reachable();
    for (const row of document.querySelectorAll(".row.step")) compare(row);
    if (window.CSS && CSS.highlights) CSS.highlights.set("differs", new Highlight(...ranges()));
  };

  // Words of a step that stand in half of the columns that are shown, or fewer.
  const found = new Map();
  const ranges = () => [...found.values()].flat();
  const compare = (row) => {
    const cells = [...row.querySelectorAll(".cell:not([hidden]):not(.empty)")];
    const words = cells.map((cell) => [...cell.querySelectorAll(".l.own")].flatMap((line) => {
      const list = [], walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        for (const match of walk.currentNode.data.matchAll(/\w+/g)) list.push([walk.currentNode, match]);
      }
      return list;
    }));
    const sets = words.filter((list) => list.length).map((list) => new Set(list.map(([, match]) => match[0])));
    found.set(row, sets.length < 2 ? [] : words.flat().filter(([, match]) => sets.filter((set) => set.has(match[0])).length * 2 <= sets.length)
      .map(([node, match]) => {
        const range = new Range();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        return range;
      }));
  };

  const change = () => {
    try { localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(boxes.map((box) => [box.name, box.checked])))); } catch { /* as above */ }
    show();
  };
  // What is linked to is never hidden.
  const reach = () => {
    const place = named() && document.getElementById(named());
    const row = place && place.closest(".row");
    if (!row) return;
    const needs = row.classList.contains("backward") ? "gradients" : row.matches(".among.opening") ? "arguments" : row.matches(".among.plain") ? "source" : "";
    const box = boxes.find((one) => one.name === needs);
    if (box) box.checked = true;
    if (form && place.closest(".owner, .helpers")) form.value = "";
    show();
    place.scrollIntoView({ behavior: "instant" });
  };
  tools.addEventListener("change", change);
  document.addEventListener("columns", show);
  addEventListener("hashchange", reach);
  tools.hidden = false;
  show();
  reach();
})();
