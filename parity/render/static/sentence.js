// The front page's sentence: what each token looks at, and what becomes of the
// answer where something of the model is taken away.
(() => {
  const box = document.getElementById("sentence");
  if (!box) return;
  const at = (id) => document.getElementById(id);
  const [form, own, stage, lines] = [at("choose"), at("own"), box.querySelector(".stage"), box.querySelector(".lines")];
  const NS = document.documentElement.namespaceURI.replace("1999/xhtml", "2000/svg");
  const percent = (share) => `${Math.round(100 * share)} %`;
  let texts = [], chosen = null;

  const make = (tag, words, attributes) => {
    const one = document.createElement(tag);
    one.textContent = words;
    for (const [key, value] of Object.entries(attributes || {})) one.setAttribute(key, value);
    return one;
  };
  const now = () => {
    const text = texts[form.text.value];
    const change = text.changes[form.change.value];
    const kind = form.kind.value;
    return { text, change, kind, from: kind === "encoder" ? "source" : "answer", to: kind === "decoder" ? "answer" : "source" };
  };
  // The weights of one query: of a head, or the mean of all.
  const weights = ({ change, kind }, query) => {
    const { shape: [, heads, queries, keys], bytes } = change.weights[kind];
    const all = change.weights[kind].all ??= Uint8Array.from(atob(bytes), (c) => c.charCodeAt(0));
    const wanted = form.head.value === "" ? [...Array(heads).keys()] : [Number(form.head.value)];
    return Array.from({ length: keys }, (_, key) => wanted.reduce((sum, head) => (
      sum + all[((Number(form.layer.value) * heads + head) * queries + query) * keys + key]), 0) / wanted.length / 255);
  };

  const chips = () => {
    const { text, change, from } = now();
    const chip = (row) => (words, i) => {
      const wrong = row === "answer" && words !== text.right[i];
      const one = make(row === from ? "button" : "span", words, { class: `chip${wrong ? " wrong" : ""}`, "data-row": row, "data-i": i });
      if (wrong) one.title = `${text.right[i]} is right`;
      if (row !== from) return one;
      one.type = "button";
      for (const event of ["click", "focus", "mouseenter"]) one.addEventListener(event, () => look(i));
      return one;
    };
    at("source-chips").replaceChildren(...text.source.map(chip("source")),
      make("span", "padding", { class: "chip padding", "data-row": "source", "data-i": text.source.length }));
    at("answer-chips").replaceChildren(make("span", "begin", { class: "chip padding", "data-row": "answer", "data-i": -1 }),
      ...change.best.map(([[words]]) => words).map(chip("answer")));
  };

  // A line from the middle of one chip to that of another; along a row, an arc.
  const line = (from, to, weight) => {
    const frame = stage.getBoundingClientRect(), a = from.getBoundingClientRect(), b = to.getBoundingClientRect();
    const above = b.top < a.top - 4, same = Math.abs(b.top - a.top) <= 4;
    const x = a.left + a.width / 2 - frame.left, y = (same || above ? a.top : a.bottom) - frame.top;
    const u = b.left + b.width / 2 - frame.left, v = (same ? b.top : above ? b.bottom : b.top) - frame.top;
    const lift = same ? -14 - Math.abs(u - x) / 6 : (v - y) / 2;
    const path = document.createElementNS(NS, "path");
    path.setAttribute("d", `M${x} ${y}C${x} ${y + lift} ${u} ${same ? v + lift : v - lift} ${u} ${v}`);
    path.style.strokeWidth = 1 + 9 * weight;
    path.style.opacity = .2 + .8 * weight;
    return path;
  };

  const look = (i) => {
    const state = now();
    const { text, change, kind, from, to } = state;
    chosen = i;
    const all = weights(state, i);
    const name = (key) => (to === "source" ? text.source[key] ?? "padding" : text.read[key]);
    const chip = (row, place) => box.querySelector(`[data-row=${row}][data-i="${place}"]`);
    for (const one of box.querySelectorAll(".chip")) {
      one.classList.toggle("chosen", one.dataset.row === from && Number(one.dataset.i) === i);
      one.style.removeProperty("--weight");
    }
    const drawn = all.flatMap((weight, key) => {
      const end = chip(to, to === "source" ? key : key - 1);
      if (!end) return [];
      end.style.setProperty("--weight", weight);
      return weight > .02 && end !== chip(from, i) ? [line(chip(from, i), end, weight)] : [];
    });
    lines.replaceChildren(...drawn);
    const most = [...all.keys()].sort((a, b) => all[b] - all[a]).filter((key) => all[key] > .01).slice(0, 3);
    box.querySelector(".looks").textContent = `“${chip(from, i).textContent}” looks at ${most.map((key) => `“${name(key)}” ${percent(all[key])}`).join(", ")}.`;
    box.querySelector(".bars").replaceChildren(...(from === "answer" ? change.best[i] : []).map(([words, p]) => {
      const row = make("p", "");
      row.append(make("code", words), make("span", "", { class: "bar", style: `width:${100 * p}%` }), make("span", percent(p)));
      return row;
    }));
    const part = form.kind.selectedOptions[0].dataset.part;
    for (const one of document.querySelectorAll(".whole .part")) one.classList.toggle("looked", one.dataset.path === part);
  };

  const show = () => { chips(); const { from, text } = now(); look(Math.min(chosen ?? 0, (from === "source" ? text.source : text.right).length - 1)); };
  const fill = () => {
    const before = form.text.value;
    form.text.replaceChildren(...texts.map((one, i) => make("option", one.text, { value: i })));
    form.text.value = before || 0;
  };
  form.addEventListener("change", (event) => { if (event.target.name === "text" || event.target.name === "kind") chosen = 0; show(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  own.addEventListener("submit", async (event) => {
    event.preventDefault();
    const told = box.querySelector(".looks");
    told.textContent = "The model reads …";
    const ask = async () => {
      const answer = await fetch(`/sentence.json?text=${encodeURIComponent(at("own-text").value)}`);
      if (answer.status === 202) { setTimeout(ask, 500); return; }
      const found = await answer.json();
      if (found.problem) { told.textContent = found.problem; return; }
      texts.unshift(found);
      fill();
      form.text.value = 0;
      chosen = 0;
      show();
    };
    try { await ask(); } catch { told.textContent = "The server does not answer; start it again."; }
  });
  addEventListener("resize", () => { if (texts.length) look(chosen); });

  const script = document.createElement("script");
  script.src = "sentences.js";
  script.addEventListener("load", () => { texts = window.paritySentences; box.hidden = false; fill(); show(); });
  document.head.append(script);
})();
