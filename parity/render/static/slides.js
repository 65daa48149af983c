// A lesson's slides, one a screen; without this file they stand in a row.
(() => {
  const bar = document.querySelector(".turning");
  if (!bar) return;
  const all = [...document.querySelectorAll(".slide")];
  const notes = bar.querySelector(".notes");
  let slides = [], at = -1, before = null;

  // What a slide says is as large as its screen has room for.
  const grow = () => {
    const slide = slides[at];
    if (!slide) return;
    const fits = () => document.documentElement.scrollHeight <= innerHeight
      && [...slide.querySelectorAll(".screen, pre")].every((one) => one.scrollWidth <= one.clientWidth);
    for (let size = 1.8; size >= 1; size -= .1) {
      slide.style.setProperty("--grown", size);
      if (fits()) return;
    }
  };

  const turn = (to) => {
    at = Math.max(-1, Math.min(slides.length - 1, to));
    document.body.classList.toggle("showing", at >= 0);
    bar.hidden = at < 0;
    all.forEach((one) => one.classList.toggle("shown", one === slides[at]));
    if (at < 0) { before.focus(); return; }
    bar.querySelector(".at").textContent = `${at + 1} / ${slides.length}`;
    const title = slides[at].querySelector("h3");
    title.tabIndex = -1;
    grow();
    title.focus();
    scrollTo(0, 0);
  };

  const tell = () => {
    const told = document.body.classList.toggle("telling");
    notes.setAttribute("aria-pressed", told);
    grow();
  };

  for (const deck of document.querySelectorAll(".deck")) {
    const button = deck.querySelector(".show button");
    button.parentElement.hidden = false;
    button.addEventListener("click", () => {
      slides = [...deck.querySelectorAll(".slide")];
      before = button;
      turn(Math.max(0, slides.findIndex((one) => one.id === named())));
    });
  }
  bar.addEventListener("click", (event) => {
    const { to } = event.target.dataset;
    if (to) turn(Math.max(0, at + Number(to)));
  });
  notes.addEventListener("click", tell);
  bar.querySelector(".ends").addEventListener("click", () => turn(-1));
  addEventListener("resize", grow);
  addEventListener("keydown", (event) => {
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest(".turning") && [" ", "Enter"].includes(event.key)) return;
    const to = {
      ArrowRight: at + 1, ArrowDown: at + 1, PageDown: at + 1, " ": at + 1,
      ArrowLeft: Math.max(0, at - 1), ArrowUp: Math.max(0, at - 1), PageUp: Math.max(0, at - 1),
      Home: 0, End: slides.length - 1, Escape: -1,
    }[event.key];
    if (event.key.toLowerCase() === "n") tell();
    if (to === undefined) return;
    event.preventDefault();
    turn(to);
  });
})();
