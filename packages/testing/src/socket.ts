import { once } from 'node:events'
import type { ClientFrame, ServerFrame } from '@countersign/client/web-socket'
import type { ResumeEntry } from '@countersign/core'
import type { WebSocket } from 'ws'
import {
  createScript,
  type Frame,
  type RunScript,
  type Script,
  type ScriptHost,
  type ScriptOptions,
} from './script.js'
import { within } from './waiting.js'

/** A scripted WebSocket server on the loopback interface. */
export interface ScriptedSocket extends Script {
  readonly url: string
  /** How many sockets are open now, and how many were opened in total. */
  readonly sockets: { readonly open: number; readonly opened: number }
  /** The frames that clients sent, in order. */
  readonly frames: readonly ClientFrame[]
  /** Resolves when a live answer to `approvalId` has been delivered into a run; for scripts that are generators. Fails after 5 s. */
  answered(approvalId: string): Promise<ResumeEntry>
  close(): Promise<void>
}

export interface ScriptedSocketOptions extends ScriptOptions {
  /** What happens to a live answer: the run accepts it (default), the server refuses it, or does not reply. */
  onAnswer?: (answer: AnswerFrame) => 'take' | 'ignore' | { readonly refuse: string }
}

type AnswerFrame = Extract<ClientFrame, { type: 'answer' }>

/**
 * The server of `scriptedConnection` over a real WebSocket, for `webSocket` of `@countersign/client/web-socket`. `respond`
 * fails the run with an `error` frame, `bytes` sends a raw message, `cut` breaks the socket. Close it at the end of the test.
 *
 * @example
 * const server = await scriptedSocket([async function* () {
 *   yield* gated(1)
 *   await server.answered('a1')
 *   yield result('c1')
 * }])
 * const client = new ChatClient({ connection: webSocket(server.url) })
 */
export async function scriptedSocket(
  runs: readonly RunScript[],
  options: ScriptedSocketOptions = {},
): Promise<ScriptedSocket> {
  // Loaded here, so that `scriptedServer` works where Vite resolves packages for browsers: `ws` has no server then.
  const { WebSocketServer }: Partial<typeof import('ws')> = await import('ws')
  if (WebSocketServer === undefined)
    throw new Error(
      'Vite has resolved `ws` for browsers. Run tests of sockets without the Vite plugins of components.',
    )
  const { script, answer } = createScript(runs, options)
  const frames: ClientFrame[] = []
  const answers = createMailbox()
  let opened = 0
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('connection', (socket) => {
    opened++
    const peer = createPeer(socket, { answer, script, answers, onAnswer: options.onAnswer ?? (() => 'take') })
    socket.on('message', (data) => {
      const frame: ClientFrame = JSON.parse(String(data))
      frames.push(frame)
      peer.receive(frame)
    })
    socket.on('close', peer.gone)
  })
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  return Object.assign(script, {
    url: `ws://127.0.0.1:${port}/`,
    frames,
    sockets: {
      get open() {
        return server.clients.size
      },
      get opened() {
        return opened
      },
    },
    answered: (approvalId: string) =>
      within(
        5000,
        answers.wait(approvalId),
        () => `No answer to ${approvalId} came.\n${script.timeline.print()}`,
      ),
    async close() {
      for (const socket of server.clients) socket.terminate()
      server.close()
      await once(server, 'close')
    },
  })
}

interface Peer {
  receive(frame: ClientFrame): void
  gone(): void
}

interface PeerHost {
  readonly answer: ScriptHost['answer']
  readonly script: Script
  readonly answers: Mailbox
  readonly onAnswer: NonNullable<ScriptedSocketOptions['onAnswer']>
}

/** One socket and the runs on it. */
function createPeer(socket: WebSocket, { answer, script, answers, onAnswer }: PeerHost): Peer {
  const runs = new Map<string, AbortController>()
  const send = (frame: ServerFrame) => socket.send(JSON.stringify(frame))
  const note = (text: string) => script.timeline.add({ kind: 'note', run: script.requests.length, text })

  async function run({ input }: Extract<ClientFrame, { type: 'run' }>): Promise<void> {
    const { runId } = input
    const stop = new AbortController()
    runs.set(runId, stop)
    try {
      for await (const frame of answer(input, stop.signal)) {
        if (stop.signal.aborted) continue
        write(frame, runId)
        if (frame.kind === 'cut') return
      }
      if (runs.delete(runId) && !stop.signal.aborted) send({ type: 'end', runId })
    } finally {
      runs.delete(runId)
    }
  }

  function write(frame: Frame, runId: string): void {
    switch (frame.kind) {
      case 'event':
        send({ type: 'events', runId, events: [frame.event] })
        break
      case 'bytes':
        socket.send(frame.text)
        break
      case 'respond':
        runs.delete(runId)
        send({ type: 'error', runId, code: `${frame.status}`, message: frame.body })
        break
      case 'cut':
        // Flushes what was written.
        socket.send('{"type":"cut"}', () => socket.terminate())
        break
      default:
        frame satisfies never
    }
  }

  function deliver(frame: AnswerFrame): void {
    const { id, runId, resume } = frame
    note(`live answer ${resume.map(({ interruptId }) => interruptId).join(', ')}`)
    const decision = runs.has(runId) ? onAnswer(frame) : { refuse: 'run-ended' }
    if (decision === 'take') {
      send({ type: 'answered', id })
      for (const entry of resume) answers.put(entry)
    } else if (decision !== 'ignore') {
      send({ type: 'refused', id, code: decision.refuse, message: 'The run does not take it.' })
    }
  }

  return {
    receive(frame) {
      switch (frame.type) {
        case 'run':
          run(frame).catch((error: unknown) => {
            // The script itself is wrong: the client sees a broken socket, and the timeline records why.
            note(String(error))
            socket.terminate()
          })
          return
        case 'answer':
          return deliver(frame)
        case 'rejoin':
          // A script stores no runs, so there is nothing to rejoin.
          return send({ type: 'end', runId: frame.runId })
        case 'stop':
          runs.get(frame.runId)?.abort()
          return
        default:
          frame satisfies never
      }
    },
    gone() {
      for (const stop of runs.values()) stop.abort()
    },
  }
}

/** Entries by the id of their request; each may arrive before or after it is awaited. */
interface Mailbox {
  put(entry: ResumeEntry): void
  wait(id: string): Promise<ResumeEntry>
}

function createMailbox(): Mailbox {
  const arrived = new Map<string, ResumeEntry>()
  const waiting = new Map<string, ((entry: ResumeEntry) => void)[]>()
  return {
    put(entry) {
      arrived.set(entry.interruptId, entry)
      for (const resolve of waiting.get(entry.interruptId) ?? []) resolve(entry)
    },
    wait(id) {
      const entry = arrived.get(id)
      if (entry) return Promise.resolve(entry)
      return new Promise((resolve) => {
        waiting.set(id, [...(waiting.get(id) ?? []), resolve])
      })
    },
  }
}
