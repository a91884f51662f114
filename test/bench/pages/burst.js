import { ChatClient, fetchServerSentEvents } from '@countersign/client'

/**
 * The whole way in a page: a body that is there at once, the client, and a listener that puts the text on the page. Says how often it
 * was told and which tasks were long.
 */
export async function burst({ body, hidden }) {
  if (hidden) hide()
  const bytes = new TextEncoder().encode(body)
  // What brought the body here is a task of its own, and none of ours.
  await new Promise((resolve) => setTimeout(resolve, 100))
  const long = []
  const observer = new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) long.push(duration)
  })
  observer.observe({ type: 'longtask' })
  const client = new ChatClient({
    threadId: 'thread',
    generateId: () => `id-${Math.random()}`,
    connection: fetchServerSentEvents('/chat', {
      fetch: async (_url, { body: request }) => {
        const { runId } = JSON.parse(request)
        const frame = (event) => new TextEncoder().encode(`data: ${JSON.stringify(event)}\n\n`)
        const parts = [
          frame({ type: 'RUN_STARTED', threadId: 'thread', runId }),
          bytes,
          frame({ type: 'RUN_FINISHED', threadId: 'thread', runId }),
        ]
        return new Response(new Blob(parts), { headers: { 'content-type': 'text/event-stream' } })
      },
    }),
  })
  const shown = document.body.appendChild(document.createElement('p'))
  let notified = 0
  client.subscribe(() => {
    notified++
    shown.textContent = client.getSnapshot().messages.at(-1)?.parts[0]?.text ?? ''
  })
  const gaps = watchGaps()
  const start = performance.now()
  await client.sendMessage('go')
  const ms = performance.now() - start
  await new Promise((resolve) => setTimeout(resolve, 200))
  observer.disconnect()
  return { ms, notified, longest: gaps.stop(), long, length: shown.textContent.length }
}

/** The longest time in which the page could not have answered a click. */
function watchGaps() {
  let longest = 0
  let last = performance.now()
  let on = true
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (on) port2.postMessage(0)
  }
  port2.postMessage(0)
  return {
    stop() {
      on = false
      return longest
    },
  }
}

/** What a page sees of being hidden: it says so, and its frames do not come. */
function hide() {
  Object.defineProperty(document, 'hidden', { get: () => true, configurable: true })
  window.requestAnimationFrame = () => 0
}

window.burst = burst
