// Verifies chains of standard input with the script of the page, and writes one outcome for each.

import { readFileSync } from "node:fs";

import { canonicalise, ChainCheck, ChainFault, importKeys } from "../../../app/dashboard/static/ledger-chain.mjs";

async function verify({ parts, without }) {
  try {
    const keys = await importKeys(parts[0].keys);
    const check = new ChainCheck(without ? null : keys);
    for (const part of parts) await check.add(part);
    const outcome = check.end();
    return { ...outcome, first: check.find(parts[0].entries[0].entry_hash), none: check.find("0") };
  } catch (error) {
    if (error instanceof ChainFault) return { fault: error.message };
    throw error;
  }
}

const { cases, values } = JSON.parse(readFileSync(0, "utf8"));
const outcomes = [];
for (const each of cases) outcomes.push(await verify(each));
process.stdout.write(JSON.stringify({ outcomes, forms: values.map(canonicalise) }));
