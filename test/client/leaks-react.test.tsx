// @vitest-environment jsdom
import type { ChatClient } from '@countersign/client'
import { useChat } from '@countersign/react'
import { ask, call, scriptedConnection } from '@countersign/testing'
import { cleanup, render } from '@testing-library/react'
import { StrictMode } from 'react'
import { afterEach, expect, test } from 'vitest'
import { FakeBrowser, quiet } from './fake-browser.js'

afterEach(cleanup)

function Page({ client }: { client: ChatClient }) {
  const { status, pendingApprovals } = useChat({ client })
  return (
    <p>
      {status} {pendingApprovals.length}
    </p>
  )
}

test('500 mounts and unmounts in StrictMode leave no listener, channel or lock', async () => {
  const browser = new FakeBrowser()
  const { client } = browser.open(scriptedConnection([[call('c1', 'delete_file'), ask('a1', 'c1')]]))
  await client.sendMessage('go')
  client.detach()
  let listeners = 0
  const { subscribe } = client
  client.subscribe = (listener) => {
    listeners++
    const leave = subscribe(listener)
    return () => {
      listeners--
      leave()
    }
  }
  for (let cycle = 0; cycle < 500; cycle++) {
    const { unmount, container } = render(<Page client={client} />, { wrapper: StrictMode })
    if (cycle % 50 === 0) {
      await quiet()
      expect(container.textContent).toBe('awaiting-approval 1')
      expect([browser.openChannels, browser.lockRequests]).toEqual([1, 1])
    }
    unmount()
  }
  await quiet()
  expect(listeners).toBe(0)
  expect([browser.openChannels, browser.lockRequests]).toEqual([0, 0])
})
