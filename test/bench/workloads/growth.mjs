import { ChatClient, stream } from '@countersign/client'

/** A run that says one text of `size` characters in deltas of `step`. */
function textRun(size, step) {
  return [
    { type: 'TEXT_MESSAGE_START', messageId: 'm' },
    ...deltas('lorem ipsum dolor sit amet, '.repeat(Math.ceil(size / 28)).slice(0, size), step).map(
      (delta) => ({
        type: 'TEXT_MESSAGE_CONTENT',
        messageId: 'm',
        delta,
      }),
    ),
    { type: 'TEXT_MESSAGE_END', messageId: 'm' },
  ]
}

/** A run that calls one tool with `size` characters of arguments in deltas of `step`. */
function argumentsRun(size, step) {
  const text = JSON.stringify({
    path: 'report.md',
    content: 'lorem ipsum dolor sit amet, '.repeat(Math.ceil(size / 28)),
  })
  return [
    { type: 'TOOL_CALL_START', toolCallId: 'c', toolCallName: 'write_file', parentMessageId: 'm' },
    ...deltas(text, step).map((delta) => ({ type: 'TOOL_CALL_ARGS', toolCallId: 'c', delta })),
    { type: 'TOOL_CALL_END', toolCallId: 'c' },
    { type: 'TOOL_CALL_RESULT', messageId: 'r', toolCallId: 'c', content: '"ok"' },
  ]
}

function deltas(text, step) {
  return Array.from({ length: Math.ceil(text.length / step) }, (_, i) => text.slice(i * step, (i + 1) * step))
}

/** The whole client, publishing and reading every single delta. Checks what came out. */
function through(events, check) {
  return async () => {
    const client = new ChatClient({
      notify: 'sync',
      connection: stream(async function* ({ threadId, runId }) {
        yield { type: 'RUN_STARTED', threadId, runId }
        for (let i = 0; i < events.length; i += 64) yield events.slice(i, i + 64)
        yield { type: 'RUN_FINISHED', threadId, runId }
      }),
    })
    let reads = 0
    client.subscribe(() => {
      const part = client.getSnapshot().messages.at(-1)?.parts[0]
      if (part?.type === 'tool-call' ? part.input : part?.text) reads++
    })
    await client.sendMessage('go')
    check(client.getSnapshot().messages.at(-1).parts[0])
    if (reads < events.length - 5) throw new Error(`only ${reads} of ${events.length} deltas were published`)
  }
}

function expectLength(read, length) {
  return (part) => {
    if (read(part).length < length) throw new Error(`lost something: ${read(part).length} of ${length}`)
  }
}

const KB = 1024

export default [
  {
    title: 'One message, in deltas of 10 characters, every one published',
    unit: 'KB',
    sizes: [64, 256, 1024, 2048],
    prepare: (size) => {
      const events = textRun(size * KB, 10)
      return {
        count: events.length,
        work: through(
          events,
          expectLength((part) => part.text, size * KB),
        ),
      }
    },
  },
  {
    title: 'Arguments of one call, in deltas of 40 characters, every one published with the value so far',
    unit: 'KB',
    sizes: [40, 80, 160, 320],
    prepare: (size) => {
      const events = argumentsRun(size * KB, 40)
      return {
        count: events.length,
        work: through(
          events,
          expectLength((part) => part.input.content, size * KB),
        ),
      }
    },
  },
]
