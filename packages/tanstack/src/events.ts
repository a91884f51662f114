import { isRecord } from '@countersign/core'
import { upgradeMessages } from './messages.js'

type Fields = Readonly<Record<string, unknown>>

/** The requested run. */
export interface AskedRun {
  readonly threadId: string
  readonly runId: string
}

export interface TranslatorOptions {
  readonly warn: (message: string) => void
  readonly asked: AskedRun
  /** Removes subagents and all references to them. */
  readonly dropSubagents: boolean
  /**
   * Accepts a stream that ends without `RUN_FINISHED` as complete, with a warning; messages and calls that are still open are an
   * error anyway. A truncated response then looks complete, so use it only for servers that never send the event. Default false.
   */
  readonly acceptUnfinished?: boolean | undefined
}

/** Translates the events of one stream. `push` takes them parsed from JSON; `end` returns what was held back. */
export interface EventTranslator {
  push(event: unknown): readonly unknown[]
  /** Whether it holds back a `RUN_FINISHED` after which little can follow: the run waits for the user, or the model has ended its turn. */
  holdsLast(): boolean
  end(): readonly unknown[]
}

/** The fields in which `null` is a valid value. */
const nullable: Readonly<Record<string, string>> = {
  STATE_SNAPSHOT: 'snapshot',
  CUSTOM: 'value',
  RAW: 'event',
}

/** The current names of retired events. */
const thinking: Readonly<Record<string, string>> = {
  THINKING_START: 'REASONING_START',
  THINKING_END: 'REASONING_END',
  THINKING_TEXT_MESSAGE_START: 'REASONING_MESSAGE_START',
  THINKING_TEXT_MESSAGE_CONTENT: 'REASONING_MESSAGE_CONTENT',
  THINKING_TEXT_MESSAGE_END: 'REASONING_MESSAGE_END',
}

/**
 * Translates the events of one stream from a server older than AG-UI 1.0. `RUN_FINISHED` is held back until
 * the stream ends or its next run begins, because such servers send events after it that belong before it.
 */
export function createEventTranslator(options: TranslatorOptions): EventTranslator {
  const { asked, dropSubagents, acceptUnfinished = false } = options
  const warned = new Set<string>()
  let run: { readonly threadId: unknown; readonly runId: unknown } | undefined
  let foreign: Fields | undefined
  let finished: Fields | undefined
  let failed = false
  let spans = 0
  let texts = 0

  /** Each warning is given once, because a stream repeats its cause in every event. */
  const warn = (message: string) => {
    if (!warned.has(message)) options.warn(message)
    warned.add(message)
  }

  const release = (): Fields[] => {
    const held = finished ? [finished] : []
    finished = undefined
    return held
  }

  /** Retired events had no ids: those between two start events belong together. */
  function asReasoning(event: Fields, type: string): Fields {
    warn(`${event.type} is translated to ${type}: AG-UI 1.0 calls thinking reasoning.`)
    if (event.type === 'THINKING_START') spans++
    if (event.type === 'THINKING_TEXT_MESSAGE_START') texts++
    const isSpan = type === 'REASONING_START' || type === 'REASONING_END'
    const messageId = `thinking_${run?.runId}_${isSpan ? `span_${spans}` : texts}`
    const { title: _, ...rest } = event
    const role = type === 'REASONING_MESSAGE_START' ? { role: 'reasoning' } : {}
    return { ...rest, type, messageId, ...role }
  }

  function withoutSubagents(event: Fields): Fields[] {
    if (String(event.type).startsWith('SUBAGENT_')) {
      warn(`dropping ${event.type}: the server's version has no subagents.`)
      return []
    }
    const { subagentRunId, ...rest } = event
    return [subagentRunId === undefined ? event : rest]
  }

  /** Some servers choose their own run ids. */
  function asAsked(event: Fields): Fields {
    const { threadId, runId } = event
    if (threadId === asked.threadId && runId === asked.runId) return event
    warn('The server gave the run other ids than the request; it is treated as the requested run.')
    foreign = { threadId, runId }
    return { ...event, ...asked }
  }

  function isForeign({ threadId, runId }: Fields): boolean {
    return foreign !== undefined && threadId === foreign.threadId && runId === foreign.runId
  }

  function follow(event: Fields): Fields[] {
    switch (event.type) {
      case 'RUN_STARTED': {
        const started = run ? event : asAsked(event)
        run = { threadId: started.threadId, runId: started.runId }
        failed = false
        return [...release(), started]
      }
      case 'RUN_FINISHED':
        finished = { ...run, ...event, ...(isForeign(event) && run) }
        return []
      case 'RUN_ERROR':
        failed = true
        return [...release(), event]
      case 'MESSAGES_SNAPSHOT':
        return Array.isArray(event.messages)
          ? [{ ...event, messages: upgradeMessages(event.messages) }]
          : [event]
      default:
        return [event]
    }
  }

  return {
    push(raw) {
      if (!isRecord(raw)) return [raw]
      const event = withoutNulls(raw)
      const type = thinking[String(event.type)]
      if (type !== undefined) return [asReasoning(event, type)]
      return (dropSubagents ? withoutSubagents(event) : [event]).flatMap(follow)
    },
    holdsLast() {
      const { outcome, finishReason, metadata } = finished ?? {}
      const own = isRecord(metadata) ? metadata.finishReason : undefined
      // Tools of the server may run now, for any time.
      const isStep = (finishReason ?? own) === 'tool_calls' && !isRecord(outcome)
      return finished !== undefined && !isStep
    },
    end() {
      if (finished || !acceptUnfinished || !run || failed) return release()
      warn('The stream ended without RUN_FINISHED. It is treated as complete, as the option says.')
      return [{ type: 'RUN_FINISHED', ...run }]
    },
  }
}

/** Older servers send `null` for absent fields. */
function withoutNulls(event: Fields): Fields {
  const kept = nullable[String(event.type)]
  const entries = Object.entries(event)
  const wanted = entries.filter(([key, value]) => value !== null || key === kept)
  return wanted.length === entries.length ? event : Object.fromEntries(wanted)
}
