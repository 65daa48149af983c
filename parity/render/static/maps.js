// The value under the pointer in a map, or where arrow keys have led.
(() => {
  const maps = document.querySelectorAll("[data-values]");
  if (!maps.length) return;
  const tip = document.createElement("output");
  tip.className = "map-value";
  tip.hidden = true;
  document.body.append(tip);
  const kept = new WeakMap();
  const read = (map) => {
    if (!kept.has(map)) {
      const bytes = Uint8Array.from(atob(map.dataset.values), (c) => c.charCodeAt(0));
      const [rows, columns] = map.dataset.shape.split(" ").map(Number);
      const wide = bytes.length === rows * columns * 2;
      const numbers = wide ? new Uint16Array(bytes.buffer) : bytes;
      const [low, high] = map.dataset.range.split(" ").map(Number);
      const names = map.dataset.names ? JSON.parse(map.dataset.names) : null;
      kept.set(map, { rows, columns, numbers, low, high, most: wide ? 65535 : 255, names, tile: Number(map.dataset.tile || 0), fold: Number(map.dataset.fold || 0), infinite: JSON.parse(map.dataset.infinite || "{}") });
    }
    return kept.get(map);
  };
  const words = (map, row, column) => {
    const { columns, numbers, low, high, most, names, tile, fold, infinite } = read(map);
    const place = row * columns + column;
    if (tile && column % (tile + 1) === tile || fold && place >= fold) return "";
    const value = low + numbers[place] / most * (high - low);
    const digits = Number(value.toPrecision(most > 255 ? 4 : 2));
    const text = infinite[place] ?? String(Object.is(digits, -0) ? 0 : digits).replace("-", "−");
    if ("shares" in map.dataset) return `${names[0][row]} → ${names[1][column]}: ${Number((100 * value).toPrecision(3))} %`;
    if (names) return `${names[0][row]} → ${names[1][column]}: ${text}`;
    const part = tile ? `${Math.floor(column / (tile + 1)) + 1}: ` : "";
    if (fold) return `[0, ${place}] ${most > 255 ? "=" : "≈"} ${text}`;
    return `${part}[${row}, ${tile ? column % (tile + 1) : column}] ${most > 255 ? "=" : "≈"} ${text}`;
  };
  const show = (map, row, column, left, top) => {
    const text = words(map, row, column);
    tip.hidden = !text;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(left + 12, innerWidth - width - 4))}px`;
    tip.style.top = `${top + height + 24 > innerHeight ? top - height - 8 : top + 16}px`;
  };
  const cell = (map, row, column) => {
    const { rows, columns } = read(map);
    const box = map.getBoundingClientRect();
    show(map, row, column, box.left + (column + .5) / columns * box.width, box.top + (row + .5) / rows * box.height);
  };
  for (const map of maps) {
    let at = [0, 0];
    map.addEventListener("mousemove", (event) => {
      const { rows, columns } = read(map);
      const box = map.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top) / box.height * rows);
      const column = Math.floor((event.clientX - box.left) / box.width * columns);
      if (row < 0 || column < 0 || row >= rows || column >= columns) { tip.hidden = true; return; }
      at = [row, column];
      show(map, row, column, event.clientX, event.clientY);
    });
    map.addEventListener("mouseleave", () => { tip.hidden = true; });
    map.setAttribute("tabindex", "0");
    map.addEventListener("focus", () => { if (map.matches(":focus-visible")) cell(map, ...at); });
    map.addEventListener("blur", () => { tip.hidden = true; });
    map.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (event.key === "Escape") tip.hidden = true;
      if (!by) return;
      const { rows, columns, tile } = read(map);
      const clip = (n, most) => Math.max(0, Math.min(most - 1, n));
      at = [clip(at[0] + by[0], rows), clip(at[1] + by[1], columns)];
      if (tile && at[1] % (tile + 1) === tile) at[1] = clip(at[1] + by[1], columns);
      cell(map, ...at);
      event.preventDefault();
    });
  }
})();
