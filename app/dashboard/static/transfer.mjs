// The upload of a file in parts, by the calls of this server. Each part is sent again until the server has stored it.

import { formatDigest, Sha256 } from "./sha256.mjs";

const PART_BYTES = 8 * 2 ** 20;
const ATTEMPTS = 8;
const FIRST_DELAY = 500; // milliseconds; doubled after each attempt
const LONGEST_DELAY = 15_000;
const TRANSIENT = new Set([409, 429, 503]);
const LOST = "The server does not answer. Check the connection, and continue.";
const SIGNED_OUT = "You are signed out. Sign in again in another tab, and continue here.";

/** A refusal of the server, or no answer. ``status`` is 0 without an answer. */
export class TransferFault extends Error {
  constructor(message, status = 0, wait = null) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

/** Send a request; returns the answer if it is a success. */
async function call(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, {
      ...options,
      headers: { Accept: "application/json", ...options.headers },
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new TransferFault(LOST);
  }
  if (answer.ok) return answer;
  if (answer.status === 401) throw new TransferFault(SIGNED_OUT, 401);
  const problem = await answer.json().catch(() => ({}));
  const wait = Number(answer.headers.get("Retry-After")) * 1000 || null;
  throw new TransferFault(problem.detail ?? "The server refused the request.", answer.status, wait);
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** Create an upload, and return its id. */
export async function begin(place, file, mediaType, digest) {
  const answer = await call(`${place}/uploads`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ media_type: mediaType, length: file.size, digest }),
  });
  return (await answer.json()).id;
}

async function readOffset(upload, signal) {
  return (await (await call(upload, { signal })).json()).offset;
}

/** Compute the SHA-256 of a part. Browsers offer WebCrypto only on https and on this computer. */
async function computeDigest(bytes) {
  if (!globalThis.crypto?.subtle) return new Sha256().update(new Uint8Array(bytes)).digest();
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** Send the bytes that begin at ``offset``; returns where the upload continues. */
async function sendPart(upload, offset, bytes, signal) {
  const digest = formatDigest(await computeDigest(bytes));
  for (let attempt = 1; ; attempt += 1) {
    try {
      await call(upload, {
        method: "PATCH",
        headers: { "Content-Type": "application/octet-stream", "Upload-Offset": offset, "Content-Digest": digest },
        body: bytes,
        signal,
      });
      return offset + bytes.byteLength;
    } catch (error) {
      const isTransient = error instanceof TransferFault && (error.status === 0 || TRANSIENT.has(error.status));
      if (!isTransient || attempt === ATTEMPTS) throw error;
      await pause(error.wait ?? Math.min(FIRST_DELAY * 2 ** attempt, LONGEST_DELAY), signal);
      const stored = await readOffset(upload, signal).catch(() => offset);
      if (stored !== offset) return stored; // for example because only the answer was lost
    }
  }
}

/** Send the bytes that the server lacks, and complete the upload. ``signal`` ends the transfer between two bytes. */
export async function send(place, id, file, mostBytes, report, signal) {
  const upload = `${place}/uploads/${id}`;
  const size = Math.min(PART_BYTES, mostBytes);
  let offset = await readOffset(upload, signal);
  report(offset);
  while (offset < file.size) {
    const bytes = await file.slice(offset, offset + size).arrayBuffer();
    offset = await sendPart(upload, offset, bytes, signal);
    report(offset);
  }
  await call(`${upload}/complete`, { method: "POST", signal });
}

/** Delete an upload. */
export async function end(place, id) {
  await call(`${place}/uploads/${id}`, { method: "DELETE" });
}

/** Read the state of the newest table. */
export async function readState(place) {
  return (await call(`${place}/content`)).json();
}
