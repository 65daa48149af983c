// What the address names after its #, or "" where that cannot be read.
const named = () => {
  try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; }
};

// Text whose long names stand on one line; wider ones are broken behind a dot.
const breakable = (node, text) => {
  node.replaceChildren(...text.split(/(\w+(?:\.\w+){2,}[,.:]?)/).map((part, i) => {
    if (i % 2 === 0) return part;
    const name = document.createElement("span");
    name.className = "whole-name";
    name.append(...part.split(/(?<=\.)/).flatMap(
      (word) => [document.createElement("wbr"), word]));
    return name;
  }));
};

// What scrolls can be scrolled by keys, and what does not is no stop on the way.
const reachable = () => {
  for (const one of document.querySelectorAll(".formula, main pre")) {
    if (one.parentElement.closest("[tabindex]:not(main)")) continue;
    if (one.scrollWidth > one.clientWidth) one.tabIndex = 0;
    else one.removeAttribute("tabindex");
  }
};
reachable();
addEventListener("resize", reachable);

// The menu where the screen is narrow, and the place in it where one reads.
(() => {
  document.documentElement.classList.add("scripted");
  const menu = document.getElementById("menu");
  const button = document.querySelector(".to-menu");
  if (!menu || !button) return;
  const show = (open) => {
    menu.classList.toggle("open", open);
    button.setAttribute("aria-expanded", String(open));
  };
  show(false);
  button.setAttribute("aria-controls", "menu");
  button.addEventListener("click", (event) => {
    event.preventDefault();
    show(!menu.classList.contains("open"));
    if (menu.classList.contains("open")) menu.querySelector("summary").focus();
  });
  button.addEventListener("keydown", (event) => {
    if (event.key === " ") { event.preventDefault(); button.click(); }
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.classList.contains("open")) { show(false); button.focus(); }
  });
  menu.addEventListener("click", (event) => {
    if (event.target.closest("a")) show(false);
  });

  const links = new Map([...menu.querySelectorAll(".contents a")].map(
    (link) => [decodeURIComponent(link.hash.slice(1)), link]));
  const places = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  // How much of the menu lies under what stands above it on a wide screen.
  const covered = () => document.querySelector("header.site").offsetHeight;
  const look = () => {
    const above = places.filter((one) => one.getBoundingClientRect().top < 140);
    const here = above.length ? links.get(above[above.length - 1].id) : null;
    for (const link of links.values()) link.classList.toggle("here", link === here);
    if (!here || menu.scrollHeight <= menu.clientHeight) return;
    const top = here.offsetTop - menu.offsetTop;
    if (top < menu.scrollTop + covered() || top > menu.scrollTop + menu.clientHeight - 60) {
      menu.scrollTop = top - (covered() + menu.clientHeight) / 2;
    }
  };
  let waits = false;
  addEventListener("scroll", () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => { waits = false; look(); });
  }, { passive: true });
  const current = menu.querySelector("[aria-current]");
  if (current) menu.scrollTop = Math.max(0, current.offsetTop - covered());
  look();
})();
