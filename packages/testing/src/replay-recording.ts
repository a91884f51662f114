import {
  type ApprovalResponse,
  ChatClient,
  type ChatClientOptions,
  type InterruptResponse,
  type SendInput,
  type ToolResult,
  type UIMessage,
} from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { statePatch } from '@countersign/client/state-patch'
import { isRecord, type RunAgentInput, sameJson } from '@countersign/core'
import {
  printEntry,
  type RecordedAction,
  type Recorder,
  type Recording,
  record,
  type TimelineEntry,
} from '@countersign/devtools'
import { Repeater } from './repeater.js'
import { macrotasks, pass } from './waiting.js'

/** Options of the recorded chat that a recording does not contain. */
export type ReplayOptions = Partial<Pick<ChatClientOptions, 'onPendingMessage' | 'maxContinuations'>>

/** The result of replaying a recording. */
export interface Replayed {
  /** In its final state. */
  readonly client: ChatClient
  /** The replayed entries; they match the recorded ones. */
  readonly entries: readonly TimelineEntry[]
  /** Every request that the client made. */
  readonly requests: readonly RunAgentInput[]
}

/**
 * Replays a recording: a new client receives the same events at the same moments from a server that only repeats,
 * and the recorded user actions are performed on it. Everything else the client does itself, and each entry
 * (request, step, state with both flags of the continuation) must match the recorded one. Rejects at the first that
 * does not, showing both. Actions that the application performed inside a callback are performed right after it.
 *
 * @example await replayRecording(readRecording(await readFile('countersign-recording.json', 'utf8')))
 */
export async function replayRecording(recording: Recording, options: ReplayOptions = {}): Promise<Replayed> {
  return new Replay(recording, options).play()
}

/** How many turns of the event loop, then milliseconds, to wait for the consequences of an entry. */
const TURNS = 100
const MOST_MS = 500

class Replay {
  readonly #recording: Recording
  readonly #client: ChatClient
  readonly #server: Repeater
  readonly #earlierRuns: number
  #recorder: Recorder | undefined
  #at = 0
  /** The client's clock, which follows the recording. */
  #now = 0

