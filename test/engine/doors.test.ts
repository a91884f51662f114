import type { Connection } from '@countersign/client'
import type { Message, RunAgentInput } from '@countersign/core'
import type { Agent } from '@countersign/server'
import { resumeFromMap } from '@countersign/server/plan'
import { expect, test } from 'vitest'
import { through, toolDialect } from './dialects.js'
import { type Ending, playStory } from './story.js'
import { ways } from './wires.js'

const unchanged = (agent: Agent): Connection => through(agent, (event) => [event])

/** The request without fresh answers: what is left are the decisions that its history holds. */
function onlyHistory({ resume: _, ...input }: RunAgentInput): RunAgentInput {
  return input
}

/** A server that takes a map of verdicts beside a history that holds none. */
function asMap({ resume = [], ...input }: RunAgentInput): RunAgentInput {
  const verdicts = new Map(
    resume.map(({ interruptId, payload }) => {
      const { approved, reason } = payload as { approved: boolean; reason?: string }
      const denied = { decision: 'deny' as const, ...(reason !== undefined && { reason }) }
      return [interruptId, approved ? { decision: 'approve' as const } : denied]
    }),
  )
  const messages = input.messages.map(withoutDecisions)
  return { ...input, messages, resume: resumeFromMap(messages, verdicts) }
}

function withoutDecisions(message: Message): Message {
  if (message.role !== 'assistant' || message.toolCalls === undefined) return message
  const toolCalls = message.toolCalls.map((call) => {
    const own = (call.metadata?.countersign ?? {}) as { token?: string }
    return { ...call, metadata: { countersign: own.token === undefined ? {} : { token: own.token } } }
  })
  return { ...message, toolCalls }
}

/** The five ways by which a verdict comes in. */
const doors: Readonly<Record<string, (agent: Agent) => Connection | Promise<Connection>>> = {
  'addToolApprovalResponse, as resume': unchanged,
  'a decision in the history': (agent) => through(agent, (event) => [event], onlyHistory),
  'an entry of a map': (agent) => through(agent, (event) => [event], asMap),
  'an entry of a queue': ways['in-process, live'] ?? unchanged,
  'a tool message of client.requestApproval': toolDialect,
}

let known: Ending | undefined

for (const [name, connect] of Object.entries(doors)) {
  test(`U.3 the same verdicts give the same executions, messages and model input through ${name}`, async () => {
    const asTool = { askAsTool: connect === toolDialect }
    const { requests: _, ...ending } = await playStory(connect, asTool, { edits: false })
    known ??= ending
    expect(ending).toEqual(known)
    expect(ending.ran.send).toEqual([{ to: 'tema@example.org' }, { to: 'boss@example.org' }])
    expect(ending.ran.delete).toEqual([])
  })
}
