import { type ModelEvent, scriptedModel } from '@countersign/server'
import { describeModel, type ModelStory } from '@countersign/testing/suites'
import { expect, test } from 'vitest'

async function* endless(): AsyncGenerator<ModelEvent> {
  for (;;) {
    yield { type: 'text-delta', delta: 'and ' }
    await null
  }
}

const stories: Record<ModelStory, Iterable<ModelEvent> | (() => AsyncIterable<ModelEvent>)> = {
  text: [
    { type: 'text-delta', delta: 'Hello, ' },
    { type: 'text-delta', delta: 'world.' },
    { type: 'finish', reason: 'stop' },
  ],
  calls: [
    { type: 'tool-call-start', id: 'a', name: 'get_weather' },
    { type: 'tool-call-delta', id: 'a', delta: '{"city":' },
    { type: 'tool-call-delta', id: 'a', delta: '"Oslo"}' },
    { type: 'tool-call-end', id: 'a' },
    { type: 'tool-call', id: 'b', name: 'get_time', arguments: '' },
    { type: 'finish', reason: 'tool_calls' },
  ],
  endless,
  cut: [{ type: 'text-delta', delta: 'Hel' }],
  asks: [
    {
      type: 'tool-call',
      id: '',
      name: 'search',
      arguments: '{"q":"x"}',
      providerExecuted: true,
      approval: { id: 'mcpr_1', state: 'requested' },
    },
    { type: 'finish', reason: 'stop' },
  ],
  runs: [
    {
      type: 'tool-call',
      id: 'mcp_1',
      name: 'search',
      arguments: '{"q":"x"}',
      providerExecuted: true,
      approval: { id: 'mcpr_1', state: 'answered' },
    },
    { type: 'tool-result', toolCallId: 'mcp_1', outcome: { kind: 'ok', value: 3 } },
    { type: 'finish', reason: 'stop' },
  ],
}

describeModel('scriptedModel', (story) => scriptedModel([stories[story]]), { test, expect })
