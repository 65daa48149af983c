// A step that is pointed at, or in which the focus is: its lines in every
// column, the symbol of its formula and its part of the picture light up.
(() => {
  const rows = document.querySelectorAll(".row[data-owner]");
  if (!rows.length) return;
  for (const row of rows) {
    const math = row.querySelector(".formula math");
    const symbol = math && math.querySelector("msub, msup, msubsup, mi");
    if (symbol) symbol.classList.add("symbol");
  }
  let lit = null;
  const light = (row) => {
    if (row === lit) return;
    if (lit) lit.classList.remove("lit");
    lit = row;
    if (row) row.classList.add("lit");
    for (const part of document.querySelectorAll(".here-map [data-owners]")) {
      part.classList.toggle("touched", Boolean(row)
        && part.dataset.owners.split(" ").includes(row.dataset.owner));
    }
  };
  const main = document.getElementById("main");
  main.addEventListener("mouseover", (event) => light(event.target.closest(".row.step, .row.backward")));
  main.addEventListener("mouseleave", () => light(null));
  main.addEventListener("focusin", (event) => light(event.target.closest(".row.step, .row.backward")));
  main.addEventListener("focusout", () => light(null));
})();
