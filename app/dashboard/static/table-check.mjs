// The check of a table against its declaration, in the browser. Nothing in this module sends anything.

import { makeParser, trim } from "./cells.mjs";
import { CsvParser, FileFault, readNames } from "./csv.mjs";

const LEAST_ROWS = 20; // fewer readable rows support no advice

/** Counts the rows and cells of a table that the server would change. */
export class TableCheck {
  #columns;
  #unit;
  #counts = null;
  #width = 0;
  #ragged = 0; // rows with more or fewer cells than the header
  #groups = [];
  #parser = new CsvParser((record) => this.#take(record));
  rows = 0;
  nullRows = 0;
  names = [];

  /** ``unit`` is the name of the column that identifies the privacy unit, or null. */
  constructor(columns, unit = null) {
    this.#columns = columns;
    this.#unit = unit;
  }

  /** Read the next piece of the file's text. */
  write(text) {
    this.#parser.write(text);
  }

  /** End the file, and return the outcome. */
  end() {
    this.#parser.end();
    const declared = this.#columns.map((column) => column.name);
    const present = new Set(this.names);
    const counts = (this.#counts ?? []).filter(Boolean);
    return {
      rows: this.rows,
      nullRows: this.nullRows,
      nullShare: this.rows ? this.nullRows / this.rows : 0,
      columns: counts.map(({ column, empty, unfit, clamped }) => ({
        name: column.name,
        missing: empty + unfit,
        empty,
        unfit,
        clamped,
        imputed: column.missing != null,
      })),
      absent: declared.filter((name) => !present.has(name)),
      unknown: this.names.filter((name) => !declared.includes(name)),
      advice: this.rows - this.#ragged < LEAST_ROWS ? [] : [...this.#adviseBinary(counts), ...this.#adviseCategories()],
    };
  }

  #take(record) {
    if (this.#counts === null) this.#begin(readNames(record));
    else this.#count(record);
  }

  #begin(names) {
    if (new Set(names).size < names.length) {
      throw new FileFault("A column name appears twice in the header. Name each column once.");
    }
    this.names = names;
    this.#width = names.length;
    const declared = new Map(this.#columns.map((column) => [column.name, column]));
    this.#counts = names.map((name) => {
      const column = declared.get(name);
      if (!column) return null;
      const counts = { column, parse: makeParser(column), isUnit: name === this.#unit };
      return Object.assign(counts, { empty: 0, unfit: 0, clamped: 0, onlyTruths: true });
    });
    this.#groups = findGroups(names, (index) => this.#counts[index] && this.#counts[index].column.type !== "categorical");
  }

  #count(record) {
    this.rows += 1;
    if (record.length !== this.#width) {
      this.nullRows += 1;
      this.#ragged += 1;
      return;
    }
    let isNull = false;
    for (let index = 0; index < record.length; index += 1) {
      const counts = this.#counts[index];
      if (counts !== null && !countCell(counts, record[index])) isNull = true;
    }
    if (isNull) this.nullRows += 1;
    if (this.#groups.length) this.#groups = this.#groups.filter(({ indices }) => hasOneOne(record, indices));
  }

  #adviseBinary(counts) {
    return counts
      .filter(({ column, isUnit, onlyTruths }) => !isUnit && onlyTruths && isNumeric(column))
      .map(({ column }) => ({ kind: "binary", columns: [column.name] }));
  }

  #adviseCategories() {
    return this.#groups.map(({ indices }) => ({ kind: "category", columns: indices.map((index) => this.names[index]) }));
  }
}

function isNumeric(column) {
  return column.type === "integer" || column.type === "real";
}

/** Count one cell; returns whether its row stays usable. */
function countCell(counts, text) {
  const { column } = counts;
  let value = counts.parse(text);
  if (isNumeric(column)) {
    if (counts.onlyTruths && value !== 0 && value !== 1) counts.onlyTruths = false;
    if (value < column.lower || value > column.upper) {
      if (counts.isUnit) value = NaN;
      else counts.clamped += 1;
    }
  }
  if (!Number.isNaN(value)) return true;
  if (trim(text) === "") counts.empty += 1;
  else counts.unfit += 1;
  return column.missing != null;
}

/** Groups of columns whose names begin alike, as ``work_private`` and ``work_public`` do. */
function findGroups(names, isCandidate) {
  const groups = new Map();
  names.forEach((name, index) => {
    const end = name.lastIndexOf("_");
    if (end > 0 && isCandidate(index)) {
      const stem = name.slice(0, end);
      groups.set(stem, [...(groups.get(stem) ?? []), index]);
    }
  });
  return [...groups.values()].filter((indices) => indices.length > 1).map((indices) => ({ indices }));
}

function hasOneOne(record, indices) {
  let ones = 0;
  for (const index of indices) {
    const text = trim(record[index]);
    if (text === "1" || text === "1.0") ones += 1;
    else if (text !== "0" && text !== "0.0") return false;
  }
  return ones === 1;
}
