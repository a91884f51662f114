import { CountersignError } from '@countersign/core'
import { checkModelRequest } from './check-request.js'
import type { Model, ModelEvent, ModelRequest } from './model.js'

/** One response of a scripted model: its events, or a function of the request. */
export type ScriptedTurn =
  | ModelEvents
  | ((request: ModelRequest, options: { signal: AbortSignal }) => ModelEvents)

type ModelEvents = Iterable<ModelEvent> | AsyncIterable<ModelEvent>

export interface ScriptedModel extends Model {
  /** Every request so far, in order. */
  readonly requests: readonly ModelRequest[]
}

/**
 * A model that follows a script: for tests and for demos without a key. Turn n answers request n; a single function answers
 * all. It fails with an explanation if there are more requests than turns, or if no real provider would accept a request (for example a
 * call without its result, or one of the engine's approvals).
 */
export function scriptedModel(
  turns: readonly ScriptedTurn[] | Extract<ScriptedTurn, (...args: never[]) => unknown>,
): ScriptedModel {
  const requests: ModelRequest[] = []
  return {
    id: 'scripted',
    requests,
    async *stream(request, options) {
      const turn = typeof turns === 'function' ? turns : turns[requests.length]
      requests.push(request)
      checkModelRequest(request)
      if (turn === undefined) {
        const message = `The scripted model has ${turns.length} turns and was asked for turn ${requests.length}: add a turn.`
        throw new CountersignError('model-failed', message)
      }
      for await (const event of typeof turn === 'function' ? turn(request, options) : turn) {
        if (options.signal.aborted) return
        yield event
      }
    },
  }
}
