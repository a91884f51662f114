import { createChatState, step } from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { type ModelEvent, scriptedModel } from '@countersign/server'
import { modelError } from '@countersign/server/model-kit'
import { expect, test } from 'vitest'
import { collect, input, last, results, testAgent, user } from './support.js'

const busy = {
  provider: 'openai',
  code: 'rate_limit_exceeded',
  message: 'Slow down, org-12345',
  status: 429,
  retryable: true,
}

/** What the application and the client hear of a model that fails so. */
async function failing(error: unknown) {
  const errors: unknown[] = []
  const model = scriptedModel([])
  const { agent } = testAgent([], {
    model: {
      ...model,
      // biome-ignore lint/correctness/useYield: it fails before it says anything
      async *stream() {
        throw error
      },
    },
    onError: (thrown) => void errors.push(thrown),
  })
  const event = last(await collect(agent, input([user('go')])))
  const state = createChatState({ moreSteps: fullSteps })
  step(state, { type: 'RUN_STARTED', threadId: 'thread', runId: 'run' })
  step(state, event)
  return { errors, event, failure: state.run.phase === 'idle' ? state.error : state.run.failure }
}

test('whether and when to try again reaches the application, the client and the words for the person', async () => {
  const { errors, event, failure } = await failing(modelError({ ...busy, retryAfter: 19.2 }))
  expect(errors).toMatchObject([{ code: 'model-failed', data: { ...busy, retryAfter: 19.2 } }])
  expect(event).toEqual({
    type: 'RUN_ERROR',
    code: 'model-failed',
    message: 'The model of openai failed (HTTP 429, rate_limit_exceeded); try again in 20 s.',
    metadata: { countersign: { retryable: true, retryAfter: 19.2 } },
  })
  expect(failure).toMatchObject({
    code: 'run-error',
    message: expect.stringContaining('try again in 20 s'),
    data: { code: 'model-failed', retryable: true, retryAfter: 19.2 },
  })
})

test("the provider's own words stay with the application", async () => {
  const told = await failing(modelError({ ...busy, retryable: false, code: 'see org-12345: sk-1' }))
  expect(JSON.stringify([told.event, told.failure])).not.toMatch(/org-12345|sk-1/)
  expect(told.event).toMatchObject({ metadata: { countersign: { retryable: false } } })
  const foreign = await failing(new Error('secret'))
  expect(foreign.event).toEqual({ type: 'RUN_ERROR', code: 'model-failed', message: 'The model failed.' })
  expect(foreign.errors).toMatchObject([{ code: 'model-failed', cause: { message: 'secret' } }])
})

test("a provider's second result of a call is left out, with a warning", async () => {
  const result = (value: string): ModelEvent => ({
    type: 'tool-result',
    toolCallId: 'ws_1',
    outcome: { kind: 'ok', value },
  })
  const warnings: string[] = []
  const turn: ModelEvent[] = [
    { type: 'tool-call', id: 'ws_1', name: 'web_search', arguments: '{}', providerExecuted: true },
    result('first'),
    result('second'),
    { type: 'finish', reason: 'stop' },
  ]
  const { agent } = testAgent([turn], { warn: (message) => void warnings.push(message) })
  const events = await collect(agent, input([user('go')]))
  expect(results(events)).toMatchObject([{ id: 'ws_1', content: 'first' }])
  expect(warnings.at(-1)).toContain('a second result of ws_1')
})
