// Which columns are shown, and in which order; chosen once and kept.
// Without this file all four are shown, two or four beside one another.
(() => {
  const tools = document.getElementById("tools");
  if (!tools) return;
  const KEY = "parity-read-columns";
  // The pixels of a column in which code can be read.
  const LEAST = 370;
  const main = document.getElementById("main");
  const bar = tools.querySelector(".columns");
  const pills = [...tools.querySelectorAll(".pill")];
  const names = pills.map((pill) => pill.dataset.col);
  const titles = Object.fromEntries(pills.map((pill) => [pill.dataset.col, pill.textContent.trim()]));
  const known = (list) => [...new Set(Array.isArray(list) ? list : [])].filter((name) => names.includes(name));
  const state = { order: names, shown: null, tab: names[0] };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) || "{}") || {};
    const order = known(kept.order);
    state.order = [...order, ...names.filter((name) => !order.includes(name))];
    state.shown = known(kept.shown).length ? known(kept.shown) : null;
    if (names.includes(kept.tab)) state.tab = kept.tab;
  } catch { /* a browser that keeps nothing, or what is no JSON */ }
  const save = () => {
    try { localStorage.setItem(KEY, JSON.stringify(state)); } catch { /* as above */ }
  };

  const room = () => {
    const cells = document.querySelector(".row.step .cells");
    const width = cells && cells.clientWidth || main.clientWidth;
    return Math.max(1, Math.min(names.length, Math.floor(width / LEAST)));
  };
  const shown = () => {
    if (room() === 1) return [state.tab];
    const chosen = state.shown || names;
    return state.order.filter((name) => chosen.includes(name));
  };

  // The row that is being read stays where it is.
  const keepingPlace = (change) => {
    const edge = tools.getBoundingClientRect().bottom;
    const row = [...document.querySelectorAll(".row")].find(
      (one) => one.getBoundingClientRect().bottom > edge + 40);
    const before = row && row.getBoundingClientRect().top;
    change();
    if (row && scrollY) scrollBy({ top: row.getBoundingClientRect().top - before, behavior: "instant" });
  };

  const apply = () => {
    const columns = shown();
    const across = Math.min(columns.length, room());
    document.documentElement.style.setProperty("--n", across);
    document.body.classList.toggle("headed", columns.length <= across && across > 1);
    for (const cells of document.querySelectorAll(".cells")) {
      const by = Object.fromEntries([...cells.children].map((c) => [c.dataset.col, c]));
      cells.append(...state.order.map((name) => by[name]).filter(Boolean));
      for (const cell of cells.children) cell.hidden = !columns.includes(cell.dataset.col);
    }
    draw(columns);
    reachable();
    document.dispatchEvent(new Event("columns"));
  };
  const change = (how) => { keepingPlace(() => { how(); apply(); }); save(); };

  const press = (name) => change(() => {
    if (room() === 1) { state.tab = name; return; }
    const columns = shown();
    const left = columns.filter((one) => one !== name);
    state.shown = columns.includes(name) ? (left.length ? left : columns) : [...columns, name];
    state.tab = name;
  });

  const draw = (columns) => {
    const at = document.activeElement && document.activeElement.id;
    const open = tools.querySelector("details[open]");
    bar.replaceChildren(...state.order.map((name) => {
      const pill = document.createElement("button");
      pill.type = "button";
      pill.className = "pill";
      pill.id = `show-${name}`;
      pill.dataset.col = name;
      pill.textContent = titles[name];
      pill.setAttribute("aria-pressed", String(columns.includes(name)));
      pill.addEventListener("click", () => press(name));
      return pill;
    }), order(open));
    const back = at && document.getElementById(at);
    if (back && !back.disabled) back.focus();
  };

  const order = (open) => {
    const details = document.createElement("details");
    details.className = "order";
    details.open = Boolean(open);
    const summary = document.createElement("summary");
    summary.id = "order";
    summary.textContent = "Order";
    const box = document.createElement("div");
    state.order.forEach((name, place) => {
      const set = document.createElement("fieldset");
      const legend = document.createElement("legend");
      legend.textContent = titles[name];
      set.append(legend);
      for (const [by, sign, word] of [[-1, "←", "left"], [1, "→", "right"]]) {
        const button = document.createElement("button");
        button.type = "button";
        button.id = `${word}-${name}`;
        button.textContent = sign;
        button.setAttribute("aria-label", `Move ${titles[name]} to the ${word}`);
        button.disabled = place + by < 0 || place + by >= names.length;
        button.addEventListener("click", () => change(() => {
          const moved = [...state.order];
          [moved[place], moved[place + by]] = [moved[place + by], moved[place]];
          state.order = moved;
        }));
        set.append(button);
      }
      box.append(set);
    });
    details.append(summary, box);
    return details;
  };

  let before = room();
  addEventListener("resize", () => {
    if (room() !== before) { before = room(); keepingPlace(apply); }
  });
  apply();
})();
