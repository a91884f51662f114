import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { bundleForNode } from '../../scripts/bundle.mjs'
import type { ServerConfig } from './server.process.js'

/** The server of `server.process.ts`, with so many MiB of heap. */
export interface Server {
  readonly port: number
  /** Rejects once the process has ended, with how it ended. */
  readonly ended: Promise<never>
  stop(): Promise<void>
}

/** Builds the process once; the function that comes back starts it. */
export async function buildServer() {
  const script = await bundleForNode(join(import.meta.dirname, 'server.process.ts'), import.meta.dirname)
  const open = new Set<ChildProcess>()
  const start = async (heapMiB: number, config: ServerConfig = {}): Promise<Server> => {
    const args = [`--max-old-space-size=${heapMiB}`, script.file, JSON.stringify(config)]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    open.add(child)
    let errors = ''
    child.stderr.on('data', (text) => {
      errors = `${errors}${text}`.slice(-4000)
    })
    const gone = once(child, 'exit').then(([code, signal]) => {
      open.delete(child)
      return `The server ended: ${code ?? signal}. ${/FATAL ERROR.*|\w*Error.*/.exec(errors)?.[0] ?? errors}`
    })
    const ended = gone.then((how) => Promise.reject(new Error(how)))
    ended.catch(() => {})
    const [port] = await Promise.race([once(child.stdout, 'data'), ended])
    const stop = async () => {
      child.kill('SIGKILL')
      await gone
    }
    return { port: Number(String(port)), ended, stop }
  }
  const remove = async () => {
    for (const child of open) child.kill('SIGKILL')
    await script.remove()
  }
  return { start, remove }
}

/** A connection whose bytes are kept as far as they are read. */
export interface Wire {
  readonly socket: Socket
  /** Resolves when the bytes were taken by the system, or the connection has gone. */
  write(bytes: Uint8Array | string): Promise<void>
  /** Resolves with what was received when the connection has ended. */
  readonly closed: Promise<Buffer>
  /** Resolves with the code of the server's close frame, or with nothing once the connection has ended without one. */
  readonly closeCode: () => Promise<number | undefined>
  /** Resolves with what was received once it has `text`, or the connection has ended. */
  received(text: string): Promise<string>
}

export function openWire(port: number): Wire {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  // a server that has refused may take the connection away while we still write
  socket.on('error', () => {})
  const closed = new Promise<Buffer>((resolve) => {
    socket.once('close', () => resolve(Buffer.concat(chunks)))
  })
  const write = (bytes: Uint8Array | string) =>
    new Promise<void>((resolve) => {
      if (socket.destroyed) return resolve()
      socket.write(bytes, () => resolve())
    })
  const received = (text: string) =>
    new Promise<string>((resolve) => {
      const look = () => {
        const all = Buffer.concat(chunks).toString('latin1')
        if (!all.includes(text) && !socket.closed) return
        socket.off('data', look)
        resolve(all)
      }
      socket.on('data', look)
      socket.on('close', look)
      look()
    })
  const closing = () =>
    new Promise<number | undefined>((resolve) => {
      const look = () => {
        const code = closeCode(Buffer.concat(chunks))
        if (code === undefined && !socket.closed) return
        socket.off('data', look)
        socket.destroy()
        resolve(code)
      }
      socket.on('data', look)
      socket.on('close', look)
      look()
    })
  return { socket, write, closed, received, closeCode: closing }
}

export function post(path: string, user: string | undefined, body: string, length = Buffer.byteLength(body)) {
  const who = user === undefined ? '' : `x-user: ${user}\r\n`
  return `POST ${path} HTTP/1.1\r\nhost: localhost\r\n${who}content-type: application/json\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`
}

export function upgrade(user: string | undefined, path = '/', more = '') {
  const who = user === undefined ? '' : `x-user: ${user}\r\n`
  return `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${who}${more}connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`
}

export interface FrameShape {
  readonly opcode?: number
  readonly final?: boolean
  readonly masked?: boolean
  /** What the header says; default the payload's. */
  readonly length?: number
  /** The three reserved bits. */
  readonly reserved?: number
}

/** A frame of a WebSocket, as a client sends it or as none may. */
export function frame(
  payload: Uint8Array | string,
  { opcode = 1, final = true, masked = true, length, reserved = 0 }: FrameShape = {},
): Buffer {
  const bytes = Buffer.from(payload)
  const said = length ?? bytes.length
  const head = [(final ? 0x80 : 0) | (reserved << 4) | opcode]
  const mark = masked ? 0x80 : 0
  if (said < 126) head.push(mark | said)
  else if (said < 65_536) head.push(mark | 126, said >> 8, said & 255)
  else {
    const size = Buffer.alloc(8)
    size.writeBigUInt64BE(BigInt(said))
    head.push(mark | 127, ...size)
  }
  // a mask of zeros leaves the payload as it is
  return Buffer.concat([Buffer.from(head), Buffer.alloc(masked ? 4 : 0), bytes])
}

/** The code of the close frame that a server sent last, or nothing. */
function closeCode(bytes: Buffer): number | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  let [at, code]: [number, number | undefined] = [end + 4, undefined]
  while (at + 2 <= bytes.length) {
    const [first = 0, second = 0] = bytes.subarray(at, at + 2)
    let [length, head] = [second & 127, 2]
    if (at + 10 > bytes.length && length > 125) return code
    if (length === 126) [length, head] = [bytes.readUInt16BE(at + 2), 4]
    else if (length === 127) [length, head] = [Number(bytes.readBigUInt64BE(at + 2)), 10]
    if ((first & 15) === 8 && length >= 2 && at + head + 2 <= bytes.length)
      code = bytes.readUInt16BE(at + head)
    at += head + length
  }
  return code
}

export function chatBody(text: string, more: object = {}, runId = randomBytes(8).toString('hex')): string {
  const messages = [{ id: 'u', role: 'user', content: text }]
  const input = { threadId: `t-${runId}`, runId, protocolVersion: '1.0', messages, tools: [], context: [] }
  return JSON.stringify({ ...input, ...more })
}

/** What a request of somebody else gets, who has done nothing: the text of a run, to its end. */
export async function serves(port: number, user = 'ann'): Promise<string> {
  const wire = openWire(port)
  await wire.write(post('/chat', user, chatBody('hello')))
  return (await wire.closed).toString('latin1')
}
