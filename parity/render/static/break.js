// A fault chosen, a precision slid: which steps are off, and which are told.
(() => {
  const place = document.getElementById("break-data");
  if (!place) return;
  const data = JSON.parse(place.textContent);
  const at = (id) => document.getElementById(id);
  const [form, chart, told, stepTold] = ["breaker", "chart", "told", "step-told"].map(at);
  const NS = document.documentElement.namespaceURI.replace("1999/xhtml", "2000/svg");
  const W = innerWidth < 720 ? 460 : 900, H = 330, LEFT = 46, TOP = 12, BOTTOM = 300, LOW = -18, HIGH = 2;
  const x = (i) => LEFT + (W - LEFT - 10) * (i + .5) / data.steps.length;
  const y = (e) => TOP + (BOTTOM - TOP) * (HIGH - Math.max(LOW, Math.min(HIGH, e))) / (HIGH - LOW);
  const draw = (parent, name, attributes, text) => {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const listed = (names) => names.join(", ").replace(/, (?=[^,]*$)/, " and ");
  const power = (e) => (e <= LOW ? "0" : (10 ** e).toExponential(0).replace("-", "−"));
  let cursor = 0;

  const now = () => {
    const dtype = data.dtypes[Number(at("precision").value)];
    const fault = data.faults.find((one) => one.name === at("fault").value);
    const errors = fault ? fault.errors : data.own[dtype];
    const limits = data.limits[dtype];
    const off = errors.map((e, i) => e === null || e > limits[i]);
    return { dtype, fault, errors, limits, off };
  };

  const show = () => {
    const { dtype, fault, errors, limits, off } = now();
    at("dtype").textContent = dtype;
    at("precision").setAttribute("aria-valuetext", dtype);
    const svg = document.createElementNS(NS, "svg");
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    svg.setAttribute("aria-hidden", "true");
    for (let e = LOW; e <= HIGH; e += 4) {
      draw(svg, "path", { class: "grid", d: `M${LEFT} ${y(e)}H${W - 10}` });
      draw(svg, "text", { x: LEFT - 6, y: y(e) + 4, "text-anchor": "end" }, e === LOW ? "0" : `1e${e}`.replace("-", "−"));
    }
    draw(svg, "path", { class: "lim", d: limits.map((l, i) => `${i ? "L" : "M"}${x(i)} ${y(l)}`).join("") });
    const first = off.indexOf(true);
    if (first >= 0) draw(svg, "path", { class: "first", d: `M${x(first)} ${TOP}V${BOTTOM}` });
    errors.forEach((e, i) => draw(svg, "circle", {
      cx: x(i), cy: y(e === null ? HIGH : e), r: off[i] ? 3.4 : 2.4, class: off[i] ? "off" : "mean",
    }));
    draw(svg, "path", { class: "at", d: `M${x(cursor)} ${BOTTOM}v12` });
    const decoder = data.steps.findIndex((name) => name.startsWith("target_"));
    draw(svg, "text", { x: x(0), y: H - 4 }, "encoder");
    if (decoder > 0) draw(svg, "text", { x: x(decoder), y: H - 4 }, "decoder");
    chart.replaceChildren(svg);

    const count = off.filter(Boolean).length;
    let words = `Nothing is broken. In ${dtype} the reference's own rounding is what you see, and every step stays below its limit.`;
    if (!fault && dtype === "float64") words = "Nothing is broken, and float64 is what the others are held against: no step is off. Choose a fault.";
    const same = fault && fault.errors.every((e) => e !== null && e <= LOW);
    if (same) {
      words = fault.gradients ? "Every step is as it was." : "Here it changes nothing: on this text, this model gives the same numbers with it.";
    } else if (fault && count) {
      words = `It shows first at ${data.steps[first]}, and is in ${count} of ${data.steps.length} steps.`;
      if (fault.hides.length) words += ` In ${listed(fault.hides)} it would stay below every limit.`;
      else words += " It stays unseen in no precision.";
    } else if (fault) {
      words = `In ${dtype} every error of it is below its limit: a check in ${dtype} alone would not see it.`;
    }
    if (same && !fault.gradients) words = `${fault.sentence} ${words}`;
    else if (fault) {
      words = `${fault.sentence} ${words} Of ${data.weights} weights ${fault.gradients} get a wrong gradient, and ${fault.right ? "every answer is still right" : `the ${fault.answers.length > 1 ? "dates are" : "date is"} read as ${fault.answers.map((text) => `“${text}”`).join(", ")}`}. ${listed(fault.names)} ${fault.names.length > 1 ? "each call" : "calls"} it by its name.`;
    }
    breakable(told, words);
    for (const part of document.querySelectorAll(".broken .part")) {
      const path = part.dataset.path.replace(".layers.0.", ".layers.*.");
      part.classList.toggle("wrong", data.steps.some((name, i) => {
        const step = name.replace(/\.layers\.\d+\./, ".layers.*.");
        const rest = step.startsWith(path + ".") ? step.slice(path.length + 1) : null;
        return off[i] && rest !== null && !rest.startsWith("norm.");
      }));
      const begin = first < 0 ? "" : data.steps[first];
      const inside = begin.startsWith(`${part.dataset.path}.`) && !begin.slice(part.dataset.path.length + 1).startsWith("norm.");
      part.classList.toggle("origin", inside);
    }
    for (const row of document.querySelectorAll("[data-fault]")) {
      row.classList.toggle("chosen", Boolean(fault) && row.dataset.fault === fault.name);
    }
    look();
  };

  const look = () => {
    const { errors, limits, off } = now();
    const e = errors[cursor];
    const words = `${data.steps[cursor]}: error ${e === null ? "not to be told" : power(e)}, limit ${power(limits[cursor])}${off[cursor] ? ", DIVERGENCE" : ", match"}`;
    breakable(stepTold, words);
    chart.setAttribute("aria-valuenow", cursor + 1);
    chart.setAttribute("aria-valuetext", words);
    const mark = chart.querySelector(".at");
    if (mark) mark.setAttribute("d", `M${x(cursor)} ${BOTTOM}v12`);
  };
  const go = (step) => { cursor = Math.max(0, Math.min(data.steps.length - 1, step)); look(); };
  chart.addEventListener("mousemove", (event) => {
    const box = chart.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width * W;
    go(Math.round((across - LEFT) / (W - LEFT - 10) * data.steps.length - .5));
  });
  chart.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[event.key];
    if (by) go(cursor + by);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(data.steps.length - 1);
    else return;
    event.preventDefault();
  });
  const choose = () => {
    show();
    const first = now().off.indexOf(true);
    if (first >= 0) go(first);
    try { history.replaceState(null, "", at("fault").value ? `#${encodeURIComponent(at("fault").value)}` : "#"); } catch { /* from disk some browsers refuse */ }
  };
  at("fault").addEventListener("change", choose);
  at("precision").addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = at("broken").hidden = false;
  const asked = named();
  at("fault").value = data.faults.some((one) => one.name === asked) ? asked : data.faults[0].name;
  // Where models answer there is one list: of all faults, these among them.
  const any = at("any");
  if (document.documentElement.dataset.live !== undefined && any) {
    at("fault").closest("p").hidden = true;
    if (!at("own").value) any.value = at("fault").value;
    any.addEventListener("change", () => {
      if (data.faults.some((one) => one.name === any.value)) { at("fault").value = any.value; choose(); }
      else told.textContent = `“${any.value}” is put in once you give a date of yours.`;
    });
  }
  show();
  go(Math.max(0, now().off.indexOf(true)));
})();
