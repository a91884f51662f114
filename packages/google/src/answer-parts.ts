import type { ModelEvent } from '@countersign/server'
import type { FunctionCall, Part } from '@google/genai'
import { JsonWriter } from './json-writer.js'
import { codeCall, codeResult, toolCall, toolResponse } from './provided.js'

/** A call whose arguments are streamed path by path. */
interface StreamedCall {
  readonly id: string
  readonly writer: JsonWriter
  signature: string | undefined
}

/** The parts of one reply. A signature is kept with the part it came with, because it must be sent back there. */
export class AnswerParts {
  /** Whether there was a call for the client. */
  asked = false
  #writing: 'nothing' | 'text' | 'thought' = 'nothing'
  #streamed: StreamedCall | undefined
  #codeId: string | undefined
  /** Numbers calls without an id from the provider that need one before they are complete. */
  #unnamed = 0

  constructor() {
    this.#streamed = undefined
  }

  *take(part: Part): Generator<ModelEvent> {
    const { thoughtSignature: signature, functionCall, executableCode, codeExecutionResult } = part
    if (functionCall !== undefined) {
      yield* this.#call(functionCall, signature)
    } else if (executableCode !== undefined) {
      this.#codeId = executableCode.id ?? `code_${this.#unnamed++}`
      yield* this.#between(codeCall(executableCode, this.#codeId, signature))
    } else if (codeExecutionResult !== undefined) {
      const id = codeExecutionResult.id ?? this.#codeId ?? ''
      yield* this.#between(codeResult(codeExecutionResult, id, signature))
    } else if (part.toolCall !== undefined) {
      yield* this.#between(toolCall(part.toolCall, signature))
    } else if (part.toolResponse !== undefined) {
      yield* this.#between(toolResponse(part.toolResponse, signature))
    } else if (part.text !== undefined) {
      yield* part.thought ? this.#thought(part.text, signature) : this.#text(part.text, signature)
    }
  }

  /** Ends the open text or reasoning. A call that is still streaming stays open: its arguments are incomplete. */
  *end(): Generator<ModelEvent> {
    if (this.#writing === 'text') yield { type: 'text-end' }
    if (this.#writing === 'thought') yield { type: 'reasoning-end', metadata: { type: 'thought' } }
    this.#writing = 'nothing'
  }

  *#between(event: ModelEvent): Generator<ModelEvent> {
    yield* this.end()
    yield event
  }

  *#text(text: string, signature: string | undefined): Generator<ModelEvent> {
    if (text !== '') {
      if (this.#writing !== 'text') yield* this.end()
      this.#writing = 'text'
      yield { type: 'text-delta', delta: text }
    }
    if (signature === undefined) return
    if (this.#writing !== 'text') {
      // A part that consists only of a signature: it has no text to belong to, but must keep its position.
      yield* this.#between({ type: 'reasoning-end', signature, metadata: { type: 'text' } })
      return
    }
    this.#writing = 'nothing'
    yield { type: 'text-end', metadata: { thoughtSignature: signature, ...(text === '' && { apart: true }) } }
  }

  *#thought(text: string, signature: string | undefined): Generator<ModelEvent> {
    if (this.#writing !== 'thought') yield* this.end()
    this.#writing = 'thought'
    if (text !== '') yield { type: 'reasoning-delta', delta: text }
    if (signature === undefined) return
    this.#writing = 'nothing'
    yield { type: 'reasoning-end', signature, metadata: { type: 'thought' } }
  }

  *#call(call: FunctionCall, signature: string | undefined): Generator<ModelEvent> {
    yield* this.end()
    this.asked = true
    if (this.#streamed !== undefined || call.willContinue || call.partialArgs !== undefined) {
      yield* this.#streamedCall(call, signature)
      return
    }
    yield {
      type: 'tool-call',
      id: call.id ?? '',
      name: call.name ?? '',
      arguments: JSON.stringify(call.args ?? {}),
      ...(signature !== undefined && { signature }),
      metadata: { type: 'functionCall' },
    }
  }

  *#streamedCall(call: FunctionCall, signature: string | undefined): Generator<ModelEvent> {
    if (this.#streamed === undefined) {
      const id = call.id ?? `call_${this.#unnamed++}`
      this.#streamed = { id, writer: new JsonWriter(), signature: undefined }
      yield { type: 'tool-call-start', id, name: call.name ?? '' }
    }
    const { id, writer } = this.#streamed
    this.#streamed.signature ??= signature
    for (const { jsonPath: path = '', willContinue: goesOn = false, ...values } of call.partialArgs ?? []) {
      const { stringValue, numberValue, boolValue } = values
      const delta = writer.write({ path, value: stringValue ?? numberValue ?? boolValue ?? null, goesOn })
      if (delta !== '') yield { type: 'tool-call-delta', id, delta }
    }
    if (call.willContinue) return
    const { signature: own } = this.#streamed
    this.#streamed = undefined
    yield { type: 'tool-call-delta', id, delta: writer.end() }
    yield {
      type: 'tool-call-end',
      id,
      ...(own !== undefined && { signature: own }),
      metadata: { type: 'functionCall' },
    }
  }
}
