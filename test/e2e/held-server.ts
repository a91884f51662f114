import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Model, ModelEvent } from '@countersign/server'
import { toNodeGrantsHandler, toNodeHandler } from '@countersign/server/node'
import { demoAgent } from '../../examples/server/src/agent.js'
import { listen, pageServer } from '../../examples/server/src/http.js'
import { fillOnce } from '../../examples/server/src/samples.js'
import type { PageName } from './demo.js'

const words = Array.from({ length: 40 }, (_, at) => `word${at + 1} `)
const half = words.length / 2

/** All that the model says to "tell", and the last word before it waits. */
export const story = words.join('').trim()
export const lastBeforeWait = words[half - 1]?.trim() ?? ''

export interface HeldServer {
  readonly url: string
  /** The folder that the tools work on. */
  readonly folder: string
  /** Lets the model go on that waits, or the next one that would. */
  goOn(): void
  /** How many of the model's replies were stopped while they waited. */
  stopped(): number
  close(): Promise<void>
}

/**
 * The demo's agent and page on a server in this process, with a model that stops in the middle of its reply until the test lets it go on. To
 * "tell" it says the story; for "tell, delete a.txt b.txt" it then makes these calls, and after their results it says "Finished."
 */
export async function startHeldServer(page: PageName): Promise<HeldServer> {
  const parent = await mkdtemp(join(tmpdir(), 'countersign-held-'))
  const folder = join(parent, 'workspace')
  await fillOnce(folder, Date.now())
  let stopped = 0
  let passes = 0
  let wake = () => {}
  const wait = async (signal: AbortSignal) => {
    while (passes === 0 && !signal.aborted)
      await new Promise<void>((resolve) => {
        wake = resolve
        signal.addEventListener('abort', () => resolve())
      })
    if (signal.aborted) stopped++
    else passes--
  }
  const model: Model = {
    id: 'test/held',
    async *stream({ messages }, { signal }): AsyncGenerator<ModelEvent> {
      const last = messages.at(-1)
      if (last?.role === 'tool') yield { type: 'text-delta', delta: 'Finished.' }
      else {
        const part = last?.role === 'user' ? last.content.at(0) : undefined
        const text = part?.type === 'text' ? part.text : ''
        if (text.startsWith('tell'))
          for (const [at, delta] of words.entries()) {
            if (at === half) await wait(signal)
            yield { type: 'text-delta', delta }
          }
        const [, paths = ''] = /delete (.+)/.exec(text) ?? []
        for (const path of paths.split(' ').filter((name) => name !== ''))
          yield {
            type: 'tool-call',
            id: `call-${path}`,
            name: 'delete_file',
            arguments: JSON.stringify({ path }),
          }
      }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const agent = await demoAgent({ workspace: folder, state: parent, model })
  const options = { context: () => ({ subject: 'single-user' }) }
  const server = pageServer(join(import.meta.dirname, '../../examples', page, 'dist'), {
    '/api/chat': toNodeHandler(agent, { ...options, goOnFor: 60_000 }),
    '/api/grants': toNodeGrantsHandler(agent, options),
  })
  return {
    url: await listen(server, 0),
    folder,
    goOn() {
      passes++
      wake()
    },
    stopped: () => stopped,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await rm(parent, { recursive: true })
    },
  }
}
