// The losses of four runs, and a lens on the step at which they diverge.
(() => {
  const place = document.getElementById("curves-data");
  if (!place) return;
  const data = JSON.parse(place.textContent);
  const at = (id) => document.getElementById(id);
  const form = at("lens"), slider = at("at-step");
  const total = data.losses[0].length, AROUND = 20, LOW = -9, HIGH = 0;
  const W = innerWidth < 720 ? 420 : 640, H = 260, LEFT = 50, TOP = 10, BOTTOM = 225, RIGHT = W - 10;
  const titles = data.columns.map((name) => document.querySelector(`.apart th:nth-child(${data.columns.indexOf(name) + 1})`));
  const title = (i) => (i ? titles[i].textContent.split(",")[0] : "NumPy");
  const NS = document.documentElement.namespaceURI.replace("1999/xhtml", "2000/svg");
  const draw = (parent, name, attributes, text) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const gap = (i, step) => Math.abs(data.losses[i][step - 1] - data.losses[0][step - 1]) / Math.abs(data.losses[0][step - 1]);
  const power = (value) => (value ? Math.max(LOW, Math.log10(value)) : LOW);
  const words = (value) => (value ? value.toExponential(1).replace("-", "−") : "0");

  // A chart: axes, ticks across and up; returns where a point of it stands.
  const chart = (id, [from, to], [low, high], across, up, label) => {
    const svg = document.createElementNS(NS, "svg");
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    const x = (step) => LEFT + (RIGHT - LEFT) * (step - from) / (to - from);
    const y = (value) => TOP + (BOTTOM - TOP) * (high - Math.max(low, Math.min(high, value))) / (high - low);
    for (const [value, text] of up) {
      draw(svg, "path", { class: "grid", d: `M${LEFT} ${y(value)}H${RIGHT}` });
      draw(svg, "text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, text);
    }
    for (const step of across) draw(svg, "text", { x: x(step), y: BOTTOM + 18, "text-anchor": step === across.at(-1) ? "end" : "middle" }, String(step));
    at(id).replaceChildren(svg);
    return { svg, x, y };
  };
  const line = ({ svg, x, y }, i, points) => draw(svg, "path", {
    class: "line", "data-col": data.columns[i],
    d: points.map(([step, value], n) => `${n ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`).join(""),
  });
  const tens = [];
  for (let e = LOW; e <= HIGH; e += 3) tens.push([e, e === LOW ? "0" : `1e${e}`.replace("-", "−")]);
  const thousands = [...Array(Math.floor(total / 1000) + 1).keys()].map((n) => n * 1000 || 1);

  const top = Math.ceil(Math.max(...data.smooth.map((all) => Math.max(...all))));
  const whole = [chart("loss-chart", [1, total], [0, top], thousands, [...Array(top + 1).keys()].map((n) => [n, String(n)]), "Losses of the four runs"),
    chart("gap-chart", [1, total], [LOW, HIGH], thousands, tens, "Distances of the losses from NumPy’s")];
  data.smooth.forEach((all, i) => line(whole[0], i, all.map((value, n) => [n * data.every + 1, value])));
  for (let i = 1; i < data.columns.length; i += 1) {
    const points = [];
    for (let step = 1; step <= total; step += data.every) {
      let most = 0;
      for (let one = step; one < Math.min(step + data.every, total + 1); one += 1) most = Math.max(most, gap(i, one));
      points.push([step, power(most)]);
    }
    line(whole[1], i, points);
  }
  const marks = whole.map(({ svg }) => draw(svg, "path", { class: "at" }));
  for (const [i, name] of data.columns.entries()) {
    const key = document.createElement("span");
    key.dataset.col = name;
    key.textContent = title(i);
    document.querySelector(".names").append(key, " ");
  }

  const look = () => {
    const step = Number(slider.value);
    at("step-number").textContent = step;
    marks.forEach((mark, i) => mark.setAttribute("d", `M${whole[i].x(step)} ${TOP}V${BOTTOM}`));
    const from = Math.max(1, Math.min(step - AROUND, total - 2 * AROUND)), to = Math.min(total, from + 2 * AROUND);
    const near = [...Array(5).keys()].map((n) => Math.round(from + n * (to - from) / 4));
    const lens = chart("lens-chart", [from - 1, to + 1], [LOW, HIGH], near, tens, `Distances around step ${step}`);
    draw(lens.svg, "path", { class: "at", d: `M${lens.x(step)} ${TOP}V${BOTTOM}` });
    for (let i = 1; i < data.columns.length; i += 1) {
      for (let one = from; one <= to; one += 1) {
        draw(lens.svg, "circle", { "data-col": data.columns[i], cx: lens.x(one) + (i - 2) * 2, cy: lens.y(power(gap(i, one))), r: one === step ? 5 : 3 });
      }
    }
    const right = data.losses[0][step - 1].toFixed(8);
    at("lens-table").tBodies[0].replaceChildren(...data.columns.map((name, i) => {
      const row = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = title(i);
      const digits = document.createElement("td");
      const theirs = data.losses[i][step - 1].toFixed(8);
      let same = 0;
      while (same < theirs.length && theirs[same] === right[same]) same += 1;
      const rest = document.createElement("b");
      rest.textContent = theirs.slice(same);
      digits.append(theirs.slice(0, same), rest);
      const away = document.createElement("td");
      away.textContent = i ? words(gap(i, step)) : "";
      row.append(head, digits, away);
      return row;
    }));
    const far = Math.max(...data.columns.slice(1).map((_, i) => gap(i + 1, step)));
    at("lens-told").textContent = far ? `At step ${step} the runs are at most ${words(far)} apart.` : `At step ${step} all four losses are equal in all digits.`;
  };
  slider.addEventListener("input", look);
  form.addEventListener("click", (event) => {
    if (!event.target.closest("button")) return;
    slider.value = event.target.value;
    look();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = at("lens-charts").hidden = false;
  const first = form.querySelector("button");
  slider.value = first ? first.value : 1;
  look();
})();
