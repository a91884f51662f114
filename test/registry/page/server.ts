import { ChatClient, stream } from '@countersign/client'
import type { EditSettings } from '@countersign/client/ui'
import type { AGUIEvent } from '@countersign/core'

const input = { path: 'door.txt', content: 'Back at noon.' }
const approval = {
  needsApproval: true,
  options: ['deny', 'once'],
  allowEdits: ['content'],
  token: 't',
  message: 'A file of that name is replaced.',
}
let asked = 0

/** A server in the page: it asks to write a file, and then says what it was answered. */
const connection = stream(async function* ({ threadId, runId, resume }): AsyncGenerator<AGUIEvent> {
  const run = { threadId, runId }
  yield { type: 'RUN_STARTED', ...run }
  if (resume === undefined) {
    yield* request(run)
    return
  }
  const messageId = `m${asked}`
  const delta = `answered: ${JSON.stringify(resume[0]?.payload)}`
  yield { type: 'TOOL_CALL_RESULT', toolCallId: `c${asked}`, messageId: `r${asked}`, content: '"done"' }
  yield { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }
  yield { type: 'TEXT_MESSAGE_CONTENT', messageId, delta }
  yield { type: 'TEXT_MESSAGE_END', messageId }
  yield { type: 'RUN_FINISHED', ...run }
})

function* request(run: { threadId: string; runId: string }): Generator<AGUIEvent> {
  asked++
  const id = `a${asked}`
  const toolCallId = `c${asked}`
  const call = { toolCallId, toolCallName: 'write_file' }
  yield { type: 'TOOL_CALL_START', ...call }
  yield { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(input) }
  yield { type: 'TOOL_CALL_END', toolCallId }
  const value = { ...call, toolName: 'write_file', input, approval: { ...approval, id } }
  yield { type: 'CUSTOM', name: 'approval-requested', value }
  const interrupts = [{ id, reason: 'tool_call', toolCallId }]
  yield { type: 'RUN_FINISHED', ...run, outcome: { type: 'interrupt', interrupts } }
}

export const newClient = () => new ChatClient({ connection })

/** An edit that leaves nothing to write does not fit. */
export const edits: EditSettings = {
  tools: [
    {
      name: 'write_file',
      input: {
        '~standard': {
          version: 1,
          vendor: 'demo',
          validate: (value) =>
            (value as typeof input).content === ''
              ? { issues: [{ message: 'Write something.', path: ['content'] }] }
              : { value },
        },
      },
    },
  ],
}
