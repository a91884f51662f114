import {
  createChatState,
  type RunAgentInput,
  readMessages,
  resumeEntries,
  step,
  toAGUIMessages,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { answerQueue } from '@countersign/server'
import { resumeFromMap } from '@countersign/server/plan'
import { promptToAGUI, toolApprovalResponse, toolMessage, toPromptMessages } from '@countersign/server/prompt'
import { expect, test } from 'vitest'
import { weather } from './answered.js'
import { answer, ask, call, collect, input, results, say, testAgent, user } from './support.js'

interface Decision {
  readonly approved: boolean
  readonly reason?: string
}
type Question = Awaited<ReturnType<typeof ask>>
/** What a client sends to say it. */
type Door = (question: Question, decision: Decision) => Partial<RunAgentInput>

/** The question as a client of core's machine has it. */
function view({ history: [first], events }: Question) {
  const state = createChatState({ moreSteps: fullSteps })
  step(state, { type: 'MESSAGES_SNAPSHOT', messages: first === undefined ? [] : [first] })
  for (const event of events) step(state, event)
  return state
}

const doors = new Map<string, Door>([
  ['resume', ({ first }, decision) => ({ resume: [answer(first, { ...decision })] })],
  [
    'a response part in the history',
    (question, decision) => {
      const { id: approvalId } = question.first.approval
      const response = toolMessage([toolApprovalResponse({ approvalId, ...decision })])
      return { messages: promptToAGUI([...toPromptMessages(readMessages(view(question))), response]) }
    },
  ],
  [
    'addToolApprovalResponse',
    (question, decision) => {
      const state = view(question)
      step(state, { type: 'answer', approvalId: question.first.approval.id, ...decision })
      return { messages: toAGUIMessages(readMessages(state)), resume: resumeEntries(state, true) }
    },
  ],
  [
    'a map by the id of the call',
    ({ history, first }, { approved, reason }) => {
      const entry = approved ? { decision: 'approve' as const } : { decision: 'deny' as const, reason }
      return { messages: history, resume: [...resumeFromMap(history, { [first.toolCallId]: entry })] }
    },
  ],
])

async function through(door: Door | 'live', decision: Decision) {
  const tool = weather()
  const turns = [call(['call_1', 'GetWeather', { city: 'x' }]), say('ok')]
  const { agent, model } = testAgent(turns, { tools: [tool.tool] })
  const told = door === 'live' ? await live() : await answered(door)
  return { runs: tool.runs, told: results(told), seen: model.requests.at(-1)?.messages }

  async function answered(send: Door) {
    const question = await ask(agent)
    const { messages = question.history, ...given } = send(question, decision)
    return collect(agent, input(messages, given))
  }

  async function live() {
    const answers = answerQueue()
    const events = []
    for await (const event of agent.run(input([user('go')]), { answers })) {
      events.push(event)
      if (event.type !== 'CUSTOM' || event.name !== 'approval-requested') continue
      void answers.put({ interruptId: event.value.approval.id, status: 'resolved', payload: { ...decision } })
    }
    return events
  }
}

for (const decision of [{ approved: true }, { approved: false, reason: 'No.' }, { approved: false }]) {
  test(`U.3 ${JSON.stringify(decision)} through every door: the same results and the same model input`, async () => {
    const expected = await through('live', decision)
    expect([expected.seen?.length, expected.runs.length]).toEqual([3, decision.approved ? 1 : 0])
    for (const door of doors.values()) expect(await through(door, decision)).toEqual(expected)
  })
}
