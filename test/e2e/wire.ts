import { once } from 'node:events'
import { request as ask, createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

/**
 * A way to a server on which a test decides how far an answer has come. Open connections can be cut and new ones refused, as when a laptop
 * goes offline; a stream can be held after one of its frames and let through frame by frame.
 */
export interface Wire {
  url: string
  cut(): void
  mend(): void
  /** From now on, holds a stream of events after the frame that contains `text`, the `nth` that does. */
  holdAfter(text: string, nth?: number): void
  /** Resolves when a stream is held. */
  held(): Promise<void>
  /** Lets one more frame of the held stream through. */
  next(): void
  /** Lets all through again. */
  release(): void
  close(): Promise<void>
}

/** Where a stream is held: after `left` more frames that contain `text`. */
interface Hold {
  readonly text: string
  left: number
}

/** Decides how many of the frames that have come may go on. */
function createGate() {
  let hold: Hold | undefined
  let credit = 0
  let onChange: (() => void)[] = []
  const changed = () => {
    const listeners = onChange
    onChange = []
    for (const listener of listeners) listener()
  }
  const isHeld = () => hold !== undefined && hold.left <= 0 && credit === 0
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise<void>((resolve) => onChange.push(resolve))
  }
  return {
    holdAfter(text: string, nth = 1) {
      hold = { text, left: nth }
      changed()
    },
    next() {
      credit++
      changed()
    },
    release() {
      hold = undefined
      credit = 0
      changed()
    },
    held: () => until(isHeld),
    /** Resolves when `frame` may go on. */
    async pass(frame: string) {
      await until(() => !isHeld())
      if (hold === undefined) return
      if (credit > 0) credit--
      else if (frame.includes(hold.text)) hold.left--
      changed()
    },
  }
}

export async function startWire(target: string): Promise<Wire> {
  const { port } = new URL(target)
  const gate = createGate()
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((near, response) => {
    const { method, url, headers } = near
    const far = ask({ host: '127.0.0.1', port, method, path: url, headers })
    response.on('close', () => far.destroy())
    far.on('error', () => response.destroy())
    far.on('response', (answer) => void forward(answer, response, gate.pass).catch(() => response.destroy()))
    near.pipe(far)
  })
  server.on('connection', (socket) => {
    if (isCut) return void socket.destroy()
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const cut = () => {
    isCut = true
    for (const socket of sockets) socket.destroy()
  }
  return {
    ...gate,
    url: `http://localhost:${(server.address() as AddressInfo).port}`,
    cut,
    mend: () => {
      isCut = false
    },
    close: async () => {
      gate.release()
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A stream of events goes on frame by frame, all else as it comes. */
async function forward(
  answer: IncomingMessage,
  response: ServerResponse,
  pass: (frame: string) => Promise<void>,
) {
  response.writeHead(answer.statusCode ?? 502, answer.headers)
  if (!answer.headers['content-type']?.startsWith('text/event-stream')) return void answer.pipe(response)
  let rest = ''
  answer.setEncoding('utf8')
  for await (const chunk of answer) {
    const frames = (rest + chunk).split('\n\n')
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      await pass(frame)
      response.write(`${frame}\n\n`)
    }
  }
  response.end(rest)
}
