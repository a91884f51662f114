// Combines single WebP pictures into an animation, as the WebP container format describes it
// (developers.google.com/speed/webp/docs/riff_container). A browser encodes the pictures themselves.

/**
 * Frames are drawn on top of each other: each changes only its own rectangle and lasts `ms` milliseconds.
 *
 * @param {{ width: number, height: number, frames: readonly { x: number, y: number, width: number, height: number, ms: number, webp: Uint8Array }[] }} animation
 * @returns {Buffer}
 */
export function animatedWebp({ width, height, frames }) {
  const chunks = [
    chunk('VP8X', Buffer.from([2, 0, 0, 0, ...u24(width - 1), ...u24(height - 1)])),
    chunk('ANIM', Buffer.from([255, 255, 255, 255, 0, 0])), // white background, loops forever
    ...frames.map(frameChunk),
  ]
  return riff(Buffer.concat(chunks))
}

/** Positions are in units of two pixels. `2`: the frame overwrites what it covers, without blending. */
function frameChunk({ x, y, width, height, ms, webp }) {
  const head = [...u24(x / 2), ...u24(y / 2), ...u24(width - 1), ...u24(height - 1), ...u24(ms), 2]
  return chunk('ANMF', Buffer.concat([Buffer.from(head), pictureOf(Buffer.from(webp))]))
}

/** The chunks of a single picture that hold its pixels. */
function pictureOf(file) {
  const found = chunksOf(file).filter(({ name }) => ['ALPH', 'VP8 ', 'VP8L'].includes(name))
  if (found.length === 0) throw new Error('This is no WebP picture.')
  return Buffer.concat(found.map(({ name, data }) => chunk(name, data)))
}

/**
 * The chunks of a WebP file.
 *
 * @param {Buffer} file
 * @returns {{ name: string, data: Buffer }[]}
 */
export function chunksOf(file) {
  const found = []
  for (let at = 12; at + 8 <= file.length; ) {
    const size = file.readUInt32LE(at + 4)
    found.push({ name: file.toString('latin1', at, at + 4), data: file.subarray(at + 8, at + 8 + size) })
    at += 8 + size + (size % 2)
  }
  return found
}

/**
 * The size of an animation, and the duration of each frame in milliseconds.
 *
 * @param {Buffer} file
 * @returns {{ width: number, height: number, durations: number[] }}
 */
export function readAnimation(file) {
  const chunks = chunksOf(file)
  const head = chunks.find(({ name }) => name === 'VP8X')?.data
  if (head === undefined) throw new Error('This WebP file is no animation.')
  const frames = chunks.filter(({ name }) => name === 'ANMF')
  return {
    width: head.readUIntLE(4, 3) + 1,
    height: head.readUIntLE(7, 3) + 1,
    durations: frames.map(({ data }) => data.readUIntLE(12, 3)),
  }
}

function riff(body) {
  const head = Buffer.alloc(12)
  head.write('RIFF', 0, 'latin1')
  head.writeUInt32LE(body.length + 4, 4)
  head.write('WEBP', 8, 'latin1')
  return Buffer.concat([head, body])
}

function chunk(name, data) {
  const head = Buffer.alloc(8)
  head.write(name, 0, 'latin1')
  head.writeUInt32LE(data.length, 4)
  return Buffer.concat([head, data, Buffer.alloc(data.length % 2)])
}

function u24(value) {
  return [value & 255, (value >> 8) & 255, (value >> 16) & 255]
}
