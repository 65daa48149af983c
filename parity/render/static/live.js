// A text that is being read: each port's answer is put in as it comes.
// Where all are there, the page is asked for once more, with its scripts.
(() => {
  const waits = () => document.querySelector("[data-waits]");
  if (!waits()) return;
  const main = document.getElementById("main");
  // Who writes the next text is not disturbed.
  const writes = () => document.activeElement && document.activeElement.closest("form.live");
  const ask = async () => {
    if (writes()) { setTimeout(ask, 500); return; }
    try {
      const answer = await fetch(location.href);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (writes()) { setTimeout(ask, 500); return; }
      if (answer.status !== 202) { location.reload(); return; }
      main.replaceChildren(...page.getElementById("main").childNodes);
    } catch { /* the server is gone; it may come back */ }
    setTimeout(ask, 500);
  };
  ask();
})();
