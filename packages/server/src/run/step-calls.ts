import { CountersignError } from '@countersign/core'
import { isId, randomId } from '../encoding/ids.js'
import type { WrittenCall } from './step-writer.js'

/** The calls of one step by the model's ids; the conversation may use others. */
export class StepCalls {
  readonly #written = new Map<string, WrittenCall>()
  /** Calls of earlier steps that the provider runs now. */
  readonly #earlier = new Map<string, string>()
  /** How many were started: a model may use one id for several. */
  count = 0

  /** `usedIds` are those of the whole conversation; ids of this step are added. */
  constructor(private readonly usedIds: Set<string>) {}

  get written(): readonly WrittenCall[] {
    return [...this.#written.values()]
  }

  /**
   * Makes ids unique across the history and valid in requests: some providers count from zero in every answer,
   * others have no ids.
   */
  uniqueId(id: string): string {
    const unique = isId(id) && !this.usedIds.has(id) ? id : randomId(prefixOf(id))
    this.usedIds.add(unique)
    return unique
  }

  begin(id: string, call: WrittenCall): void {
    this.count++
    this.#written.set(id === '' ? call.id : id, call)
  }

  /** Continues a call of an earlier step: nothing more is written for it, and only its result is to come. */
  continueEarlier(id: string, toolCallId: string): void {
    this.#earlier.set(id, toolCallId)
  }

  isEarlier(id: string): boolean {
    return this.#earlier.has(id)
  }

  idOf(id: string): string {
    return this.#earlier.get(id) ?? this.#written.get(id)?.id ?? id
  }

  /**
   * The call that the model continues.
   *
   * @throws CountersignError `model-failed` if it is not one of `open`.
   */
  find(id: string, open: readonly WrittenCall[]): WrittenCall {
    const call = this.#written.get(id)
    if (call !== undefined && open.includes(call)) return call
    throw new CountersignError('model-failed', `The model continued the tool call ${id}, which is not open.`)
  }
}

/** Leaves room for the random part. */
function prefixOf(id: string): string {
  return isId(id) && id.length <= 200 ? `${id}_` : 'call_'
}
