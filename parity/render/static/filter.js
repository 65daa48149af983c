// Known differences: those between two frameworks, on a topic, or with words in
// them. The address says which, so that it can be sent to somebody.
(() => {
  const form = document.querySelector("form#filter");
  if (!form) return;
  const at = (id) => document.getElementById(id);
  const fields = ["one", "other", "topic", "words", "hidden"].map(at);
  const all = [...document.querySelectorAll(".difference")].map((part) => ({
    part, words: part.textContent.toLowerCase(),
    topic: part.parentElement.querySelector("h2").id,
    pairs: part.dataset.between.split(" ").map((pair) => pair.split("-")),
  }));
  const show = () => {
    const sides = [at("one").value, at("other").value].filter(Boolean);
    const words = at("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const each of all) {
      const fits = (!sides.length || each.pairs.some((pair) => sides.every((side) => pair.includes(side))))
        && (!at("topic").value || each.topic === at("topic").value)
        && words.every((word) => each.words.includes(word))
        && (!at("hidden").checked || [...each.part.querySelectorAll("td")].some((cell) => cell.textContent === "hidden"));
      each.part.hidden = !fits;
      left += fits;
    }
    const chosen = fields.some((field) => (field.type === "checkbox" ? field.checked : field.value));
    for (const topic of document.querySelectorAll(".topic")) {
      topic.hidden = chosen && !topic.querySelector(".difference:not([hidden])");
    }
    at("left").textContent = `${left} of ${all.length}`;
    return chosen;
  };
  const keep = () => {
    const asked = show() ? new URLSearchParams(fields.filter((field) => field.type === "checkbox" ? field.checked : field.value)
      .map((field) => [field.id, field.type === "checkbox" ? "1" : field.value])) : "";
    try { history.replaceState(null, "", `${location.pathname}${asked && `?${asked}`}`); } catch { /* from disk some browsers refuse */ }
  };
  const asked = new URLSearchParams(location.search);
  for (const field of fields) {
    if (field.type === "checkbox") field.checked = asked.has(field.id);
    else field.value = asked.get(field.id) || "";
    if (field.tagName === "SELECT" && field.selectedIndex < 0) field.value = "";
    field.addEventListener("input", keep);
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
})();
