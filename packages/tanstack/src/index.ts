import type { Compat } from '@countersign/client'
import { CountersignError, type RunAgentInput } from '@countersign/core'
import {
  type AskedRun,
  createEventTranslator,
  type EventTranslator,
  type TranslatorOptions,
} from './events.js'
import { olderInput } from './messages.js'
import { createTanstackReader, tanstackInput } from './routes.js'

export { upgradeMessages } from './messages.js'

export interface CompatOptions extends Pick<TranslatorOptions, 'acceptUnfinished'> {
  /**
   * The server's AG-UI version, such as `0.0.45`. What that version does not know is neither sent to it nor
   * accepted from it. Default: any 0.x; only what all of them write differently is translated.
   */
  readonly version?: string | undefined
}

/**
 * For servers older than AG-UI 1.0. It translates the retired `THINKING_*` events, `null` for absent fields, `binary` content parts,
 * a run with other ids than requested, a `RUN_FINISHED` without ids, and events after it. Requests get the fields that 0.x requires
 * and lose `protocolVersion`. With a `version`: up to 0.0.39 content is flattened to text, up to 0.0.45 reasoning is not sent, up to
 * 0.0.57 subagents are removed in both directions. It warns about everything that is lost. The result is still validated strictly.
 *
 * @example new ChatClient({ connection: fetchServerSentEvents('/api/chat'), compat: compat({ version: '0.0.45' }) })
 * @throws CountersignError `invalid-option` if `version` is not a version number.
 */
export function compat({ version, acceptUnfinished }: CompatOptions = {}): Compat {
  const upTo = atMost(version)
  return (connection, warn) => {
    const { rejoin } = connection
    const translate = ({ threadId, runId }: AskedRun, events: AsyncIterable<unknown>) =>
      translated(
        events,
        createEventTranslator({
          warn,
          acceptUnfinished,
          asked: { threadId, runId },
          dropSubagents: upTo('0.0.57'),
        }),
      )
    return {
      ...connection,
      connect: (input, options) => translate(input, connection.connect(request(input, warn), options)),
      ...(rejoin && { rejoin: (cursor, options) => translate(cursor, rejoin(cursor, options)) }),
    }
  }

  function request(input: RunAgentInput, warn: (message: string) => void): RunAgentInput {
    const olderThan = { subagents: upTo('0.0.57'), reasoning: upTo('0.0.45'), parts: upTo('0.0.39') }
    return olderInput(input, olderThan, warn)
  }
}

/**
 * For a `chat()` route of TanStack AI: its approvals, client tools and interrupts work like those of any AG-UI agent, and its
 * events are put into the order of AG-UI 1.0. The reason of a denial reaches the model as the result of the denied call.
 *
 * @example new ChatClient({ connection: fetchServerSentEvents('/api/chat'), compat: tanstack() })
 */
export function tanstack(): Compat {
  return (connection, warn) => {
    const { rejoin } = connection
    const translator = ({ threadId, runId }: AskedRun) =>
      createEventTranslator({ warn, asked: { threadId, runId }, dropSubagents: false })
    return {
      ...connection,
      connect(input, options) {
        const events = connection.connect(tanstackInput(input), options)
        return translated(events, translator(input), createTanstackReader(input))
      },
      ...(rejoin && {
        rejoin: (cursor, options) =>
          translated(rejoin(cursor, options), translator(cursor), createTanstackReader(cursor, true)),
      }),
    }
  }
}

async function* translated(
  events: AsyncIterable<unknown>,
  { push, end, holdsLast }: EventTranslator,
  read: (event: unknown) => readonly unknown[] = (event) => [event],
): AsyncGenerator<readonly unknown[]> {
  const reader = events[Symbol.asyncIterator]()
  try {
    for (let coming = reader.next(); ; ) {
      const come = await (holdsLast() ? inTime(coming) : coming)
      if (!come || come.done) {
        const rest = end()
        if (rest.length > 0) yield rest
        if (come) return
        continue
      }
      const batch = come.value
      const next = (Array.isArray(batch) ? batch : [batch]).flatMap(read).flatMap(push)
      if (next.length > 0) yield next
      coming = reader.next()
    }
  } finally {
    // Not awaited: a source that waits for its next event ends when its request is aborted.
    void Promise.resolve(reader.return?.()).catch(() => {})
  }
}

/** Milliseconds that a `RUN_FINISHED` is held back for what belongs before it: a proxy may never end the response. */
const HOLD_MS = 1000

/** `undefined`: it has not come in time. */
function inTime<T>(coming: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, HOLD_MS, undefined)
  })
  return Promise.race([coming, late]).finally(() => clearTimeout(timer))
}

/** Whether the server's version is the given one or older; false if it is unknown. */
function atMost(version: string | undefined): (limit: string) => boolean {
  if (version === undefined) return () => false
  if (!/^\d+(\.\d+)*$/.test(version))
    throw new CountersignError(
      'invalid-option',
      `compat: version has to be one such as "0.0.45": ${version}`,
      {
        option: 'version',
      },
    )
  return (limit) => compare(version, limit) <= 0
}

function compare(a: string, b: string): number {
  const others = b.split('.')
  for (const [index, part] of a.split('.').entries()) {
    const difference = Number(part) - Number(others[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
