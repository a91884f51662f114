import type { Connection } from '@countersign/client'
import { createScript, type Frame, type RunScript, type Script, type ScriptOptions } from './script.js'
import type { ScriptedEvent } from './writer.js'

/** A connection in the same process, to a scripted server. */
export interface ScriptedConnection extends Connection, Script {}

/**
 * A connection that a test controls step by step: request k gets the response `runs[k - 1]`.
 *
 * @example
 * const server = scriptedConnection([[call('c1', 'delete_file', { path: 'a.log' }), ask('a1', 'c1')], [resolve(), text('Done.')]])
 * const client = new ChatClient({ connection: server })
 */
export function scriptedConnection(runs: readonly RunScript[], options?: ScriptOptions): ScriptedConnection {
  const { script, answer } = createScript(runs, options)
  const connect: Connection['connect'] = async function* (input, { signal }) {
    // By value, as over a network: a script may be replayed.
    for await (const frame of answer(input, signal)) yield structuredClone(carry(frame))
  }
  return Object.assign(script, { connect })
}

function carry(frame: Frame): ScriptedEvent {
  switch (frame.kind) {
    case 'event':
      return frame.event
    case 'cut':
      throw new TypeError(frame.message)
    case 'respond':
    case 'bytes':
      throw new TypeError(`${frame.kind}() is for a server over HTTP: use scriptedServer.`)
    default:
      return frame satisfies never
  }
}
