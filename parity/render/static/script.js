"use strict";
// Columns that can be hidden and moved, and tabs where the screen is narrow.
// Without this file everything can be read all the same.
(() => {
  const heads = document.getElementById("heads");
  if (!heads) return;
  const tools = document.getElementById("tools");
  const KEY = "parity-read-columns";
  const names = [...heads.querySelectorAll(".cell")].map((cell) => cell.dataset.col);
  const titles = Object.fromEntries([...heads.querySelectorAll(".cell")].map(
    (cell) => [cell.dataset.col, cell.textContent.trim()]));
  let state = { order: names, hidden: [], tab: names[0] };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) || "{}");
    const order = (kept.order || []).filter((name) => names.includes(name));
    state = {
      order: [...order, ...names.filter((name) => !order.includes(name))],
      hidden: (kept.hidden || []).filter((name) => names.includes(name)),
      tab: names.includes(kept.tab) ? kept.tab : names[0],
    };
  } catch { /* a browser that keeps nothing, or what is no JSON */ }

  // The row that is being read stays where it is.
  const keepingPlace = (change) => {
    const edge = heads.getBoundingClientRect().bottom;
    const rows = [...document.querySelectorAll(".row")];
    const row = rows.find((one) => {
      const { top } = one.getBoundingClientRect();
      return top >= edge - 4 && top < window.innerHeight / 2;
    }) || rows.find((one) => one.getBoundingClientRect().bottom > edge + 4);
    const before = row && row.getBoundingClientRect().top;
    change();
    if (!row || window.scrollY === 0) return;
    window.scrollBy(0, row.getBoundingClientRect().top - before);
    const now = heads.getBoundingClientRect().bottom;
    const { top, bottom } = row.getBoundingClientRect();
    if (bottom <= now + 4) window.scrollBy(0, top - now);
  };
  const save = () => {
    try { localStorage.setItem(KEY, JSON.stringify(state)); } catch { /* as above */ }
  };
  const apply = () => {
    document.documentElement.style.setProperty(
      "--n", Math.max(1, names.length - state.hidden.length));
    for (const cells of document.querySelectorAll(".cells")) {
      const by = Object.fromEntries([...cells.children].map((c) => [c.dataset.col, c]));
      cells.append(...state.order.map((name) => by[name]).filter(Boolean));
      for (const cell of cells.children) {
        cell.hidden = state.hidden.includes(cell.dataset.col) && !narrow.matches;
        cell.classList.toggle("chosen", cell.dataset.col === state.tab);
      }
    }
    for (const button of heads.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button.dataset.tab === state.tab));
    }
    drawTools();
  };
  const change = (how) => { keepingPlace(() => { how(); apply(); }); save(); };

  const drawTools = () => {
    const at = document.activeElement && document.activeElement.id;
    tools.replaceChildren();
    state.order.forEach((name, place) => {
      const set = document.createElement("fieldset");
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.id = `show-${name}`;
      box.checked = !state.hidden.includes(name);
      box.disabled = box.checked && state.hidden.length === names.length - 1;
      box.addEventListener("change", () => change(() => {
        state.hidden = box.checked ? state.hidden.filter((n) => n !== name)
          : [...state.hidden, name];
      }));
      label.append(box, ` ${titles[name]}`);
      set.append(label);
      for (const [by, sign, word] of [[-1, "←", "left"], [1, "→", "right"]]) {
        const button = document.createElement("button");
        button.type = "button";
        button.id = `${word}-${name}`;
        button.textContent = sign;
        button.setAttribute("aria-label", `Move ${titles[name]} to the ${word}`);
        button.disabled = place + by < 0 || place + by >= names.length;
        button.addEventListener("click", () => change(() => {
          const order = [...state.order];
          [order[place], order[place + by]] = [order[place + by], order[place]];
          state.order = order;
        }));
        set.append(button);
      }
      tools.append(set);
    });
    const back = at && document.getElementById(at);
    if (back && !back.disabled) back.focus();
  };

  const narrow = window.matchMedia("(max-width: 45rem)");
  const asTabs = () => {
    document.body.classList.toggle("tabbed", narrow.matches);
    for (const cell of heads.querySelectorAll(".cell")) {
      if (narrow.matches && !cell.querySelector("button")) {
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.tab = cell.dataset.col;
        button.textContent = titles[cell.dataset.col];
        button.addEventListener("click", () => change(() => {
          state.tab = cell.dataset.col;
        }));
        cell.replaceChildren(button);
      } else if (!narrow.matches) {
        cell.textContent = titles[cell.dataset.col];
      }
    }
    apply();
  };
  tools.hidden = false;
  narrow.addEventListener("change", asTabs);
  asTabs();
  if (location.hash) {
    const row = document.getElementById(location.hash.slice(1));
    if (row) row.scrollIntoView();
  }
})();
