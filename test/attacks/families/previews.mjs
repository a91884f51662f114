// What was shown: previews that are swapped, left out, added, taken from elsewhere, or no longer true; and edits that nobody saw.
import { requests, yes } from '../client.mjs'

const args = { to: 'team', text: 'hello' }
const edited = { ...args, text: 'goodbye' }

/** The entry of a page that shows previews. */
const shown = ({ approval }, payload, own = {}) => ({
  interruptId: approval.id,
  status: 'resolved',
  payload,
  metadata: {
    countersign: { token: approval.token, sentIn: 'run_of_page', preview: approval.preview, ...own },
  },
})

/** Answers a question about `tool` with a preview of the attacker's choice. */
const withPreview =
  (own, tool = 'edit', payload = yes) =>
  async ({ ask, run }) => {
    const { asked, history } = await ask(tool, args)
    await run(history, { resume: [shown(asked, payload, own)] })
  }

/** What a page posts for the preview of edits. */
const editsOf = ({ toolCallId, toolName, input, approval }, more = {}) => ({
  threadId: 'thread',
  approvalId: approval.id,
  token: approval.token,
  call: { id: toolCallId, name: toolName, arguments: JSON.stringify(input) },
  input: edited,
  ...more,
})

const post = async ({ send }, body, user = 'ann') => {
  const { body: said } = await send('/preview', { user, body })
  return said
}

/** Posts edits that must not be shown to whoever posts them. */
const peek =
  (change, user = 'ann') =>
  async (client, { breach }) => {
    const { asked } = await client.ask('edit', args)
    const { preview } = await post(client, change(asked), user)
    if (preview !== undefined) breach('a preview')
  }

/** Approves edits with a proof that is not theirs. */
const withProof = (take) => async (client) => {
  const { asked, history } = await client.ask('edit', args)
  const own = await take(client, asked)
  await client.run(history, { resume: [shown(asked, { ...yes, editedArgs: edited }, own)] })
}

const again = (events, saw) => {
  if (requests(events).length > 0) saw('asked again')
}

export const previews = [
  {
    name: 'a preview that was swapped on its way',
    sends: 'the genuine answer of a page that was shown something harmless',
    code: 'approval-tampered',
    check: 'preview as shown',
    play: withPreview({ preview: { kind: 'text', text: 'first: nothing' } }),
  },
  {
    name: 'a preview that was taken out on its way',
    sends: 'the genuine answer of a page that was shown no preview',
    code: 'approval-tampered',
    check: 'preview as shown',
    play: withPreview({ preview: undefined }),
  },
  {
    name: 'a preview that is null',
    sends: 'the genuine answer with null for the preview',
    code: 'approval-tampered',
    check: 'preview as shown',
    play: withPreview({ preview: null }),
  },
  {
    name: 'a preview that was added on its way',
    sends: 'the genuine answer of a page that was shown a preview where the tool has none',
    code: 'approval-tampered',
    check: 'preview as shown',
    play: withPreview({ preview: { kind: 'text', text: 'harmless' } }, 'send'),
  },
  {
    name: 'the preview of another call',
    sends: 'the genuine answer with the preview of another request of the same user',
    code: 'approval-tampered',
    check: 'preview as shown',
    play: async ({ ask, run }) => {
      const other = await ask('edit', edited, { threadId: 'other' })
      const { asked, history } = await ask('edit', args)
      await run(history, { resume: [shown(asked, yes, { preview: other.asked.approval.preview })] })
    },
  },
  {
    name: 'an effect that is no longer the one that was shown',
    sends: 'a genuine yes after the world has changed',
    code: 'asked again',
    check: 'preview unchanged',
    play: async ({ ask, run, version }, { saw }) => {
      const { asked, history } = await ask('edit', args)
      version.current = 'second'
      again((await run(history, { resume: [shown(asked, yes)] })).events, saw)
    },
  },
  {
    name: 'an effect that changed, from a client that knows no previews',
    sends: 'a yes by the approval id alone after the world has changed',
    code: 'asked again',
    check: 'preview unchanged',
    play: async ({ ask, run, version }, { saw }) => {
      const { asked, history } = await ask('edit', args)
      version.current = 'second'
      const resume = [{ interruptId: asked.approval.id, status: 'resolved', payload: yes }]
      again((await run(history, { resume })).events, saw)
    },
  },
  {
    name: 'an approval that was replaced, used once the world is as it was',
    sends: 'the same yes again after the change was undone',
    code: 'asked again',
    check: 'preview unchanged',
    play: async ({ ask, run, version }, { saw }) => {
      const { asked, history } = await ask('edit', args)
      version.current = 'second'
      await run(history, { resume: [shown(asked, yes)] })
      version.current = 'first'
      again((await run(history, { resume: [shown(asked, yes)] })).events, saw)
    },
  },
  {
    name: 'edits that nobody was shown',
    sends: 'a yes with edited arguments and the preview of the request',
    code: 'approval-edit-invalid',
    check: 'edits with their preview',
    behind: ['preview unchanged'],
    play: withPreview({}, 'edit', { ...yes, editedArgs: edited }),
  },
  {
    name: 'edits with a made-up proof',
    sends: 'a yes with edited arguments and a proof of the right form',
    code: 'approval-edit-invalid',
    check: 'proof of edits',
    behind: ['edits with their preview', 'preview unchanged'],
    play: withProof(() => ({ preview: undefined, proof: `${'A'.repeat(43)}.${'A'.repeat(43)}` })),
  },
  {
    name: 'edits with the proof of other edits',
    sends: 'a yes with edited arguments and the preview and proof of harmless ones',
    code: 'approval-edit-invalid',
    check: 'proof of edits',
    behind: ['preview unchanged'],
    play: withProof((client, asked) => post(client, editsOf(asked, { input: { ...args, text: 'hi' } }))),
  },
  {
    name: 'edits with the proof of another request',
    sends: 'a yes with edited arguments and the proof that another request got for the same edits',
    code: 'approval-edit-invalid',
    check: 'proof of edits',
    play: withProof(async (client) => {
      const other = await client.ask('edit', args, { threadId: 'other' })
      return post(client, editsOf(other.asked, { threadId: 'other' }))
    }),
  },
  {
    name: "a preview of edits of ann's request, for bob",
    sends: "ann's token and call, posted by bob",
    code: 'approval-not-yours',
    check: 'oh',
    play: peek((asked) => editsOf(asked), 'bob'),
  },
  {
    name: 'a preview of edits without being signed in',
    sends: "ann's token and call, posted by nobody",
    code: 'approval-not-yours',
    check: 'oh',
    play: peek((asked) => editsOf(asked), null),
  },
  {
    name: 'a preview of edits of a call that was not asked about',
    sends: 'a genuine token with other arguments of the call',
    code: 'approval-tampered',
    check: 'ah',
    play: peek((asked) =>
      editsOf({ ...asked, input: { ...args, to: 'all' } }, { input: { ...args, to: 'all' } }),
    ),
  },
  {
    name: 'a preview of arguments that may not be edited',
    sends: 'other recipients, where only the text may change',
    code: 'approval-malformed',
    check: 'edits allowed',
    play: peek((asked) => editsOf(asked, { input: { ...args, to: 'all' } })),
  },
]
