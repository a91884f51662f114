import type { ChatClient } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import { type Facts, type ServedRun, violate } from './facts.js'
import { createHandStream, type HandStream } from './hand-stream.js'
import type { ClientModule, Model } from './model.js'
import { answersOf, createModelServer } from './model-server.js'
import type { CallbackName, Moment } from './observed.js'
import { checkRequest } from './request-checks.js'
import { createViewCheck } from './view-checks.js'

/** A client tool at work. */
export interface ToolRun {
  readonly id: string
  readonly signal: AbortSignal
  readonly finish: () => void
  returned: boolean
}

/** A client that asks for more runs does not settle. */
const maxRuns = 60

/** Any input will do: the model's calls have no schema. */
const anything = {
  '~standard': { version: 1 as const, vendor: 'explore', validate: (value: unknown) => ({ value }) },
}

/** The client and its server, and all that can be seen of them: every request and every change is checked as it comes. */
export class World {
  readonly facts: Facts
  readonly tools: ToolRun[] = []
  readonly checkView: () => void
  readonly #model: Model
  readonly #mayAct: (moment: Moment) => void
  readonly #callbacks = new Map<CallbackName, number>()
  #inCallback = false
  #status = 'ready'
  /** The page was told of the failure of the open run. */
  #failureHeard = false

  /** `mayAct` is called inside of callbacks and listeners, where the model wants that. */
  constructor(module: ClientModule, model: Model, mayAct: (moment: Moment) => void) {
    this.#model = model
    this.#mayAct = mayAct
    this.facts = {
      client: this.#createClient(module),
      server: createModelServer(model),
      runs: [],
      answers: new Map(),
      reopening: new Set(),
      said: [],
      toolRuns: new Map(),
      log: [],
      violations: [],
      acting: undefined,
      held: undefined,
      isLate: false,
      releases: 0,
      failed: false,
    }
    this.checkView = createViewCheck(this.facts)
    this.facts.client.subscribe(() => this.#heard())
  }

  #createClient({ ChatClient, stream }: ClientModule): ChatClient {
    let ids = 0
    return new ChatClient({
      threadId: 'thread',
      connection: stream((input, { signal }) => this.#serve(input, signal)),
      tools: [
        {
          name: 'client_tool',
          description: 'Runs in the client.',
          location: 'client',
          input: anything,
          execute: (_: never, { toolCallId, signal }: { toolCallId: string; signal: AbortSignal }) =>
            this.#runTool(toolCallId, signal),
        },
      ],
      onPendingMessage: this.#model.mode,
      notify: 'sync',
      now: () => 0,
      generateId: () => `id${++ids}`,
      onWarning: () => {},
      onApprovalRequest: () => this.#called('onApprovalRequest'),
      onFinish: () => {
        this.#runEnded('finished')
        this.#called('onFinish')
      },
      onError: () => {
        this.#runEnded('failed')
        this.#called('onError')
      },
    })
  }

  #serve(input: RunAgentInput, signal: AbortSignal): HandStream {
    const { facts } = this
    const number = facts.runs.length + 1
    const stream = createHandStream(number, input, signal)
    const pieces = number > maxRuns ? [] : facts.server.respond(input, number)
    const run: ServedRun = {
      number,
      input,
      stream,
      pieces,
      cause: facts.acting,
      sent: 0,
      acknowledged: false,
      end: 'open',
    }
    facts.runs.push(run)
    const answers = [...answersOf({ ...input, messages: [] })]
      .map(([id, answer]) => `${id} ${answer}`)
      .join(', ')
    const users = input.messages.filter(({ role }) => role === 'user').length
    facts.log.push({ kind: 'request', run: number, cause: run.cause, answers, users })
    if (number === maxRuns) violate(facts, 'settles', `${maxRuns} requests and no end.`)
    checkRequest(facts, run)
    facts.failed = false
    return stream
  }

  #runTool(id: string, signal: AbortSignal): Promise<unknown> {
    const { facts } = this
    const count = (facts.toolRuns.get(id) ?? 0) + 1
    facts.toolRuns.set(id, count)
    facts.log.push({ kind: 'tool', id, what: 'starts' })
    if (count > 1) violate(facts, 'once', `The client tool of ${id} runs ${count} times.`)
    if (facts.held && facts.acting === undefined)
      violate(facts, 'quiet', `The client tool of ${id} starts after stop() without an act.`)
    return new Promise((resolve) => {
      this.tools.push({ id, signal, returned: false, finish: () => resolve('done') })
    })
  }

  #runEnded(end: 'finished' | 'failed'): void {
    const run = this.facts.runs.find((run) => run.end === 'open')
    if (!run) return
    run.end = end
    const heard = this.#failureHeard
    this.#failureHeard = false
    // who heard of the failure before may have acted since
    if (end === 'failed' && heard) return
    this.facts.failed = end === 'failed' && run === this.facts.runs.at(-1)
  }

  /** The client told of a change. */
  #heard(): void {
    this.checkView()
    const { status } = this.facts.client.getSnapshot()
    if (status === this.#status) return
    this.#status = status
    this.facts.log.push({ kind: 'status', status })
    if (status === 'error') {
      this.#failureHeard = true
      this.facts.failed = this.facts.runs.at(-1)?.end === 'open'
    }
    this.#called('listener')
  }

  /** The user may act inside of a callback. */
  #called(name: CallbackName): void {
    const count = (this.#callbacks.get(name) ?? 0) + 1
    this.#callbacks.set(name, count)
    if (!this.#model.callbacks || this.#inCallback) return
    this.#inCallback = true
    this.#mayAct({ at: name, count })
    this.#inCallback = false
  }
}
