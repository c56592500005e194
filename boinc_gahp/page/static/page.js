// Keeps the page up to date: fetches its changing part every few seconds and changes only what
// differs, so that scrolling, focus, selections and opened details stay.
"use strict";

(() => {
  const PERIOD = 2000;
  const RETRY = 4000;
  const TIMEOUT = 15000;
  // The person at the page decides this, not the project.
  const THEIRS = new Set(["DETAILS open"]);

  const live = document.getElementById("live");
  const connection = document.getElementById("connection");
  if (!live || !connection) return;

  let tag = null;
  let timer = 0;
  let waiting = false;
  let seen = new Date();

  const fits = (old, wanted) =>
    old.nodeType === wanted.nodeType && old.nodeName === wanted.nodeName &&
    (old.id || "") === (wanted.id || "");

  function change(old, wanted) {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.data !== wanted.data) old.data = wanted.data;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!wanted.hasAttribute(name) && !THEIRS.has(`${old.nodeName} ${name}`)) {
        old.removeAttribute(name);
      }
    }
    for (const { name, value } of wanted.attributes) {
      if (old.getAttribute(name) !== value && !THEIRS.has(`${old.nodeName} ${name}`)) {
        old.setAttribute(name, value);
      }
    }
    changeChildren(old, wanted);
  }

  function changeChildren(old, wanted) {
    const ids = new Set([...wanted.children].map((child) => child.id).filter(Boolean));
    const byId = new Map();
    for (const child of [...old.children]) {
      if (!child.id) continue;
      if (ids.has(child.id)) byId.set(child.id, child);
      else child.remove();
    }
    let next = old.firstChild;
    // A node that is moved loses its focus, so the nodes before it are removed instead.
    const skipTo = (node) => {
      while (next && next !== node && !byId.has(next.id)) {
        const gone = next;
        next = next.nextSibling;
        gone.remove();
      }
    };
    for (const child of [...wanted.childNodes]) {
      let kept = child.id ? byId.get(child.id) : next;
      while (!child.id && kept && (kept.id || !fits(kept, child))) kept = kept.nextSibling;
      if (!kept || !fits(kept, child)) {
        old.insertBefore(document.importNode(child, true), next);
        continue;
      }
      skipTo(kept);
      if (kept === next) next = next.nextSibling;
      else old.insertBefore(kept, next);
      change(kept, child);
    }
    while (next) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
  }

  function say(text) {
    if (connection.textContent !== text) connection.textContent = text;
    connection.classList.toggle("lost", text !== "");
  }

  const clock = (time) => time.toLocaleTimeString([], { hour12: false });

  async function refresh() {
    if (waiting || document.hidden) return;
    waiting = true;
    clearTimeout(timer);
    const limit = new AbortController();
    const late = setTimeout(() => limit.abort(), TIMEOUT);
    let pause = PERIOD;
    try {
      const headers = { "X-Live": "1" };
      if (tag) headers["If-None-Match"] = tag;
      const address = location.pathname + location.search;
      const answer = await fetch(address, { headers, cache: "no-store", signal: limit.signal });
      if (answer.status === 200) {
        const text = await answer.text();
        tag = answer.headers.get("ETag");
        changeChildren(live, new DOMParser().parseFromString(text, "text/html").body);
        say("");
      } else if (answer.status === 304) {
        say("");
      } else {
        say(`boinc_gahp answers with an error (${answer.status}). The page shows the state of ${clock(seen)}.`);
        pause = RETRY;
      }
      if (answer.status === 200 || answer.status === 304) seen = new Date();
    } catch {
      say(`boinc_gahp does not answer any more: was it ended? The page shows the state of ${clock(seen)}.`);
      pause = RETRY;
    } finally {
      clearTimeout(late);
      waiting = false;
      timer = setTimeout(refresh, pause);
    }
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (!document.hidden) refresh();
  });
  timer = setTimeout(refresh, PERIOD);
})();
