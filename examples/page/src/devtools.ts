import type { ChatClient } from '@countersign/client'

/** Shows the timeline of the chat below the page if its URL has `?devtools`. Otherwise the devtools are not even loaded. */
export async function showDevtools(client: ChatClient): Promise<void> {
  if (!new URLSearchParams(location.search).has('devtools')) return
  const { defineDevtools } = await import('@countersign/devtools')
  defineDevtools()
  const element = document.createElement('countersign-devtools')
  element.className = 'devtools'
  element.client = client
  document.body.append(element)
}
