// Verifies the ledger of one account in the reader's browser, and shows the outcome beside that of the server.

import { ChainCheck, ChainFault, importKeys } from "./ledger-chain.mjs";

const section = document.querySelector("#browser-check");
const panel = section.querySelector(".panel");
const progress = section.querySelector("progress");
const noted = section.querySelector("#noted");

async function readPart(after) {
  const answer = await fetch(`${section.dataset.place}?after=${after}`, { headers: { Accept: "application/json" } });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.detail ?? "The server did not answer.");
  }
  return answer.json();
}

async function verify() {
  let check = null;
  let keys = [];
  for (let after = 0; after !== null; ) {
    const part = await readPart(after);
    if (check === null) {
      keys = part.keys.map((key) => key.key_id);
      check = new ChainCheck(await importKeys(part.keys));
    }
    await check.add(part);
    progress.value = check.count / Number(section.dataset.entries);
    after = part.after;
  }
  return { check, keys, outcome: check.end() };
}

function show(kind, title, ...paragraphs) {
  panel.className = `panel ${kind}`;
  const heading = Object.assign(document.createElement("h3"), { textContent: title });
  const words = paragraphs.map((text) => Object.assign(document.createElement("p"), { textContent: text }));
  panel.replaceChildren(heading, ...words);
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function showOutcome({ entries, hash, signatures, tail }, keys) {
  const newest = `The newest entry is number ${entries}, with the hash ${hash}.`;
  if (signatures === null) {
    const reason = globalThis.isSecureContext ? "This browser cannot verify Ed25519." : "Browsers verify signatures on https only.";
    const risk = "Somebody who can write to the database and knows the encoding could have made this chain.";
    show("warn", "The hashes verify, but no signature was checked", `${reason} ${risk}`, newest);
    return;
  }
  const follow = entries === 1 ? "The only entry is intact" : `All ${entries} entries follow each other`;
  const words = [`${follow}. ${count(signatures, "signature")} by ${keys.join(" and ")} ${signatures === 1 ? "verifies" : "verify"}.`];
  if (tail) words.push(`${count(tail, "reservation")} came after the newest signed state. Signatures of reservations cover job and cost, and not the time.`);
  show("good", "Your browser verifies the chain", ...words, newest);
}

noted.addEventListener("submit", (event) => event.preventDefault());

try {
  section.hidden = false;
  const { check, keys, outcome } = await verify();
  showOutcome(outcome, keys);
  noted.hidden = false;
  noted.addEventListener("submit", () => {
    const number = check.find(noted.elements.hash.value.trim().toLowerCase());
    noted.querySelector("[role=status]").textContent = number ? `The chain contains it, as entry ${number}.` : "The chain does not contain an entry with this hash.";
  });
} catch (error) {
  if (error instanceof ChainFault) show("bad", "The chain does not verify in your browser", error.message, "Tell the operator, and let no job run on this account.");
  else show("warn", "Your browser could not verify the chain", error.message);
} finally {
  progress.hidden = true;
}
