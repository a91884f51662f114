import { isRecord } from '@countersign/core'
import type { FinishReason, ModelEvent } from '@countersign/server'
import { asList, asRecord, asText, type Fields, parseJson } from '@countersign/server/model-kit'
import { reportedError } from '../errors.js'
import { sourceOf } from '../sources.js'
import { usageOf } from './chat-usage.js'
import { ReasoningDetails, type ReasoningField, readThought } from './reasoning.js'
import { WrittenArguments } from './written.js'

/** Converts Chat Completions chunks, from any compatible server, to model events. */
export async function* chatEvents(
  provider: string,
  chunks: AsyncIterable<unknown> | Iterable<unknown>,
): AsyncGenerator<ModelEvent> {
  const reader = new ChatReader(provider)
  for await (const chunk of chunks) yield* reader.read(asRecord(chunk))
  yield* reader.end()
}

/** The state of a reply while it is read. Chunks are not trusted: every server has its own variant. */
class ChatReader {
  readonly #provider: string
  /** The call id by index, or by whatever else the server uses to identify calls. */
  readonly #calls = new Map<unknown, string>()
  /** Their arguments so far, in the order in which they started. */
  readonly #written = new Map<string, WrittenArguments>()
  #last: unknown
  readonly #details = new ReasoningDetails()
  #thought: ReasoningField | undefined
  #refused = false
  #sources = 0
  #reason: string | undefined
  #detail: string | undefined
  #usage: unknown
  #id: string | undefined
  /** The last chunk had usage but no content: some servers end this way, without a finish reason. */
  #counted = false

  constructor(provider: string) {
    this.#provider = provider
  }

  *read(chunk: Fields): Generator<ModelEvent> {
    if (chunk.error) throw reportedError(this.#provider, chunk.error)
    yield* this.#name(chunk)
    const usage = chunk.usage ?? asRecord(chunk.x_groq).usage
    this.#usage = usage ?? this.#usage
    const choice = asRecord(asList(chunk.choices)[0])
    let said = false
    for (const event of this.#delta(asRecord(choice.delta))) {
      said = true
      yield event
    }
    this.#counted = Boolean(usage) && !said
    this.#reason = reasonOf(choice.finish_reason) ?? this.#reason
    this.#detail = asText(choice.native_finish_reason) ?? this.#detail
    if (this.#reason === 'error') throw reportedError(this.#provider, choice.error)
  }

  /** Identifies the reply, as soon as possible. */
  *#name({ id, model }: Fields): Generator<ModelEvent> {
    if (this.#id !== undefined) return
    this.#id = asText(id) ?? ''
    const name = asText(model)
    yield { type: 'metadata', metadata: { id: this.#id, ...(name !== undefined && { model: name }) } }
  }

  *#delta(delta: Fields): Generator<ModelEvent> {
    const thought = readThought(delta)
    this.#details.add(delta.reasoning_details)
    if (thought !== undefined) {
      this.#thought = thought.field
      yield { type: 'reasoning-delta', delta: thought.text }
    }
    for (const text of textsOf(delta.content)) {
      yield* this.#endThought()
      yield { type: 'text-delta', delta: text }
    }
    const refusal = asText(delta.refusal)
    if (refusal) {
      this.#refused = true
      yield { type: 'text-delta', delta: refusal, refusal: true }
    }
    for (const annotation of asList(delta.annotations))
      yield* sourceOf(annotation, `${this.#id ?? 'source'}-${this.#sources++}`)
    for (const call of asList(delta.tool_calls)) {
      yield* this.#endThought()
      yield* this.#call(asRecord(call))
    }
    // The predecessor of tool calls; servers that still use it make one call.
    if (isRecord(delta.function_call)) {
      yield* this.#endThought()
      yield* this.#call({ index: 0, function: delta.function_call })
    }
  }

  /** A call is identified by its index, else by its id. Without either, a name starts a call and arguments continue the last one. */
  *#call(call: Fields): Generator<ModelEvent> {
    const { name, arguments: given } = asRecord(call.function)
    const id = asText(call.id) || undefined
    const key = call.index ?? id ?? (name ? this.#written.size : this.#last)
    let ours = this.#calls.get(key)
    let written = this.#written.get(ours ?? '')
    // Some servers give every call the same index and no id: if the arguments are already complete, this is another call.
    const another = Boolean(name) && (id === undefined ? written?.isObject : ours !== id)
    if (ours === undefined || written === undefined || another) {
      ours = id ?? `call_${this.#written.size}`
      written = new WrittenArguments()
      this.#calls.set(key, ours)
      this.#written.set(ours, written)
      yield { type: 'tool-call-start', id: ours, name: asText(name) ?? '' }
    }
    this.#last = key
    const delta = typeof given === 'string' ? given : given ? JSON.stringify(given) : ''
    if (delta === '') return
    written.add(delta)
    yield { type: 'tool-call-delta', id: ours, delta }
  }

  /** The metadata of reasoning is complete once something else starts. */
  *#endThought(): Generator<ModelEvent> {
    const details = this.#details.take()
    if (this.#thought === undefined && details.length === 0) return
    const metadata = {
      ...(this.#thought !== undefined && { field: this.#thought }),
      ...(details.length > 0 && { details }),
    }
    this.#thought = undefined
    yield { type: 'reasoning-end', metadata }
  }

  *end(): Generator<ModelEvent> {
    yield* this.#endThought()
    if (this.#reason === undefined && !this.#counted) return
    for (const [id, { text }] of this.#written) {
      // If the reply was cut off within its arguments, a call stays open, and the engine closes it.
      if (isCut(this.#reason) && text !== '' && parseJson(text) === undefined) continue
      yield { type: 'tool-call-end', id }
    }
    if (this.#refused) yield { type: 'text-end', metadata: { refusal: true } }
    yield { type: 'metadata', metadata: this.#facts() }
    const usage = usageOf(this.#usage)
    if (usage !== undefined) yield { type: 'usage', usage }
    yield { type: 'finish', reason: this.#finish() }
  }

  #facts(): Fields {
    return {
      ...(this.#reason !== undefined && { finishReason: this.#reason }),
      ...(this.#detail !== undefined && { finishDetail: this.#detail }),
      ...(this.#usage ? { usage: this.#usage } : {}),
    }
  }

  #finish(): FinishReason {
    if (isCut(this.#reason)) return 'length'
    if (this.#reason !== undefined && !plainEnd.test(this.#reason)) return this.#reason
    if (this.#written.size > 0) return 'tool_calls'
    return this.#refused ? 'content_filter' : 'stop'
  }
}

/** Many servers end calls with a plain stop, or use their own names for either. */
const plainEnd = /^(stop|tool_calls|function_call|tool_use|end_turn|stop_sequence|eos.*)$/

/** Some servers send an empty string, or the string `null`, instead of `null`. */
function reasonOf(said: unknown): string | undefined {
  return said === 'null' ? undefined : asText(said) || undefined
}

/** Whether the reply hit the length limit (`model_length` is Mistral's term, `max_tokens` Anthropic's, which others use too). */
function isCut(reason: string | undefined): boolean {
  return reason === 'length' || reason === 'model_length' || reason === 'max_tokens'
}

/** Text is a string or, from Mistral, a list of parts, some of which are reasoning. */
function textsOf(content: unknown): readonly string[] {
  const texts =
    typeof content === 'string'
      ? [content]
      : asList(content).map((part) => {
          const { type, text } = asRecord(part)
          return type === 'text' ? (asText(text) ?? '') : ''
        })
  return texts.filter((text) => text !== '')
}
