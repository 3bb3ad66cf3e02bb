// Follows jobs without a reload: it fetches the page again and again, and replaces the parts that are marked as live. The
// server makes each part, so there is one description of a job. It stops when nothing runs any more.

import { localise } from "./times.mjs";

const SHORTEST = 1_000; // milliseconds between two requests
const LONGEST = 10_000;
const GROWTH = 1.3; // of the pause, while nothing changes
const HEADERS = { Accept: "text/html", "Corevault-Refresh": "1" };

const hint = document.querySelector("[data-follow]");
const news = document.querySelector("[data-news]");
const sources = new Map(); // the HTML of each part, as the server sent it
let wait = SHORTEST;

function listParts(page) {
  return [...page.querySelectorAll("[data-live]")];
}

function isRunning() {
  return listParts(document).some((part) => part.dataset.live === "on");
}

function say(text) {
  if (hint) hint.textContent = text;
}

/** Find the element that replaces the one with the focus: the same link or button. */
function findAlike(part, element) {
  const alike = [...part.querySelectorAll(element.tagName)];
  return alike.find((each) => each.href === element.href && each.textContent === element.textContent) ?? null;
}

/** Replace the parts that have changed; returns whether there was one. */
function replaceParts(page) {
  const before = document.querySelector(".state")?.textContent;
  let hasChanged = false;
  for (const part of listParts(document)) {
    const newer = page.getElementById(part.id);
    if (!newer || newer.outerHTML === sources.get(part.id)) continue;
    hasChanged ||= sources.has(part.id);
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    sources.set(part.id, newer.outerHTML);
    part.replaceWith(newer);
    localise(newer);
    if (focused) (findAlike(newer, focused) ?? document.querySelector("main")).focus();
  }
  const after = document.querySelector(".state")?.textContent;
  if (news && after !== before) news.textContent = `The state is now: ${after}`;
  return hasChanged;
}

async function refresh() {
  const answer = await fetch(location.href, { headers: HEADERS, cache: "no-store", redirect: "manual" });
  if (answer.type === "opaqueredirect") {
    say("You are signed out. Open the page again to sign in.");
    return false;
  }
  if (answer.ok) {
    wait = replaceParts(new DOMParser().parseFromString(await answer.text(), "text/html")) ? SHORTEST : wait * GROWTH;
  } else {
    const seconds = Number(answer.headers.get("Retry-After"));
    wait = seconds ? seconds * 1_000 : wait * GROWTH;
    return answer.status === 429 || answer.status >= 500;
  }
  return isRunning();
}

async function follow() {
  if (document.visibilityState === "hidden") return;
  let goesOn = true;
  try {
    goesOn = await refresh();
  } catch {
    wait *= GROWTH; // no network; the next request may succeed
  }
  if (!isRunning()) say("All jobs of this page have ended.");
  if (goesOn) schedule();
}

let timer = null;

function schedule() {
  clearTimeout(timer);
  timer = setTimeout(follow, Math.min(wait, LONGEST));
}

if (isRunning()) {
  say("This page follows its jobs by itself.");
  schedule();
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && isRunning()) schedule();
  });
}
