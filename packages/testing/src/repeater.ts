import { type Connection, clientTool } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import { type TimelineEntry, toError } from '@countersign/devtools'
import { createGate } from './waiting.js'

/** A server and client tools that repeat a recording. */
export class Repeater {
  readonly requests: RunAgentInput[] = []
  readonly connection: Connection
  readonly #tools = new Map<string, (entry: { output: unknown } | { error: { message: string } }) => void>()
  readonly #answers = new Map<string, () => void>()
  /** By approval id, whether each delivery of its answer was returned. */
  readonly #returns = new Map<string, boolean[]>()
  #stream: Stream | undefined

  constructor(entries: readonly TimelineEntry[]) {
    const steps = entries.flatMap((entry) => ('step' in entry && entry.step ? [entry.step] : []))
    for (const step of steps) {
      if (step.type === 'answer-sent')
        this.#returns.set(step.approvalId, [...(this.#returns.get(step.approvalId) ?? []), false])
      if (step.type === 'answer-returned') this.#returns.get(step.approvalId)?.splice(-1, 1, true)
    }
    const rejoins = steps.some(
      (step) => step.type === 'run-closed' && step.end.type === 'failed' && step.end.resumable,
    )
    this.connection = {
      connect: (input) => {
        this.requests.push(input)
        return this.#open()
      },
      ...(this.#returns.size > 0 && { answer: ({ resume }) => this.#deliver(resume[0]?.interruptId ?? '') }),
      ...(rejoins && { rejoin: () => this.#open() }),
    }
  }

  /** A client tool that returns its recorded output when the replay reaches it. */
  readonly tool = ({ name, description, parameters }: NonNullable<RunAgentInput['tools']>[number]) =>
    clientTool({
      name,
      description,
      ...(parameters && { parameters }),
      input: {
        '~standard': { version: 1, vendor: 'countersign', validate: (value: unknown) => ({ value }) },
      },
      execute: (_: unknown, { toolCallId }: { readonly toolCallId: string }) =>
        new Promise<unknown>((resolve, reject) => {
          this.#tools.set(toolCallId, (given) =>
            'error' in given ? reject(new Error(given.error.message)) : resolve(given.output),
          )
        }),
    })

  repeat(entry: TimelineEntry): void {
    switch (entry.kind) {
      case 'event':
        this.#stream?.push({ event: entry.event })
        return
      case 'closed': {
        const end = entry.step?.end
        // RUN_ERROR was sent as an event; the stream itself ended normally.
        const failure =
          end?.type === 'failed' && end.error.code !== 'run-error' ? toError(end.error) : undefined
        this.#stream?.push({ end: failure })
        return
      }
      case 'note':
        if (entry.step?.type === 'tool-output') this.#tools.get(entry.step.toolCallId)?.(entry.step)
        if (entry.step?.type === 'answer-returned') this.#answers.get(entry.step.approvalId)?.()
        return
      default:
        return
    }
  }

  #open(): AsyncIterable<unknown> {
    const stream = new Stream()
    this.#stream = stream
    return stream.read()
  }

  #deliver(id: string): Promise<void> {
    if (!this.#returns.get(id)?.shift()) return Promise.resolve()
    return new Promise((_, reject) => {
      const error = { code: 'approval-stale', message: 'The recorded run did not take it.' } as const
      this.#answers.set(id, () => reject(toError(error)))
    })
  }
}

type Piece = { readonly event: unknown } | { readonly end: Error | undefined }

/** A stream that is filled piece by piece. */
class Stream {
  readonly #pieces: Piece[] = []
  #more = createGate()

  push(piece: Piece): void {
    this.#pieces.push(piece)
    this.#more.open()
  }

  async *read(): AsyncGenerator<unknown, void, undefined> {
    for (;;) {
      const piece = this.#pieces.shift()
      if (!piece) {
        await this.#more.opened
        this.#more = createGate()
      } else if ('event' in piece) yield piece.event
      else if (piece.end) throw piece.end
      else return
    }
  }
}
