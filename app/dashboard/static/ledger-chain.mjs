// Verification of an account's hash chain and its signatures, with the browser's own cryptography. The encoding is that of
// app/hashchain: SHA-256 and Ed25519 of canonical JSON (RFC 8785). This module neither reads the page nor sends anything.

import { Sha256 } from "./sha256.mjs";

const GENESIS = "0".repeat(64);
const CONTENT = ["account_id", "at", "kind", "dataset_id", "job_id", "body", "epsilon_after", "sequence", "previous_hash"];
const CHECKPOINT = ["at", "account_id", "account_sequence", "account_head", "balance_hash", "sequence", "previous_hash"];
const HEAD = ["account_id", "sequence", "head", "balance_hash", "checkpoint"];

/** A chain that does not verify; the message says where. */
export class ChainFault extends Error {}

/** Write canonical JSON. Numbers and texts are written as ECMAScript does, which RFC 8785 demands. */
export function canonicalise(value) {
  if (Array.isArray(value)) return `[${value.map(canonicalise).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonicalise(value[name])}`).join(",")}}`;
}

function encode(value) {
  return new TextEncoder().encode(canonicalise(value));
}

function pick(source, names) {
  return Object.fromEntries(names.map((name) => [name, source[name] ?? null]));
}

function decode(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** SHA-256 in hexadecimal. Browsers offer their own only on https and on this computer. */
async function hash(bytes) {
  const subtle = globalThis.crypto?.subtle;
  const found = subtle ? new Uint8Array(await subtle.digest("SHA-256", bytes)) : new Sha256().update(bytes).digest();
  return [...found].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function digest(value) {
  return hash(encode(value));
}

/** Import the public keys; null if the browser cannot verify Ed25519. */
export async function importKeys(described) {
  const keys = new Map();
  for (const { key_id: name, public_key: text, until } of described) {
    const bytes = decode(text);
    if (name !== `ed25519:${(await hash(bytes)).slice(0, 16)}`) throw new ChainFault("A key has another id than stated.");
    try {
      const key = await globalThis.crypto.subtle.importKey("raw", bytes, { name: "Ed25519" }, false, ["verify"]);
      keys.set(name, { key, until });
    } catch {
      return null;
    }
  }
  return keys;
}

/** The state of one verification. Give it all parts of the chain in order, and then end it. */
export class ChainCheck {
  #keys;
  #account = null;
  #hashes = [];
  #newest = 0; // the account's newest checkpoint so far
  #covered = 0; // the last entry that a checkpoint or the head signs
  #isComplete = false;
  #tail = []; // the entries after it
  #signatures = 0;

  /** ``keys`` of importKeys; null: signatures are not verified. */
  constructor(keys) {
    this.#keys = keys;
  }

  /** The number of entries so far. */
  get count() {
    return this.#hashes.length;
  }

  /** Verify one part of the chain. */
  async add(part) {
    this.#account ??= part.account_id;
    if (part.account_id !== this.#account) throw new ChainFault("A part belongs to another account.");
    const marks = [...part.checkpoints];
    for (const entry of part.entries) {
      await this.#take(entry);
      while (marks.length && marks[0].account_sequence === entry.sequence) await this.#mark(marks.shift());
    }
    if (marks.length) throw new ChainFault(`Checkpoint ${marks[0].sequence} signs an entry that is missing.`);
    if (part.head !== null) await this.#end(part.head);
  }

  /** Describe the verified chain. Without Ed25519, ``signatures`` is null. ``tail``: entries after the signed head. */
  end() {
    if (!this.#isComplete) throw new ChainFault("The end of the chain is missing.");
    const signatures = this.#keys === null ? null : this.#signatures;
    return { entries: this.count, hash: this.#hashes.at(-1), signatures, tail: this.#tail.length };
  }

  /** Find the number of the entry with this hash; 0 if there is none. */
  find(entryHash) {
    return this.#hashes.indexOf(entryHash) + 1;
  }

  async #take(entry) {
    const name = `Entry ${this.count + 1}`;
    if (entry.sequence !== this.count + 1) throw new ChainFault(`${name} is missing, or not in its place.`);
    if (entry.previous_hash !== (this.#hashes.at(-1) ?? GENESIS)) throw new ChainFault(`${name} does not follow the entry before it.`);
    if (entry.account_id !== this.#account) throw new ChainFault(`${name} belongs to another account.`);
    if ((await digest(pick(entry, CONTENT))) !== entry.entry_hash) throw new ChainFault(`${name} was altered.`);
    const isSigned = await this.#verifyReservation(entry, name);
    this.#hashes.push(entry.entry_hash);
    this.#tail.push({ sequence: entry.sequence, kind: entry.kind, isSigned });
  }

  async #verifyReservation(entry, name) {
    if (entry.kind !== "reserved" || !entry.body?.signature) return false;
    const { signature, key_id: key, ...body } = entry.body;
    const statement = { purpose: "reservation", ...pick(entry, ["account_id", "sequence", "dataset_id", "job_id"]) };
    statement.body_hash = await digest(body);
    await this.#verify(statement, signature, key, this.#newest, name);
    return true;
  }

  async #mark(mark) {
    const name = `Checkpoint ${mark.sequence}`;
    if (!(mark.sequence > this.#newest)) throw new ChainFault(`${name} is not in its place.`);
    if (mark.account_id !== this.#account) throw new ChainFault(`${name} belongs to another account.`);
    if (mark.account_head !== this.#hashes[mark.account_sequence - 1]) throw new ChainFault(`${name} signs another entry.`);
    if ((await digest(pick(mark, CHECKPOINT))) !== mark.checkpoint_hash) throw new ChainFault(`${name} was altered.`);
    const statement = pick(mark, ["checkpoint_hash", "sequence"]);
    await this.#verify(statement, mark.signature, mark.key_id, mark.sequence, name);
    this.#newest = mark.sequence;
    this.#cover(mark.account_sequence);
  }

  async #end(head) {
    const statement = { ...pick(head, HEAD), ...(head.strict ? { strict: true } : {}) };
    if (head.account_id !== this.#account) throw new ChainFault("The signed head belongs to another account.");
    if (head.end.sequence !== this.count || head.end.entry_hash !== this.#hashes.at(-1)) {
      throw new ChainFault("Entries at the end of the chain are missing.");
    }
    if (head.checkpoint !== this.#newest) throw new ChainFault("The newest checkpoint is missing.");
    if (head.head !== this.#hashes[head.sequence - 1]) throw new ChainFault("The signed head is another entry.");
    await this.#verify(statement, head.signature, head.key_id, head.checkpoint, "The signed head");
    this.#cover(head.sequence);
    const loose = this.#tail.find(({ kind, isSigned }) => head.strict && kind !== "frozen" && !isSigned);
    if (loose) throw new ChainFault(`Entry ${loose.sequence} has no signature.`);
    this.#isComplete = true;
  }

  #cover(sequence) {
    this.#covered = Math.max(this.#covered, sequence);
    this.#tail = this.#tail.filter((each) => each.sequence > this.#covered);
  }

  async #verify(statement, signature, name, place, words) {
    if (this.#keys === null) return;
    const found = this.#keys.get(name);
    if (!found) throw new ChainFault(`${words} is signed by an unknown key.`);
    if (found.until !== null && place > found.until) throw new ChainFault(`${words} is signed by a key that was retired before.`);
    let isValid = false;
    try {
      isValid = await globalThis.crypto.subtle.verify({ name: "Ed25519" }, found.key, decode(signature), encode(statement));
    } catch {
      isValid = false; // a signature that is not base64
    }
    if (!isValid) throw new ChainFault(`The signature of ${words[0].toLowerCase()}${words.slice(1)} is not valid.`);
    this.#signatures += 1;
  }
}
