// Which attentions, layers and heads are shown; chosen once and kept.
// Without this file all are.
(() => {
  const form = document.querySelector("form#heads");
  if (!form) return;
  const KEY = "parity-read-heads";
  const boxes = [...form.querySelectorAll("input")];
  const among = (name) => boxes.filter((box) => box.name === name);
  const off = () => boxes.filter((box) => !box.checked).map((box) => box.value);
  // At least one of each kind stays.
  const whole = (name, box) => {
    if (!among(name).some((one) => one.checked)) for (const one of box ? [box] : among(name)) one.checked = true;
  };
  const apply = () => {
    const hidden = off();
    for (const one of document.querySelectorAll("[data-of]")) {
      one.hidden = one.dataset.of.split(" ").some((word) => hidden.includes(word));
    }
    document.body.classList.toggle("few-heads", among("head").filter((box) => box.checked).length < 3);
    const maps = [...document.querySelectorAll("figure[data-of]")];
    const shown = maps.filter((one) => !one.closest("[hidden]")).length;
    form.querySelector("output").textContent = `${shown} of ${maps.length} maps`;
  };
  const all = () => { for (const box of boxes) box.checked = true; };
  // What an address names is shown.
  const reveal = () => {
    const one = document.getElementById(named());
    if (one && one.closest("[hidden]")) { all(); apply(); one.scrollIntoView({ behavior: "instant" }); }
  };
  const change = () => {
    apply();
    try { localStorage.setItem(KEY, JSON.stringify(off())); } catch { /* a browser that keeps nothing */ }
  };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    if (Array.isArray(kept)) for (const box of boxes) box.checked = !kept.includes(box.value);
  } catch { /* what is no JSON, or as above */ }
  for (const box of boxes) whole(box.name);
  form.addEventListener("change", (event) => { whole(event.target.name, event.target); change(); });
  form.querySelector("button").addEventListener("click", () => { all(); change(); });
  addEventListener("hashchange", reveal);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  apply();
  reveal();
})();
