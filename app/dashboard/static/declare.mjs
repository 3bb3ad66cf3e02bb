// Fills in the names of columns from the header of a CSV file. The browser reads its first bytes, and sends nothing.

import { CsvParser, readNames } from "./csv.mjs";
import { CSV, findMediaType } from "./formats.mjs";
import { sendOnce } from "./once.mjs";

const HEADER_BYTES = 256 * 1024;

const section = document.querySelector("#from-file");
const columns = document.querySelector("#columns");
const template = document.querySelector("#column-template");
const outcome = document.querySelector("#from-file-outcome");

/** Read the names in the header of a CSV file. */
async function readHeader(file) {
  const bytes = new Uint8Array(await file.slice(0, HEADER_BYTES).arrayBuffer());
  if (findMediaType(bytes, file.name) !== CSV) throw new Error("Choose a CSV file; the names of other formats are not read here.");
  let header = null;
  const parser = new CsvParser((record) => {
    header ??= record;
  });
  parser.write(new TextDecoder().decode(bytes, { stream: true }));
  if (header === null && bytes.length === file.size) parser.end();
  if (header === null) throw new Error("The file has no header line in its first bytes.");
  return readNames(header).filter(Boolean);
}

function findNameFields() {
  return [...columns.querySelectorAll("input[id$='-name']")];
}

/** Add a blank column, as the form's button does. */
function addColumn(name) {
  const numbers = findNameFields().map((field) => Number(field.id.split("-")[1]));
  const number = Math.max(-1, ...numbers) + 1;
  const blank = template.content.firstElementChild.cloneNode(true);
  for (const node of blank.querySelectorAll("*")) {
    for (const attribute of ["id", "name", "for", "value"]) {
      const text = node.getAttribute(attribute);
      if (text?.includes("99999")) node.setAttribute(attribute, text.replace("99999", number));
    }
  }
  blank.querySelector(".column-number").textContent = number + 1;
  blank.querySelector(".remove .hidden").textContent = ` column ${number + 1}`;
  blank.querySelector("input").value = name;
  columns.append(blank);
}

/** Add the names that the form does not have, and return how many. */
function fillIn(names) {
  const typed = new Set(findNameFields().map((field) => field.value.trim()));
  const added = names.filter((name) => !typed.has(name));
  if (typed.size + added.length > Number(section.dataset.most)) {
    throw new Error(`The file has more columns than this form takes, ${section.dataset.most}. Use the client or the API.`);
  }
  const empty = findNameFields().filter((field) => !field.value.trim());
  for (const name of added) {
    const field = empty.shift();
    if (field) field.value = name;
    else addColumn(name);
  }
  return added.length;
}

section.querySelector("input").addEventListener("change", async (event) => {
  const [file] = event.target.files;
  if (!file) return;
  try {
    const count = fillIn(await readHeader(file));
    outcome.textContent = `${count} ${count === 1 ? "name was" : "names were"} filled in. Nothing was sent.`;
  } catch (error) {
    outcome.textContent = error.message;
  }
  event.target.value = "";
});

sendOnce(document.querySelector("form.declaration")); // a second click would declare a second dataset
section.hidden = false;
