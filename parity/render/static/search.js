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
  const plain = (text) => text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "");
  // How well an entry fits; what it is called counts for more than its words.
  const points = (entry, words) => {
    let sum = { step: 3, page: 3, term: 2, ruling: 2 }[entry.kind] || 0;
    for (const word of words) {
      const place = entry.title.indexOf(word);
      if (entry.title.split(/[\s.]/).at(-1) === word) sum += 5;
      if (place === 0) sum += 12;
      else if (place > 0) sum += /[\s._]/.test(entry.title[place - 1]) ? 9 : 4;
      else if (entry.all.includes(word)) sum += 1;
      else return 0;
    }
    return sum - entry.title.length / 200;
  };
  const entries = () => {
    window.parityIndex.ready = window.parityIndex.ready || window.parityIndex.map(
      ([kind, title, words, address]) => ({ kind, title: plain(title), name: title, words, address, all: plain(`${title} ${words} ${kind}`) }));
    return window.parityIndex.ready;
  };
  const search = async () => {
    await load();
    const words = plain(input.value).split(/\s+/).filter(Boolean);
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
    status.textContent = !words.length ? "" : found.length ? `${found.length === MOST ? "The best " : ""}${found.length} found` : "Nothing is called so.";
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
