// SHA-256 (FIPS 180-4) of bytes that come in pieces. The digest of the browser takes the whole file at once.

const BLOCK = 64;

/** Compute the first 64 bits of the fractional part of a root of each of the first ``count`` primes, to 32 bits. */
function makeConstants(count, exponent) {
  const primes = [];
  for (let number = 2; primes.length < count; number += 1) {
    if (primes.every((prime) => number % prime)) primes.push(number);
  }
  return Uint32Array.from(primes, (prime) => (prime ** exponent % 1) * 2 ** 32);
}

const ROUND = Int32Array.from(makeConstants(64, 1 / 3));
const START = makeConstants(8, 1 / 2);

/** The state of one digest. */
export class Sha256 {
  #state = START.slice();
  #words = new Int32Array(64);
  #rest = new Uint8Array(BLOCK);
  #held = 0;
  #length = 0;

  /** Add bytes, a Uint8Array. */
  update(bytes) {
    this.#length += bytes.length;
    let at = 0;
    if (this.#held) {
      at = Math.min(BLOCK - this.#held, bytes.length);
      this.#rest.set(bytes.subarray(0, at), this.#held);
      this.#held += at;
      if (this.#held < BLOCK) return this;
      this.#compress(this.#rest, 0);
      this.#held = 0;
    }
    for (; at + BLOCK <= bytes.length; at += BLOCK) this.#compress(bytes, at);
    this.#rest.set(bytes.subarray(at));
    this.#held = bytes.length - at;
    return this;
  }

  /** End the digest, and return its 32 bytes. */
  digest() {
    const padding = new Uint8Array((this.#held < 56 ? BLOCK : 2 * BLOCK) - this.#held);
    const view = new DataView(padding.buffer);
    const length = this.#length;
    padding[0] = 0x80;
    view.setUint32(padding.length - 8, Math.floor(length / 2 ** 29));
    view.setUint32(padding.length - 4, (length << 3) >>> 0);
    this.update(padding);
    const result = new DataView(new ArrayBuffer(32));
    this.#state.forEach((word, index) => result.setUint32(4 * index, word));
    return new Uint8Array(result.buffer);
  }

  #compress(bytes, from) {
    const words = this.#words;
    for (let i = 0, at = from; i < 16; i += 1, at += 4) {
      words[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
    }
    for (let i = 16; i < 64; i += 1) {
      const x = words[i - 15];
      const y = words[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[i] = words[i - 16] + s0 + words[i - 7] + s1;
    }
    const state = this.#state;
    let a = state[0] | 0;
    let b = state[1] | 0;
    let c = state[2] | 0;
    let d = state[3] | 0;
    let e = state[4] | 0;
    let f = state[5] | 0;
    let g = state[6] | 0;
    let h = state[7] | 0;
    for (let i = 0; i < 64; i += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUND[i] + words[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
}

/** Write a digest as a field value of RFC 9530. */
export function formatDigest(bytes) {
  return `sha-256=:${btoa(String.fromCharCode(...bytes))}:`;
}
