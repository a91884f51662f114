import { createJsonReader } from '@countersign/core'

/**
 * Two stores written by hand for exactly the work at hand, and nothing else: no checks, no unknown ids, no errors, no scheduling.
 * `mutable` changes an object and notifies; `immutable` makes a new part, parts array, message and messages array for each delta,
 * which is the least that a store with immutable snapshots does when it publishes every delta.
 */
function createStore(isMutable, history) {
  let messages = history.map(({ id, role, text }) => ({ id, role, parts: [{ type: 'text', text }] }))
  const listeners = new Set()
  const readers = new Map()
  const positions = new Map()

  function setPart(at, part) {
    const last = messages.length - 1
    const message = messages[last]
    if (isMutable) message.parts[at] = part
    else {
      const parts = message.parts.slice()
      parts[at] = part
      messages = messages.slice()
      messages[last] = { ...message, parts }
    }
    for (const listener of listeners) listener()
  }

  function change(at, fields) {
    const part = messages[messages.length - 1].parts[at]
    if (isMutable) setPart(at, Object.assign(part, fields))
    else setPart(at, { ...part, ...fields })
  }

  function addMessage(id) {
    const message = { id, role: 'assistant', parts: [] }
    if (isMutable) messages.push(message)
    else messages = [...messages, message]
  }

  /** The result is written where the call is, which another message may have followed. */
  function apply(event) {
    switch (event.type) {
      case 'TEXT_MESSAGE_START':
        addMessage(event.messageId)
        setPart(0, { type: 'text', text: '' })
        return
      case 'TEXT_MESSAGE_CONTENT': {
        const part = messages[messages.length - 1].parts[0]
        if (isMutable) {
          part.text += event.delta
          for (const listener of listeners) listener()
        } else setPart(0, { type: 'text', text: part.text + event.delta })
        return
      }
      case 'TOOL_CALL_START': {
        if (positions.size === 0) addMessage(event.parentMessageId)
        const at = messages[messages.length - 1].parts.length
        positions.set(event.toolCallId, at)
        readers.set(event.toolCallId, createJsonReader())
        setPart(at, { type: 'tool-call', id: event.toolCallId, arguments: '', state: 'awaiting-input' })
        return
      }
      case 'TOOL_CALL_ARGS': {
        const at = positions.get(event.toolCallId)
        const reader = readers.get(event.toolCallId)
        const part = messages[messages.length - 1].parts[at]
        reader.feed(event.delta)
        change(at, { arguments: part.arguments + event.delta, input: reader.value, state: 'input-streaming' })
        return
      }
      case 'TOOL_CALL_END':
        change(positions.get(event.toolCallId), { state: 'input-complete' })
        return
      case 'CUSTOM':
        change(positions.get(event.value.toolCallId), {
          state: 'approval-requested',
          approval: event.value.approval,
        })
        return
      case 'TOOL_CALL_RESULT':
        change(positions.get(event.toolCallId), { state: 'complete', output: JSON.parse(event.content) })
        return
    }
  }

  function approve(toolCallId) {
    const at = positions.get(toolCallId)
    const { approval } = messages[messages.length - 1].parts[at]
    change(at, { state: 'approval-responded', approval: { ...approval, approved: true } })
    return approval.id
  }

  return { apply, approve, subscribe: (listener) => listeners.add(listener), read: () => messages }
}

function createFloor(isMutable) {
  function open(scenario) {
    const store = createStore(isMutable, scenario.history)
    let published = 0
    let size = 0
    store.subscribe(() => {
      const part = store.read().at(-1)?.parts.at(-1)
      const now =
        scenario.kind === 'args'
          ? part?.input === undefined
            ? 0
            : part.arguments.length
          : part?.text?.length
      if (now > size) {
        size = now
        published++
      }
    })
    return { store, published: () => published }
  }

  async function play(store, run, clock) {
    clock.start()
    for await (const batch of source(run)) for (const event of batch) store.apply(event)
  }

  return {
    publishesAll: true,
    text(scenario) {
      const { store, published } = open(scenario)
      return {
        async run(clock) {
          for (const run of scenario.agui) await play(store, run, clock)
        },
        result: () => ({
          text: store.read().at(-1).parts[0].text,
          history: store
            .read()
            .slice(0, -1)
            .map(({ parts }) => parts[0].text),
          published: published(),
        }),
      }
    },
    args(scenario) {
      const { store, published } = open(scenario)
      return {
        run: (clock) => play(store, scenario.agui[0], clock),
        result: () => ({ input: store.read().at(-1).parts[0].input, published: published() }),
      }
    },
    calls(scenario) {
      const { store } = open(scenario)
      let sent = []
      return {
        async run(clock) {
          await play(store, scenario.agui[0], clock)
          sent = scenario.calls.map(({ toolCallId }) => store.approve(toolCallId))
          await play(store, scenario.agui[1], clock)
        },
        result: () => {
          const [calls, last] = store.read()
          return {
            calls: calls.parts.map((part) => ({
              id: part.id,
              approved: part.approval.approved,
              output: part.output,
            })),
            text: last.parts[0].text,
            sent,
          }
        },
      }
    },
    sse(scenario) {
      const { store, published } = open(scenario)
      return {
        async run(clock) {
          clock.start()
          const decoder = new TextDecoder()
          let rest = ''
          for await (const bytes of body(scenario.agui[0].reads)) {
            const frames = (rest + decoder.decode(bytes, { stream: true })).split('\n\n')
            rest = frames.pop()
            for (const frame of frames) store.apply(JSON.parse(frame.slice(6)))
          }
        },
        result: () => ({ text: store.read().at(-1).parts[0].text, history: [], published: published() }),
      }
    },
  }
}

async function* source(run) {
  yield* run.batches
}

function body(reads) {
  let next = 0
  return new ReadableStream({
    pull(controller) {
      if (next < reads.length) controller.enqueue(reads[next++])
      else controller.close()
    },
  })
}

export const mutable = createFloor(true)
export const immutable = createFloor(false)
