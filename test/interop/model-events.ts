import type { ModelEvent } from '@countersign/server'

export const call = (name: string, id: string): ModelEvent => ({
  type: 'tool-call',
  id,
  name,
  arguments: `{"to":"${id}"}`,
})

export const said = (delta: string): ModelEvent => ({ type: 'text-delta', delta })

export const end = (reason: 'stop' | 'tool_calls'): ModelEvent => ({ type: 'finish', reason })
