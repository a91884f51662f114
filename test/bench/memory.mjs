// What one contender allocates or keeps, in a heap of its own: `node --expose-gc memory.mjs <contender> <task as JSON>`.
import { checkText } from './checks.mjs'
import { settle, watchCollections } from './collections.mjs'
import { loadContender } from './contenders/index.mjs'
import { onHistory, plainConversation } from './scenarios.mjs'

const [id, json] = process.argv.slice(2)
const contender = await loadContender(id)
const task = JSON.parse(json)
const nothing = { start() {}, stop() {} }

const tasks = {
  /** Bytes per delta, between the first event and the end; the young generation is large enough for nothing to be collected. */
  async allocated({ history }) {
    const scenario = onHistory(history)
    for (let i = 0; i < 4; i++) await contender.text(scenario).run(nothing)
    const session = contender.text(scenario)
    const noCollections = await watchCollections()
    let before
    await session.run({
      start() {
        before ??= process.memoryUsage().heapUsed
      },
    })
    const bytes = process.memoryUsage().heapUsed - before
    await noCollections()
    checkText(session.result(), scenario)
    return bytes / scenario.deltas.length
  },

  /** Bytes that are still there after a conversation, when nobody but the contender has its text. */
  async kept({ turns, size }) {
    // What is compiled and cached on the way is not kept by the conversation.
    for (let i = 0; i < 3; i++) await converse(1, Math.min(size, 64_000))
    await settle()
    const before = process.memoryUsage().heapUsed
    const session = await converse(turns, size)
    await settle()
    const bytes = process.memoryUsage().heapUsed - before
    // Only now: to compare a text is to flatten it, and the text it is compared with is made anew.
    if (session.result().text !== plainConversation(turns, size).texts.at(-1))
      throw new Error('the text differs')
    return bytes
  },
}

async function converse(turns, size) {
  const scenario = plainConversation(turns, size)
  const session = contender.text(scenario)
  await session.run(nothing)
  for (const key of Object.keys(scenario)) delete scenario[key]
  Object.assign(scenario, { history: [], agui: [] })
  return session
}

const bytes = await tasks[task.name](task)
process.send({ answer: bytes }, () => process.exit(0))
