import { setTimeout as sleep } from 'node:timers/promises'
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessageChunk, type BaseMessage } from '@langchain/core/messages'
import { type ChatGeneration, ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs'
import { interrupt } from '@langchain/langgraph'
import { tool } from 'langchain'
import { z } from 'zod'
import { prompts } from './our-agent.js'

/** What makes it do what only this peer does. */
export const langGraphPrompts = { folder: 'which folder', mixed: 'mail ada and look at the weather' }

type Called = readonly [id: string, name: string, input: unknown]

/** A chat model of LangChain that follows a script. */
class ScriptedModel extends BaseChatModel {
  _llmType(): string {
    return 'scripted'
  }

  override bindTools(): this {
    return this
  }

  async _generate(
    messages: BaseMessage[],
    options: this['ParsedCallOptions'],
    run?: CallbackManagerForLLMRun,
  ): Promise<ChatResult> {
    let whole: ChatGenerationChunk | undefined
    for await (const chunk of this._streamResponseChunks(messages, options, run))
      whole = whole ? whole.concat(chunk) : chunk
    const generations: ChatGeneration[] = whole ? [whole] : []
    return { generations }
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    { signal }: this['ParsedCallOptions'],
    run?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    for await (const message of respond(messages, signal)) {
      const chunk = new ChatGenerationChunk({ text: String(message.content), message })
      yield chunk
      await run?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk })
    }
  }
}

/** The script: by what the person said last, and the results since. */
async function* respond(
  messages: readonly BaseMessage[],
  signal: AbortSignal | undefined,
): AsyncGenerator<AIMessageChunk> {
  const last = messages.findLastIndex(({ type }) => type === 'human')
  const results = messages.slice(last + 1).flatMap(({ type, text }) => (type === 'tool' ? [text] : []))
  switch (messages[last]?.text) {
    case prompts.hello:
      return yield* say('Hello, ', 'Ada.')
    case prompts.weather:
      return yield* results.length > 0 ? say(`It is: ${results}`) : call(['c1', 'weather', { city: 'Oslo' }])
    case prompts.mail:
      return yield* results.length > 0 ? say(`Done: ${results}`) : call(mail('c1', 'ada'))
    case prompts.two:
      return yield* results.length > 0 ? say(`Done: ${results}`) : call(mail('c1', 'ada'), mail('c2', 'bob'))
    case prompts.chain: {
      const next = [mail('c1', 'ada'), mail('c2', 'bob')][results.length]
      return yield* next ? call(next) : say(`Done: ${results}`)
    }
    case prompts.where:
      return yield* results.length > 0 ? say(`You are: ${results}`) : call(['c1', 'get_location', {}])
    case langGraphPrompts.folder:
      return yield* results.length > 0 ? say(`It goes to ${results}.`) : call(['c1', 'choose_folder', {}])
    case langGraphPrompts.mixed:
      return yield* results.length > 0
        ? say(`Done: ${results}`)
        : call(['c0', 'weather', { city: 'Oslo' }], mail('c1', 'ada'))
    case prompts.slow:
      for (;;) {
        await sleep(5, undefined, signal ? { signal } : {})
        yield new AIMessageChunk({ content: ' well' })
      }
    default:
      throw new Error('The model is out of order.')
  }
}

function mail(id: string, to: string): Called {
  return [id, 'send_mail', { to }]
}

function* say(...deltas: string[]): Generator<AIMessageChunk> {
  for (const content of deltas) yield new AIMessageChunk({ content })
}

function* call(...calls: readonly Called[]): Generator<AIMessageChunk> {
  for (const [index, [id, name, input]] of calls.entries()) {
    const text = JSON.stringify(input)
    yield chunkOf({ index, id, name, args: text.slice(0, 3) })
    yield chunkOf({ index, args: text.slice(3) })
  }
}

function chunkOf(chunk: { index: number; args: string; id?: string; name?: string }): AIMessageChunk {
  return new AIMessageChunk({ content: '', tool_call_chunks: [{ type: 'tool_call_chunk', ...chunk }] })
}

/** What the agent of `langgraph-graph.mjs` is made of. `sent`: whom mails were sent to. */
export function agentParts(sent: string[]) {
  const weather = tool(({ city }) => ({ city, degrees: 21 }), {
    name: 'weather',
    description: 'The weather of a city.',
    schema: z.object({ city: z.string() }),
  })
  const sendMail = tool(
    ({ to }) => {
      sent.push(to)
      return { to, state: 'sent' }
    },
    { name: 'send_mail', description: 'Sends a mail.', schema: z.object({ to: z.string() }) },
  )
  const chooseFolder = tool(
    () => String(interrupt({ question: 'Which folder?', choices: ['logs', 'mail'] })),
    {
      name: 'choose_folder',
      description: 'Asks where it goes.',
      schema: z.object({}),
    },
  )
  const locate = tool({ name: 'get_location', description: 'Where the person is.', schema: z.object({}) })
  return { model: new ScriptedModel({}), tools: [weather, sendMail, chooseFolder, locate] }
}
