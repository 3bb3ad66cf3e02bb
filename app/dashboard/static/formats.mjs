// Detection of file formats by their first bytes and names, as the Python client detects them.

import { FileFault } from "./csv.mjs";

export const CSV = "text/csv";
export const PARQUET = "application/vnd.apache.parquet";
export const ARROW = "application/vnd.apache.arrow.stream";
/** How many of the first bytes show the format. */
export const FORMAT_BYTES = 16;

const COMPRESSED = "The file is compressed as a whole. Decompress it first.";
const ARROW_FILE = "This is an Arrow (Feather) file, but only Arrow streams are accepted. Save the table as Parquet or CSV.";
const UTF_16 = "The text is encoded as UTF-16. Save it as UTF-8.";
const REFUSED = [
  ["PK\x03\x04", "This is a zip archive, as Excel workbooks are. Save the sheet as CSV (UTF-8)."],
  ["\xd0\xcf\x11\xe0", "This is an Excel workbook. Save the sheet as CSV (UTF-8)."],
  ["\x1f\x8b", COMPRESSED],
  ["BZh91AY&SY", COMPRESSED],
  ["\xfd7zXZ\x00", COMPRESSED],
  ["\x28\xb5\x2f\xfd", COMPRESSED],
  ["ARROW1\x00\x00", ARROW_FILE],
  ["FEA1\x00", ARROW_FILE],
  ["SQLite format 3\x00", "This is an SQLite database. Export the table as CSV."],
  ["\xff\xfe", UTF_16],
  ["\xfe\xff", UTF_16],
];

/** The media type of a file with this name that begins with these bytes. Throws FileFault for a refused format. */
export function findMediaType(start, name) {
  const text = String.fromCharCode(...start.subarray(0, FORMAT_BYTES));
  if (text === "") throw new FileFault("The file is empty.");
  const refused = REFUSED.find(([magic]) => text.startsWith(magic));
  if (refused) throw new FileFault(refused[1]);
  if (text.startsWith("PAR1")) return PARQUET;
  if (text.startsWith("\xff\xff\xff\xff")) return ARROW;
  if (/\.(parquet|arrows?)$/i.test(name)) {
    throw new FileFault("The name of the file is that of another format than its content. Rename it.");
  }
  return CSV;
}
