import { type Connection, fetchServerSentEvents, withApprovalTool } from '@countersign/client'
import type { Agent } from '@countersign/server'
import { expect, test } from 'vitest'
import { isProjected, onlyClientTool, onlyEvent, onlyInterrupt, through, toolDialect } from './dialects.js'
import { type Ending, playStory } from './story.js'
import { serve } from './wires.js'

const forms: Readonly<Record<string, (agent: Agent) => Connection | Promise<Connection>>> = {
  'every form at once': (agent) => withApprovalTool(through(agent, (event) => [event])),
  'the event': (agent) => through(agent, (event) => (isProjected(event) ? [] : onlyEvent(event))),
  'the interrupt': (agent) => through(agent, (event) => (isProjected(event) ? [] : onlyInterrupt(event))),
  'the client tool, answered by resume': (agent) => withApprovalTool(through(agent, onlyClientTool)),
  'the client tool, answered by its result': toolDialect,
  'every form at once, over SSE': async (agent) =>
    withApprovalTool(fetchServerSentEvents((await serve(agent, false)).url)),
}

const ended = new Map<string, Ending>()

/** The story with the client tool switched off: what every form has to come to. */
async function reference(): Promise<Ending> {
  const known = ended.get('reference')
  if (known) return known
  const { requests: _, ...ending } = await playStory((agent) => through(agent, (event) => [event]))
  ended.set('reference', ending)
  return ending
}

for (const [name, connect] of Object.entries(forms)) {
  test(`U.8 S3.70 the same story ends with the same messages, executions and model input through ${name}`, async () => {
    const { requests, ...ending } = await playStory(connect, { askAsTool: true })
    expect(ending).toEqual(await reference())
    expect(requests).toBe(3)
  })
}
