// Runs the browser's check on the cases of standard input, and writes one outcome for each piece size.

import { readFileSync } from "node:fs";

import { TableCheck } from "../../../app/dashboard/static/table-check.mjs";
import { FileFault } from "../../../app/dashboard/static/csv.mjs";
import { formatDigest, Sha256 } from "../../../app/dashboard/static/sha256.mjs";

function check({ columns, unit, hex }, size) {
  const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
  const decoder = new TextDecoder();
  const digest = new Sha256();
  const table = new TableCheck(columns, unit);
  try {
    for (let at = 0; at < bytes.length; at += size) {
      const piece = bytes.subarray(at, at + size);
      digest.update(piece);
      table.write(decoder.decode(piece, { stream: true }));
    }
    table.write(decoder.decode());
    return { ...table.end(), digest: formatDigest(digest.digest()) };
  } catch (error) {
    if (error instanceof FileFault) return { faulty: true };
    throw error;
  }
}

const { cases, sizes } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(cases.map((each) => sizes.map((size) => check(each, size)))));
