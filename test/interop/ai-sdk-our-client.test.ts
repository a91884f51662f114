import { ChatClient } from '@countersign/client'
import { expect, onTestFinished } from 'vitest'
import { openRoute } from './ai-sdk-route.js'
import type { Cannot } from './matrix.js'
import { prompts } from './our-agent.js'
import { ourClient } from './our-client.js'

/** The AI SDK's answer to a request is yes or no (`tool-approval-response`); the client says so before anything is sent. */
const edit: Cannot = {
  reason:
    'an answer to the AI SDK carries no arguments; an edit is refused before it is sent, and the request stays open',
  async prove() {
    const { options, sent, requests } = await openRoute()
    const client = new ChatClient(options)
    onTestFinished(client.dispose)
    await client.sendMessage(prompts.mail)
    const id = client.getSnapshot().pendingApprovals[0]?.approval?.id ?? ''
    expect(await client.addToolApprovalResponse({ id, approved: true, input: { to: 'bob' } })).toMatchObject({
      status: 'refused',
      code: 'approval-malformed',
      reason: expect.stringContaining('may not be edited'),
    })
    expect(requests()).toBe(1)
    expect(await client.addToolApprovalResponse({ id, approved: true })).toEqual({ status: 'sent' })
    expect(sent).toEqual(['ada'])
  },
}

const secret = 'a-secret-of-this-test-0123456789abcdef'

ourClient('our client on an AI SDK 7 route', () => openRoute({ secret }), { edit })
ourClient('our client on an AI SDK 7 route without originalMessages', () => openRoute({ persists: false }), {
  edit,
})
