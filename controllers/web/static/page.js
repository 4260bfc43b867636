// Fetches the page again and replaces the parts that have changed, so that nothing moves under a reader who reads on:
// the focus, open details and the position of the drawing stay. Without scripts, the browser loads the page again.
"use strict";

const every = Number(document.body.dataset.every) * 1000;
const pause = document.getElementById("pause");
const connection = document.getElementById("connection");
const sources = new Map();
let paused = false;

function parts(page) {
  return [...page.querySelectorAll("[data-live]")];
}

// An element's address inside its part: it has no id, and is another object after the part was replaced.
function place(element, part) {
  const steps = [];
  for (let at = element; at && at !== part; at = at.parentElement) {
    steps.unshift([...at.parentElement.children].indexOf(at));
  }
  return steps;
}

function at(steps, part) {
  return steps.reduce((element, step) => element && element.children[step], part);
}

function replace(old, fresh) {
  const focused = old.contains(document.activeElement) ? place(document.activeElement, old) : null;
  const open = [...old.querySelectorAll("details")].map((each) => each.open);
  const scrolled = [...old.querySelectorAll(".drawing, .scroll")].map((each) => [each.scrollLeft, each.scrollTop]);
  const made = document.adoptNode(fresh);
  old.replaceWith(made);
  [...made.querySelectorAll("details")].forEach((each, n) => { each.open = open[n] ?? each.open; });
  [...made.querySelectorAll(".drawing, .scroll")].forEach((each, n) => {
    [each.scrollLeft, each.scrollTop] = scrolled[n] ?? [0, 0];
  });
  if (focused) {
    at(focused, made)?.focus({ preventScroll: true });
  }
}

function say(text) {
  if (connection.textContent !== text) {
    connection.textContent = text;
  }
}

async function refresh() {
  if (paused || document.hidden) {
    return;
  }
  try {
    const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(every) });
    if (!answer.ok) {
      throw new Error(answer.status);
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const fresh of parts(page)) {
      const old = document.getElementById(fresh.id);
      const source = fresh.outerHTML;
      if (old && sources.get(fresh.id) !== source) {
        sources.set(fresh.id, source);
        replace(old, fresh);
      }
    }
    say("");
  } catch {
    say("The server does not answer; this page is as it was before.");
  }
}

for (const part of parts(document)) {
  sources.set(part.id, part.outerHTML);
}
pause.hidden = false;
pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
});
setInterval(refresh, every);
