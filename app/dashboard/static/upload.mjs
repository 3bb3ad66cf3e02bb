// The upload page: check of the chosen file in this browser, question, transfer, and the server's outcome.

import { FileFault } from "./csv.mjs";
import { CSV, findMediaType, FORMAT_BYTES } from "./formats.mjs";
import { formatDigest, Sha256 } from "./sha256.mjs";
import { TableCheck } from "./table-check.mjs";
import { begin, end, readState, send, TransferFault } from "./transfer.mjs";

const PIECE_BYTES = 2 ** 20;
const MOST_NULL_ROWS = 0.01; // a larger share needs a confirmation
const MOST_COLUMNS_SHOWN = 200;
const POLL = 2_000; // milliseconds

const find = (id) => document.getElementById(id);
const root = find("uploader");
const facts = JSON.parse(root.dataset.facts);
const { place } = root.dataset;
let chosen = null; // the checked file: file, mediaType, digest, uploadId, needsConsent
let choices = 0; // number of choices of a file; an older check stops
let transfer = null; // the AbortController of a running transfer

// Words and elements

const whole = new Intl.NumberFormat("en");

function count(number, noun) {
  return `${whole.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

function formatShare(share) {
  return share > 0 && share < 0.001 ? "less than 0.1 %" : `${(100 * share).toFixed(1)} %`;
}

function formatSize(bytes) {
  return bytes < 1e6 ? `${whole.format(Math.ceil(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function makePanel(kind, ...children) {
  return make("div", { className: `panel ${kind}` }, ...children);
}

function makeList(items) {
  return make("ul", {}, ...items.map((item) => make("li", {}, item)));
}

function say(text) {
  find("status").textContent = text;
}

function show(...ids) {
  for (const id of ids) find(id).hidden = false;
}

function hide(...ids) {
  for (const id of ids) find(id).hidden = true;
}

// The check

/** Read the file once: its digest, and the outcome of the check if it is CSV. Throws FileFault. */
async function readFile(file, isWanted) {
  const mediaType = findMediaType(new Uint8Array(await file.slice(0, FORMAT_BYTES).arrayBuffer()), file.name);
  if (file.size > facts.most_bytes) {
    throw new FileFault(`The file has ${formatSize(file.size)}; this server accepts ${formatSize(facts.most_bytes)}.`);
  }
  const digest = new Sha256();
  const check = mediaType === CSV ? new TableCheck(facts.columns, facts.unit) : null;
  const decoder = new TextDecoder();
  for (let at = 0; at < file.size; at += PIECE_BYTES) {
    const bytes = new Uint8Array(await file.slice(at, at + PIECE_BYTES).arrayBuffer());
    if (!isWanted()) return null;
    digest.update(bytes);
    check?.write(decoder.decode(bytes, { stream: true }));
    find("check-progress").value = Math.min(1, (at + PIECE_BYTES) / file.size);
  }
  check?.write(decoder.decode());
  return { file, mediaType, digest: formatDigest(digest.digest()), outcome: check?.end() ?? null };
}

async function choose(file) {
  if (!file || find("file").disabled) return;
  choices += 1;
  const choice = choices;
  chosen = null;
  hide("send", "send-progress", "pause", "cancel");
  show("check", "check-progress");
  find("check-outcome").replaceChildren();
  say(`Checking ${file.name} on this computer.`);
  try {
    const read = await readFile(file, () => choice === choices);
    if (read) showOutcome(read);
  } catch (error) {
    if (choice !== choices) return;
    const isFault = error instanceof FileFault;
    showRefusal([isFault ? error.message : "The file cannot be read. Check that it still exists, and choose it again."]);
  } finally {
    if (choice === choices) hide("check-progress");
  }
}

function showRefusal(reasons) {
  const words = make("p", {}, make("strong", { className: "wraps", textContent: "This file cannot be uploaded." }));
  find("check-outcome").replaceChildren(makePanel("bad", words, makeList(reasons)));
  say("This file cannot be uploaded. The reasons are above.");
}

function listRefusals({ rows, absent, unknown }) {
  const reasons = [];
  if (absent.length) reasons.push(`Declared columns are missing: ${absent.join(", ")}.`);
  if (unknown.length) reasons.push(`Columns are not declared: ${unknown.join(", ")}. Remove them from the file.`);
  if (!rows) reasons.push("The file has no rows below the header.");
  if (facts.unit === null && rows > facts.slots) {
    reasons.push(`The file has more rows than the ${whole.format(facts.slots)} slots, which cannot be changed.`);
  }
  return reasons;
}

function showOutcome(read) {
  const { outcome } = read;
  if (outcome === null) {
    const words = "This browser does not read Parquet or Arrow. The server checks the names and types of columns when it \
reads the file, and never reports null rows. To check the cells first, use the Python client, or save the table as CSV.";
    find("check-outcome").replaceChildren(makePanel("warn", make("p", { textContent: words })));
    ask(read, 0);
    return;
  }
  const reasons = listRefusals(outcome);
  if (reasons.length) {
    showRefusal(reasons);
    return;
  }
  const share = formatShare(outcome.nullShare);
  const nulls = outcome.nullRows
    ? `${whole.format(outcome.nullRows)} of ${count(outcome.rows, "row")} (${share}) would be null, and contribute nothing.`
    : `All ${count(outcome.rows, "row")} fit the declaration.`;
  const kind = outcome.nullShare > MOST_NULL_ROWS ? "bad" : outcome.nullRows ? "warn" : "good";
  const parts = [makePanel(kind, make("p", {}, make("strong", { className: "wraps", textContent: nulls }))), makeTable(outcome.columns)];
  if (outcome.advice.length) {
    parts.push(make("h3", { textContent: "Advice" }), makeList(outcome.advice.map(describeAdvice)));
  }
  find("check-outcome").replaceChildren(...parts);
  ask(read, outcome.nullShare);
}

function describeAdvice({ kind, columns }) {
  const names = columns.join(", ");
  return kind === "binary"
    ? `${names} contains only 0 and 1. If the codebook says so too, declare it as yes or no.`
    : `In every row exactly one of ${names} is 1. If the codebook says so too, declare one category in their place.`;
}

function makeTable(columns) {
  const shown = columns.slice(0, MOST_COLUMNS_SHOWN);
  const head = ["Column", "Empty", "Not fitting", "Clamped", "Effect"].map((words, index) =>
    make("th", { scope: "col", textContent: words, className: index > 0 && index < 4 ? "number" : "" }),
  );
  const rows = shown.map((column) => {
    const numbers = [column.empty, column.unfit, column.clamped].map((number) =>
      make("td", { className: "number", textContent: whole.format(number) }),
    );
    const effect = make("td", { textContent: describeEffect(column) });
    return make("tr", {}, make("th", { scope: "row", textContent: column.name }), ...numbers, effect);
  });
  const caption = make("caption", { className: "hidden", textContent: "Cells that the server would change" });
  const table = make("table", { className: "check-table" }, caption, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
  const region = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: "Columns" }, table);
  const rest = columns.length - shown.length;
  if (rest) region.append(make("p", { textContent: `And ${count(rest, "more column")}.` }));
  return region;
}

function describeEffect({ missing, clamped, imputed }) {
  const effects = [];
  if (missing) effects.push(imputed ? "missing cells get the declared value" : "rows with missing cells are null");
  if (clamped) effects.push("cells outside the bounds move to the bound");
  return effects.join("; ") || "none";
}

// The question

function findUnfinished({ file, mediaType }) {
  const all = [...document.querySelectorAll("[data-upload]")];
  return all.find(({ dataset }) => Number(dataset.length) === file.size && dataset.mediaType === mediaType && dataset.length);
}

function makeChoice(id, words) {
  const box = make("input", { type: "checkbox", id });
  return make("div", { className: "choice" }, box, make("label", { htmlFor: id, textContent: words }));
}

/** Show the button that sends the file, and what must be confirmed before. */
function ask(read, nullShare) {
  const unfinished = findUnfinished(read);
  const parts = [];
  if (nullShare > MOST_NULL_ROWS) {
    const words = "More than 1 % of the rows would be null. Often a code is not the declared one, as M for Male. Correct the \
file or declare again, unless these rows really have no values.";
    parts.push(makePanel("warn", make("p", { textContent: words }), makeChoice("consent", "Upload it anyway")));
  }
  if (unfinished) {
    const words = `An unfinished upload has the length of this file. It continues if the file is the same one; otherwise the \
server rejects it at the end.`;
    parts.push(makePanel("", make("p", { textContent: words }), makeChoice("afresh", "Start again from the beginning")));
  }
  parts.push(make("p", { textContent: `${read.file.name}, ${formatSize(read.file.size)}` }));
  chosen = { ...read, uploadId: null, unfinished: unfinished?.dataset.upload ?? null, item: unfinished };
  find("send-question").replaceChildren(...parts);
  find("start").textContent = "Upload";
  show("send", "start");
  say(`${read.outcome ? "The check is done." : "The file cannot be checked here."} Nothing was sent. You can upload it now.`);
}

// The transfer

async function start() {
  const consent = find("consent");
  if (consent && !consent.checked) {
    say("Confirm that you want to upload rows that would be null, or correct the file first.");
    consent.focus();
    return;
  }
  const current = chosen;
  const { file, mediaType, digest } = current;
  const { signal } = (transfer = new AbortController());
  hide("start");
  show("pause", "cancel", "send-progress");
  find("pause").textContent = "Pause";
  find("pause").focus();
  find("file").disabled = true;
  say("The upload starts.");
  try {
    if (!find("afresh")?.checked) current.uploadId ??= current.unfinished;
    current.uploadId ??= await begin(place, file, mediaType, digest);
    if (chosen !== current) await end(place, current.uploadId); // cancelled in the meantime
    signal.throwIfAborted();
    await send(place, current.uploadId, file, facts.part_bytes, makeReporter(file.size), signal);
    if (current.item?.dataset.upload === current.uploadId) current.item.remove();
    hide("pause", "cancel");
    await follow();
  } catch (error) {
    showInterruption(error);
  }
}

/** Make the function that shows how many bytes are stored; it is announced at each tenth. */
function makeReporter(size) {
  let announced = -1;
  return (offset) => {
    find("send-progress").value = size ? offset / size : 1;
    const tenth = Math.floor((10 * offset) / size);
    if (tenth > announced) {
      announced = tenth;
      say(`${10 * tenth} % of ${formatSize(size)} is stored.`);
    }
  };
}

function showInterruption(error) {
  const isPause = error.name === "AbortError";
  transfer = null;
  if (chosen === null) return; // cancelled
  find("start").textContent = chosen.uploadId ? "Continue" : "Upload";
  hide("pause");
  show("start");
  find("start").focus();
  const words = error instanceof TransferFault || error instanceof FileFault ? error.message : "The file cannot be read.";
  say(isPause ? "Paused. The stored bytes stay for 24 hours after the start." : words);
}

async function cancel() {
  const id = chosen.uploadId;
  const item = chosen.item?.dataset.upload === id ? chosen.item : null;
  chosen = null;
  transfer?.abort();
  hide("send");
  find("file").disabled = false;
  find("file").value = "";
  hide("check");
  find("file").focus();
  try {
    if (id) await end(place, id);
    item?.remove();
    say("The upload is cancelled. The server deletes its bytes.");
  } catch (error) {
    say(`The upload could not be deleted: ${error.message} It expires after 24 hours.`);
  } finally {
    transfer = null;
  }
}

/** Wait until the server has read the table, and show the outcome. */
async function follow() {
  say("All bytes are stored. The server reads the table now.");
  for (;;) {
    const state = await readState(place);
    if (state.status !== "received") {
      showState(state);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL));
  }
}

function showState({ status, columns, remedy }) {
  transfer = null;
  const link = make("a", { href: place, textContent: "Go to the dataset" });
  const isReady = status === "ready";
  const words = isReady ? "The table is ready. Jobs can run on it." : "The server rejected the file.";
  const reason = columns.length ? `${remedy ?? ""} Columns: ${columns.join(", ")}.` : (remedy ?? "");
  const parts = [make("p", {}, make("strong", { className: "wraps", textContent: words }))];
  if (!isReady && reason) parts.push(make("p", { textContent: reason }));
  find("send-question").replaceChildren(makePanel(isReady ? "good" : "bad", ...parts, make("p", {}, link)));
  hide("send-progress", "start");
  find("file").disabled = false;
  find("file").value = "";
  say(words);
  link.focus();
}

// Events

find("file").addEventListener("click", () => {
  find("file").value = ""; // so that a file that was corrected can be chosen again
});
find("file").addEventListener("change", (event) => choose(event.target.files[0]));
find("start").addEventListener("click", start);
find("pause").addEventListener("click", () => transfer?.abort());
find("cancel").addEventListener("click", cancel);
for (const name of ["dragenter", "dragover", "dragleave", "drop"]) {
  find("drop").addEventListener(name, (event) => {
    event.preventDefault();
    find("drop").classList.toggle("over", name === "dragenter" || name === "dragover");
    if (name === "drop") choose(event.dataTransfer.files[0]);
  });
}
root.hidden = false;
