// An agent with `humanInTheLoopMiddleware` as LangChain's docs have it, on the server that `langgraphjs dev` starts. With OPTION: decisions
// without edits, and "Add custom authentication" of its docs: each thread belongs to a user, and nobody writes its state.
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessageChunk } from '@langchain/core/messages'
import { ChatGenerationChunk } from '@langchain/core/outputs'
import { createAgent, humanInTheLoopMiddleware, tool } from 'langchain'
import { description, inputSchema, nextStep, transfer } from './common.mjs'

class ScriptedModel extends BaseChatModel {
  _llmType() {
    return 'scripted'
  }

  bindTools() {
    return this
  }

  async _generate(messages, options, run) {
    let whole
    for await (const chunk of this._streamResponseChunks(messages, options, run))
      whole = whole ? whole.concat(chunk) : chunk
    return { generations: [whole] }
  }

  async *_streamResponseChunks(messages, _options, run) {
    const last = messages.findLastIndex(({ type }) => type === 'human')
    const results = messages.slice(last + 1).flatMap(({ type, text }) => (type === 'tool' ? [text] : []))
    const { call, say } = nextStep(messages[last].text, results)
    for await (const part of call ? [call] : say) {
      const made = { type: 'tool_call_chunk', index: 0, id: crypto.randomUUID(), name: 'transfer' }
      const message = new AIMessageChunk(
        call
          ? { content: '', tool_call_chunks: [{ ...made, args: JSON.stringify(part) }] }
          : { content: part },
      )
      const chunk = new ChatGenerationChunk({ text: call ? '' : part, message })
      yield chunk
      await run?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk })
    }
  }
}

export const agent = () =>
  createAgent({
    model: new ScriptedModel({}),
    tools: [tool(transfer, { name: 'transfer', description, schema: inputSchema })],
    middleware: [
      humanInTheLoopMiddleware({
        interruptOn: { transfer: process.env.OPTION ? { allowedDecisions: ['approve', 'reject'] } : true },
      }),
    ],
  })

// A dependency of @langchain/langgraph, which the tests do not install by themselves.
const fromLangGraph = createRequire(createRequire(import.meta.url).resolve('@langchain/langgraph'))
const { Auth } = fromLangGraph('@langchain/langgraph-sdk/auth')

export const auth = new Auth()
  .authenticate((request) => request.headers.get('x-user') ?? 'nobody')
  .on('*', ({ value, user }) => {
    if ('metadata' in value) {
      value.metadata ??= {}
      value.metadata.owner = user.identity
    }
    return { owner: user.identity }
  })
  // no page of this agent writes a thread's state itself
  .on('threads:update', () => false)

async function start({ OPTION, DATA, PORT }) {
  const { startServer } = await import('@langchain/langgraph-api/server')
  const self = import.meta.filename
  const { host } = await startServer({
    port: Number(PORT ?? 0) || (await freePort()),
    host: '127.0.0.1',
    cwd: DATA,
    graphs: { agent: `${self}:agent` },
    // Its workers look for runs at random times within a second: many find one soon.
    nWorkers: 20,
    ...(OPTION && { auth: { path: `${self}:auth`, disable_studio_auth: true } }),
  })
  console.log(`http://${host}`)
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

if (process.argv[1] === import.meta.filename) void start(process.env)
