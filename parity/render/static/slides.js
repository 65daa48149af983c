// The slides of a lesson, one a screen; without this file they stand in a row.
(() => {
  const button = document.getElementById("show-slides");
  if (!button) return;
  const slides = [...document.querySelectorAll(".slide")];
  const titles = slides.map((one) => one.querySelector("h2"));
  let at = -1;
  const turn = (to) => {
    at = to;
    document.body.classList.toggle("showing", at >= 0);
    slides.forEach((one, i) => one.classList.toggle("shown", i === at));
    if (at < 0) { button.focus(); return; }
    titles[at].tabIndex = -1;
    titles[at].focus();
    scrollTo(0, 0);
  };
  button.addEventListener("click", () => turn(Math.max(0, slides.findIndex((one) => one.id === named()))));
  addEventListener("keydown", (event) => {
    if (at < 0) return;
    const to = {
      ArrowRight: at + 1, ArrowDown: at + 1, PageDown: at + 1, " ": at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, PageUp: at - 1,
      Home: 0, End: slides.length - 1, Escape: -1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    turn(event.key === "Escape" ? -1 : Math.max(0, Math.min(slides.length - 1, to)));
  });
  button.parentElement.hidden = false;
})();
