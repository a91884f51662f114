/** What the workloads are made of: the same every time. */

/** Numbers that look random and are the same in every run (mulberry32). */
export function createRandom(seed = 1) {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below
  }
}

const words =
  'the quick brown fox writes état, naïve café – and 日本語 too; it reads, asks, waits and goes on'.split(' ')

/** A text of exactly `length` characters, not all of them ASCII. */
export function prose(length, seed = 7) {
  const random = createRandom(seed)
  const parts = []
  for (let size = 0; size < length; ) {
    const word = `${words[random(words.length)]} `
    parts.push(word)
    size += word.length
  }
  return parts.join('').slice(0, length)
}

/** A text cut into pieces of `min` to `max` characters. */
export function cut(text, min, max = min, seed = 3) {
  const random = createRandom(seed)
  const pieces = []
  for (let at = 0; at < text.length; ) {
    const end = at + min + random(max - min + 1)
    pieces.push(text.slice(at, end))
    at = end
  }
  return pieces
}

/** `count` deltas of 4 to 12 characters. */
export function textDeltas(count, seed = 5) {
  const random = createRandom(seed)
  return Array.from({ length: count }, () => prose(4 + random(9), random(1000)))
}

/** Arguments of about `length` characters: rows, of which each has a long and a few short members. */
export function argumentsText(length) {
  const row = (i) => ({ id: i, path: `src/part-${i}.ts`, done: i % 3 === 0, text: prose(900, i) })
  return JSON.stringify({
    title: 'plan',
    content: prose(Math.floor(length * 0.6)),
    rows: Array.from({ length: Math.ceil((length * 0.4) / 1000) }, (_, i) => row(i)),
  })
}

/** Bytes cut anywhere, also inside a character: reads of 1 byte to 4 KiB. */
export function cutBytes(text, seed = 11) {
  const random = createRandom(seed)
  const bytes = new TextEncoder().encode(text)
  const reads = []
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random(4096)
    reads.push(bytes.slice(at, end))
    at = end
  }
  return reads
}

/** Events in batches, as the reads of a connection bring them. */
export function batches(events, size = 64) {
  const all = []
  for (let at = 0; at < events.length; at += size) all.push(events.slice(at, at + size))
  return all
}

/** A conversation of `count` messages of 200 characters, as pairs of role and text. */
export function conversation(count) {
  return Array.from({ length: count }, (_, i) => ({
    id: `h${i}`,
    role: i % 2 === 0 ? 'user' : 'assistant',
    text: prose(200, i),
  }))
}

/** Makes each thing once, for all contenders. */
export function once(make) {
  const made = new Map()
  return (key) => {
    if (!made.has(key)) made.set(key, make(key))
    return made.get(key)
  }
}
