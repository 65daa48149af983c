// A lesson's slides, one a screen, told part by part; without this file they
// stand in a row.
(() => {
  const bar = document.querySelector(".turning");
  if (!bar) return;
  const all = [...document.querySelectorAll(".slide")];
  const notes = bar.querySelector(".notes");
  let slides = [], at = -1, before = null, parts = [], said = 0;

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

  // So many of a slide's paragraphs, points and pictures stand there.
  const sayParts = (count) => {
    said = Math.max(1, Math.min(parts.length, count));
    parts.forEach((one, i) => one.classList.toggle("waits", i >= said));
  };

  // One part more, or the next slide with its first; and the way back.
  const step = (by) => {
    if (said + by >= 1 && said + by <= parts.length) sayParts(said + by);
    else if (slides[at + by]) turn(at + by, by > 0 ? 1 : Infinity);
  };

  const turn = (to, count = 1) => {
    parts.forEach((one) => one.classList.remove("waits"));
    at = Math.max(-1, Math.min(slides.length - 1, to));
    document.body.classList.toggle("showing", at >= 0);
    bar.hidden = at < 0;
    all.forEach((one) => one.classList.toggle("shown", one === slides[at]));
    if (at < 0) { before.focus(); return; }
    bar.querySelector(".at").textContent = `${at + 1} / ${slides.length}`;
    parts = [...slides[at].querySelectorAll(
      ".screen > .prose > :not(ul, ol), .screen > .prose > :is(ul, ol) > li, .screen > img")];
    sayParts(count);
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
    if (to) step(Number(to));
  });
  notes.addEventListener("click", tell);
  bar.querySelector(".ends").addEventListener("click", () => turn(-1));
  addEventListener("resize", grow);
  addEventListener("keydown", (event) => {
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest(".turning") && [" ", "Enter"].includes(event.key)) return;
    const by = { ArrowRight: 1, ArrowDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const to = {
      PageDown: at + 1, PageUp: Math.max(0, at - 1),
      Home: 0, End: slides.length - 1, Escape: -1,
    }[event.key];
    if (event.key.toLowerCase() === "n") tell();
    if (by) step(by);
    else if (to !== undefined) turn(to, event.key === "PageUp" ? Infinity : 1);
    else return;
    event.preventDefault();
  });
})();