  constructor(recording: Recording, options: ReplayOptions) {
    this.#recording = recording
    this.#server = new Repeater(recording.entries)
    this.#earlierRuns = runsBefore(recording.entries)
    checkBeginning(recording.entries)
    const ids = idsOf(recording.entries)
    const { threadId, start } = recording
    this.#client = new ChatClient({
      ...options,
      connection: this.#server.connection,
      threadId,
      persistence: persistent({ load: async () => start, save: async () => {}, remove: async () => {} }),
      statePatch,
      notify: 'sync',
      generateId: () => ids.shift() ?? `replayed-${this.#at}`,
      now: () => this.#now,
      onWarning: () => {},
    })
  }

  async play(): Promise<Replayed> {
    const { entries } = this.#recording
    await this.#client.restore()
    this.#recorder = record(this.#client, { limit: Number.POSITIVE_INFINITY, now: () => this.#now })
    for (const [at, entry] of entries.entries()) {
      this.#at = at
      this.#now = entry.at ?? this.#now
      if (!this.#came()) await this.#bringAbout(entry)
      this.#compare(entry)
    }
    await macrotasks(2)
    this.#at = entries.length
    if (this.#came()) this.#fail('nothing more')
    this.#recorder.stop()
    return { client: this.#client, entries: this.#entries, requests: this.#server.requests }
  }

  get #entries(): readonly TimelineEntry[] {
    return this.#recorder?.entries ?? []
  }

  /** Whether the chat has reached the current entry. */
  #came(): boolean {
    return this.#entries.length > this.#at
  }

  /** Triggers an entry. What the client does itself is only awaited. */
  async #bringAbout(entry: TimelineEntry): Promise<void> {
    this.#client.setOptions(this.#optionsOf(this.#at))
    if (entry.kind === 'action' && entry.action) this.#perform(entry.action)
    else this.#server.repeat(entry)
    for (let turn = 0; turn < TURNS && !this.#came(); turn++) await macrotasks(1)
    for (let ms = 0; ms < MOST_MS && !this.#came(); ms += 5) await pass(5)
  }

  /** Options are not recorded; the next request shows them. */
  #optionsOf(at: number): Pick<ChatClientOptions, 'tools' | 'forwardedProps'> {
    const next = this.#recording.entries.slice(at).find((entry) => entry.kind === 'request')
    if (next?.kind !== 'request') return {}
    const { tools = [], forwardedProps } = next.input
    return { tools: tools.map(this.#server.tool), forwardedProps }
  }

  #perform({ name, value }: RecordedAction): void {
    const perform = actions[name]
    if (!perform) this.#fail(`an action of the client, not ${name}`)
    if (isMessage(value)) this.#now = value.createdAt ?? this.#now
    perform(this.#client, value as never)
  }

  #compare(recorded: TimelineEntry): void {
    const played = this.#entries[this.#at]
    if (!played || !sameJson(plain(recorded, this.#earlierRuns), plain(played))) this.#fail(printed(recorded))
  }

  #fail(expected: string): never {
    const played = this.#entries[this.#at]
    const { cut } = this.#recording
    const before = this.#recording.entries.slice(Math.max(0, this.#at - 5), this.#at).map(printed)
    throw new Error(
      [
        `The replay is another story from entry ${cut + this.#at + 1} on.`,
        ...before.map((line) => `           ${line}`),
        `recorded:  ${expected}`,
        `replayed:  ${played ? printed(played) : 'nothing'}`,
      ].join('\n'),
    )
  }
}

/** How each recorded action is repeated. The recorded value is the argument of the method. */
const actions: Readonly<Record<string, (client: ChatClient, value: never) => unknown>> = {
  sendMessage: (client, message: UIMessage | undefined) =>
    message?.role === 'user' || !message
      ? client.sendMessage(message && inputOf(message))
      : client.append(message),
  cancelQueued: (client, id: string) => client.cancelQueued(id),
  addToolApprovalResponse: (client, response: ApprovalResponse) => client.addToolApprovalResponse(response),
  addToolApprovalResponses: (client, responses: readonly ApprovalResponse[]) =>
    client.addToolApprovalResponses(responses),
  withdrawApprovalResponse: (client, id: string) => client.withdrawApprovalResponse(id),
  addToolResult: (client, result: ToolResult) => client.addToolResult(result),
  respondToInterrupt: (client, response: InterruptResponse) => client.respondToInterrupt(response),
  // Attaching makes the client notice that a request has expired.
  expire: (client) => client.attach(),
  stop: (client) => client.stop(),
  retry: (client) => client.retry(),
  regenerate: (client, from: { readonly messageId?: string }) => client.regenerate(from),
  setMessages: (client, messages: readonly UIMessage[]) => client.setMessages(messages),
  setState: (client, { state }: { readonly state?: unknown }) => client.setState(state),
  clearError: (client) => client.clearError(),
}

/** The argument that produced this message. */
function inputOf({ parts, metadata }: UIMessage): SendInput {
  const content = parts.filter((part) => part.type === 'text' || part.type === 'file')
  return { parts: content, ...(metadata && { metadata }) }
}

function isMessage(value: unknown): value is UIMessage {
  return isRecord(value) && typeof value.id === 'string' && Array.isArray(value.parts)
}

function printed(entry: TimelineEntry): string {
  const whole = JSON.stringify(plain(entry))
  return `${entry.kind} ${printEntry(entry)}${whole.length > 600 ? '' : `   ${whole}`}`
}

/** An entry as in a file, without its time, and with its run number relative to the start of the recording. */
function plain(entry: TimelineEntry, earlierRuns = 0): unknown {
  const { at: _, ...rest } = entry
  return JSON.parse(JSON.stringify('run' in rest ? { ...rest, run: rest.run - earlierRuns } : rest))
}

/** Events of a run that the client did not request cannot be replayed. */
function checkBeginning(entries: readonly TimelineEntry[]): void {
  const first = entries.find(({ kind }) => kind === 'request' || kind === 'event' || kind === 'closed')
  if (first && first.kind !== 'request') {
    throw new Error(
      'The recording begins inside of a run, or follows a chat in another tab, and cannot be replayed. Record from a moment when nothing runs, in the tab that leads.',
    )
  }
}

/** How many runs preceded the recording; its run numbers start after them. */
function runsBefore(entries: readonly TimelineEntry[]): number {
  const first = entries.find((entry) => 'run' in entry)
  if (!first || !('run' in first)) return 0
  return first.kind === 'request' ? first.run - 1 : first.run
}

/** The ids that the client generated, in order. */
function idsOf(entries: readonly TimelineEntry[]): string[] {
  return entries.flatMap((entry) => {
    switch (entry.kind) {
      case 'action':
        return isMessage(entry.action?.value) ? [entry.action.value.id] : []
      case 'request':
        return entry.rejoin ? [] : [entry.input.runId]
      case 'note':
        return entry.step?.type === 'tool-output' ? [entry.step.messageId] : []
      default:
        return []
    }
  })
}
