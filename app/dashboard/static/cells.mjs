// Conversion of table cells to values, by the rules of the server.
//
// A cell is missing if it is empty, does not fit its type, or matches no declared category. Missing cells are NaN.

const NUMBER = /^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/;
const EDGES = /^[ \t\n\r\v\f]+|[ \t\n\r\v\f]+$/g;
const MOST_EXACT = 2 ** 53;
const MOST_CACHED = 100_000;

/** Remove the spaces around a text. */
export function trim(text) {
  return text.replace(EDGES, "");
}

/** Parse a finite number; NaN for any other text. */
export function parseNumber(text) {
  const trimmed = trim(text);
  const value = NUMBER.test(trimmed) ? Number(trimmed) : NaN;
  return Number.isFinite(value) ? value : NaN;
}

function parseTruthWord(text) {
  const word = trim(text).toLowerCase();
  return word === "true" ? 1 : word === "false" ? 0 : NaN;
}

function parseTruth(text) {
  const number = parseNumber(text);
  const value = Number.isNaN(number) ? parseTruthWord(text) : number;
  return value === 0 || value === 1 ? value : NaN;
}

function parseInteger(text) {
  const value = parseNumber(text);
  return Number.isInteger(value) ? value : NaN;
}

/** The value by which a text can match a category; null if it has none. */
function findCategoryValue(text) {
  const trimmed = trim(text);
  const value = NUMBER.test(trimmed) ? Number(trimmed) : parseTruthWord(text);
  return Math.abs(value) < MOST_EXACT ? value + 0 : null; // a comparison with NaN is false; -0 becomes 0
}

function makeCategoryParser(categories) {
  const byText = new Map(categories.map((category, index) => [category, index]));
  const values = categories.map(findCategoryValue);
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const byValue = new Map(values.map((value, index) => [value, index]).filter(([value]) => counts.get(value) === 1));
  byValue.delete(null);
  const cache = new Map();

  function find(text) {
    const index = byText.get(text) ?? byText.get(trim(text));
    if (index !== undefined) return index;
    const value = findCategoryValue(text);
    return value === null ? NaN : (byValue.get(value) ?? NaN);
  }

  return (text) => {
    let index = cache.get(text);
    if (index === undefined) {
      if (cache.size > MOST_CACHED) cache.clear();
      index = find(text);
      cache.set(text, index);
    }
    return index;
  };
}

/** Make the function that converts a cell of the declared column. A category becomes its index. */
export function makeParser(column) {
  if (column.type === "categorical") return makeCategoryParser(column.categories);
  return { binary: parseTruth, integer: parseInteger, real: parseNumber }[column.type];
}
