import { CountersignError } from '@countersign/core'
import { isId, randomId } from '../encoding/ids.js'
import type { WrittenCall } from './step-writer.js'

/** The calls of one step by the ids that the model has for them; in the conversation they may have others. */
export class StepCalls {
  readonly #usedIds: Set<string>
  readonly #written = new Map<string, WrittenCall>()
  /** Calls of earlier steps that the provider runs now. */
  readonly #earlier = new Map<string, string>()
  /** How many were begun: a model may use one id for several. */
  count = 0

  /** `usedIds` are those of the whole conversation; ids of this step are added. */
  constructor(usedIds: Set<string>) {
    this.#usedIds = usedIds
  }

  get written(): readonly WrittenCall[] {
    return [...this.#written.values()]
  }

  /**
   * Ids are made unique over the history, and such that a request may carry them: some providers count from zero in every answer,
   * others have none to give.
   */
  uniqueId(id: string): string {
    const unique = isId(id) && !this.#usedIds.has(id) ? id : randomId(prefixOf(id))
    this.#usedIds.add(unique)
    return unique
  }

  begin(id: string, call: WrittenCall): void {
    this.count++
    this.#written.set(id === '' ? call.id : id, call)
  }

  /** Nothing more is written for the call: it has begun in an earlier step, and only its result is to come. */
  continueEarlier(id: string, toolCallId: string): void {
    this.#earlier.set(id, toolCallId)
  }

  isEarlier(id: string): boolean {
    return this.#earlier.has(id)
  }

  /** What the conversation calls it. */
  idOf(id: string): string {
    return this.#earlier.get(id) ?? this.#written.get(id)?.id ?? id
  }

  /**
   * The call that the model goes on with.
   *
   * @throws CountersignError `model-failed` where it is none of `open`.
   */
  find(id: string, open: readonly WrittenCall[]): WrittenCall {
    const call = this.#written.get(id)
    if (call !== undefined && open.includes(call)) return call
    throw new CountersignError('model-failed', `The model continued the tool call ${id}, which is not open.`)
  }
}

/** Room is left for what makes it unique. */
function prefixOf(id: string): string {
  return isId(id) && id.length <= 200 ? `${id}_` : 'call_'
}
