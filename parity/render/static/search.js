// Search over steps, terms, rulings, differences and faults: an index made
// with the pages, asked for when the search is first opened.
(() => {
  const button = document.querySelector(".find");
  if (!button || !window.HTMLDialogElement) return;
  button.hidden = false;
  const dialog = document.createElement("dialog");
  dialog.className = "finder";
  dialog.setAttribute("aria-label", "Search");
  dialog.innerHTML = '<label class="unseen" for="asked">Search steps, terms, rulings, differences and faults</label>'
    + '<input id="asked" role="combobox" autocomplete="off" spellcheck="false" aria-expanded="true" aria-controls="answers" placeholder="A step, a term, a ruling, a fault …">'
    + '<ul id="answers" role="listbox" aria-label="What was found"></ul><p role="status"></p>';
  document.body.append(dialog);
  const input = dialog.querySelector("input");
  const list = dialog.querySelector("ul");
  const status = dialog.querySelector("p");
  const MOST = 14;
  const SMALL = new Set("a an the of by in on is to what why how do does".split(" "));
  let found = [], chosen = 0, loading = null;

  const load = () => {
    loading = loading || new Promise((resolve) => {
      const script = document.createElement("script");
      script.src = "index.js";
      script.addEventListener("load", () => resolve());
      script.addEventListener("error", () => { status.textContent = "The index index.js is missing beside this page."; });
      document.head.append(script);
    });
    return loading;
  };
  const plain = (text) => text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "").replace(/-/g, " ").replace(/√\(?/g, "sqrt ");
  // How well an entry fits; what it is called counts for more than its words.
  const points = (entry, words) => {
    let sum = { step: 3, page: 3, term: 2, ruling: 2 }[entry.kind] || 0;
    for (const word of words) {
      const place = entry.title.indexOf(word);
      if (entry.title.split(/[\s.]/).at(-1) === word) sum += 5;
      if (place === 0) sum += 12;
      else if (place > 0) sum += /[\s._]/.test(entry.title[place - 1]) ? 9 : 4;
      else if (entry.all.includes(word)) sum += 1;
      else if (word.length > 4 && entry.close.includes(word)) sum += 1;
      else return 0;
    }
    return sum - entry.title.length / 200;
  };
  const entries = () => {
    window.parityIndex.ready = window.parityIndex.ready || window.parityIndex.map(
      ([kind, title, words, address]) => ({ kind, title: plain(title), name: title, words, address, all: plain(`${title} ${words} ${kind}`), close: plain(title).replace(/ /g, "") }));
    return window.parityIndex.ready;
  };
  // How many letters must change to make one word of another.
  const steps = (a, b) => {
    let row = [...Array(b.length + 1).keys()];
    for (let i = 0; i < a.length; i += 1) {
      row = row.reduce((next, above, j) => [...next, j ? Math.min(above + 1, next[j - 1] + 1, row[j - 1] + (a[i] !== b[j - 1])) : i + 1], []);
    }
    return row[b.length];
  };
  // The words, with those that no entry has replaced by the nearest that one has.
  const nearest = (words) => {
    const known = [...new Set(entries().flatMap((entry) => entry.all.match(/\w{3,}/g) || []))];
    return words.map((word) => {
      if (known.includes(word)) return word;
      const near = known.filter((one) => Math.abs(one.length - word.length) < 3).map((one) => [steps(word, one), one]).sort(([a], [b]) => a - b)[0];
      return near && near[0] <= Math.max(1, word.length / 3) ? near[1] : "";
    }).filter(Boolean).join(" ");
  };
  const offer = (words) => {
    const near = nearest(words);
    if (!near || near === words.join(" ")) { status.textContent = "Nothing found."; return; }
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = near;
    button.addEventListener("click", () => { input.value = near; input.focus(); search(); });
    status.replaceChildren("Nothing found. Did you mean ", button, "?");
  };
  const search = async () => {
    await load();
    const words = plain(input.value).split(/\s+/).filter((word) => word && !SMALL.has(word));
    found = !words.length ? [] : entries().map((entry) => [points(entry, words), entry])
      .filter(([sum]) => sum > 0).sort((a, b) => b[0] - a[0]).slice(0, MOST).map(([, entry]) => entry);
    chosen = 0;
    list.replaceChildren(...found.map((entry, i) => {
      const item = document.createElement("li");
      item.id = `answer-${i}`;
      item.setAttribute("role", "option");
      for (const [tag, text] of [["span", entry.kind], ["b", entry.name], ["small", entry.words]]) {
        const part = document.createElement(tag);
        part.textContent = text;
        item.append(part);
      }
      item.addEventListener("click", () => { chosen = i; go(); });
      return item;
    }));
    if (words.length && !found.length) offer(words);
    else status.textContent = !words.length ? "" : `${found.length === MOST ? "The best " : ""}${found.length} found`;
    mark();
  };
  const mark = () => {
    [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
    if (found.length) input.setAttribute("aria-activedescendant", `answer-${chosen}`);
    else input.removeAttribute("aria-activedescendant");
    const item = list.children[chosen];
    if (item) item.scrollIntoView({ block: "nearest" });
  };
  const go = () => {
    if (!found[chosen]) return;
    dialog.close();
    location.href = found[chosen].address;
  };
  const open = () => { if (!dialog.open) { dialog.showModal(); input.select(); search(); } };
  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by && found.length) {
      chosen = (chosen + by + found.length) % found.length;
      mark();
      event.preventDefault();
    } else if (event.key === "Enter") { go(); event.preventDefault(); }
  });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  button.addEventListener("click", open);
  addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, select, textarea, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) { open(); event.preventDefault(); }
  });
})();
