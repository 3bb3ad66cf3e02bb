// A parser of CSV (RFC 4180) that takes the text in pieces of any size.

const COMMA = 44;
const QUOTE = 34;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const RECORD_START = 0;
const CELL_START = 1;
const PLAIN = 2;
const QUOTED = 3;
const CLOSED = 4; // after a quotation mark inside a quoted cell
const LONGEST_CELL = 131_072;

/** A file that is not a table. The message says what to do. */
export class FileFault extends Error {}

/** Splits CSV into records, and gives each to ``take`` as an array of texts. Empty lines are no records. */
export class CsvParser {
  #take;
  #state = RECORD_START;
  #cell = "";
  #record = [];

  constructor(take) {
    this.#take = take;
  }

  /** Parse the next piece of the text. */
  write(text) {
    let state = this.#state;
    let from = 0; // where the run of characters that belong to the current cell begins
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (state === QUOTED) {
        if (code === QUOTE) {
          this.#cell += text.slice(from, at);
          from = at + 1;
          state = CLOSED;
        }
      } else if (code === COMMA) {
        this.#endCell(text.slice(from, at));
        from = at + 1;
        state = CELL_START;
      } else if (code === LINE_FEED || code === CARRIAGE_RETURN) {
        if (state !== RECORD_START) this.#endRecord(text.slice(from, at));
        from = at + 1;
        state = RECORD_START;
      } else if (code === QUOTE && state < PLAIN) {
        from = at + 1;
        state = QUOTED;
      } else if (code === QUOTE && state === CLOSED) {
        state = QUOTED; // two quotation marks are one; the run begins with the second
      } else {
        state = PLAIN;
      }
    }
    this.#cell += text.slice(from);
    this.#state = state;
    this.#checkLength();
  }

  /** End the text. */
  end() {
    if (this.#state === QUOTED) {
      throw new FileFault("The file ends inside a quoted cell. Add the missing quotation mark.");
    }
    if (this.#state !== RECORD_START) this.#endRecord("");
    this.#state = RECORD_START;
  }

  #endCell(rest) {
    this.#cell += rest;
    this.#checkLength();
    this.#record.push(this.#cell);
    this.#cell = "";
  }

  #endRecord(rest) {
    this.#endCell(rest);
    const record = this.#record;
    this.#record = [];
    this.#take(record);
  }

  #checkLength() {
    if (this.#cell.length > LONGEST_CELL) {
      throw new FileFault("A cell is longer than 131,072 characters. Check for an unclosed quotation mark.");
    }
  }
}

// Python's white space, which the server removes around the names of columns.
const SPACE = "[\\t\\n\\v\\f\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
const NAME_EDGES = new RegExp(`^${SPACE}|${SPACE}$`, "g");

/** The names of columns in the first record. */
export function readNames(record) {
  return record.map((name) => name.replace(NAME_EDGES, ""));
}
