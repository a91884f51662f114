// Questions that a running tool asks: what answers one is never a yes to a call.
import { entry, no, requests, say, yes } from '../client.mjs'

const args = { to: 'team', n: 1 }

/** Ann's live run, in which one call waits for her yes and a tool that runs has asked her something. */
function openBoth({ run }) {
  const runId = `live_${Math.random()}`
  const calls = [
    { name: 'send', arguments: args },
    { name: 'survey', arguments: {} },
  ]
  let ended
  const both = new Promise((resolve) => {
    const seen = []
    const onEvent = (event) => {
      seen.push(event)
      const [request] = requests(seen)
      const question = seen.find(({ name }) => name === 'interrupt-requested')?.value
      if (request !== undefined && question !== undefined) resolve({ request, question })
    }
    ended = run([say({ calls })], { user: 'ann', path: '/live', runId, onEvent })
  })
  return { runId, both, ended }
}

const resolved = (interruptId, payload, metadata = {}) => ({
  interruptId,
  status: 'resolved',
  payload,
  metadata,
})

/** Plays an attack on the open questions; then ann answers both, so that the run ends: the tool by itself, the call with no. */
const withBoth = (attack) => async (client, world) => {
  const { runId, both, ended } = openBoth(client)
  const { request, question } = await both
  const deliver = (resume, user = 'ann') =>
    client.send('/answer', { user, body: { threadId: 'thread', runId, resume } })
  await attack({ client, deliver, request, question, world })
  await deliver([resolved(question.id, { which: 'this' })])
  await deliver([entry(request, no)])
  await ended
  if (world.record.runs.length === 0) world.saw('nothing ran')
}

export const questions = [
  {
    name: "a yes to a tool's question, with the token of a call",
    sends: "approved: true under the id of the question, with the metadata of the call's approval",
    code: 'nothing ran',
    check: 'ap',
    stands: 'what answers a question goes to its tool and nowhere else',
    play: withBoth(({ deliver, request, question }) =>
      deliver([resolved(question.id, yes, { countersign: { token: request.approval.token } })]),
    ),
  },
  {
    name: "the answer to a tool's question, for a call",
    sends: "what the tool asked for, under the id of the call's approval",
    code: 'approval-malformed',
    check: 'approved is a boolean',
    stands: 'it does not say yes',
    play: withBoth(({ deliver, request }) =>
      deliver([{ ...entry(request), payload: { which: 'this', action: 'accept', content: yes } }]),
    ),
  },
  {
    name: "bob answers a tool's question to ann",
    sends: "an answer to ann's question, by bob",
    code: 'run-ended',
    check: 'run key',
    stands: 'it is no yes to anything',
    play: withBoth(({ deliver, question }) => deliver([resolved(question.id, { which: 'that' })], 'bob')),
  },
  {
    name: "a tool's question answered by a request of its own",
    sends: 'a yes under the id of the question, in another request while the run is open',
    code: 'approval-not-found',
    check: 'a call to answer for',
    stands: 'there is nothing that could run',
    play: withBoth(({ client, question }) =>
      client.run([say('go')], { user: 'ann', resume: [resolved(question.id, yes)] }),
    ),
  },
]
