// What belongs to somebody else: grants, runs, open questions; and who one is.
import { entry, input, requests, say, yes } from '../client.mjs'

const args = { to: 'team', n: 1 }
const session = { ...yes, scope: 'session' }

/** Ann says yes for the session: one run that she wants, and a grant. */
async function grant(client, to = 'team') {
  const question = await client.ask('post', { to }, { user: 'ann' })
  await client.answer(question, session)
  return question
}

/** After ann's grant somebody makes a call that it does not cover. */
const afterGrant =
  (tool, given, options = {}) =>
  async (client, { saw }) => {
    await grant(client)
    const { asked } = await client.ask(tool, given, { user: 'ann', ...options })
    if (asked !== undefined) saw('asked again')
  }

/** Starts ann's live run and waits for its question. */
function openLive({ run }, options = {}) {
  const runId = `live_${Math.random()}`
  const start = [say({ calls: [{ name: 'send', arguments: args }] })]
  let ended
  const asked = new Promise((resolve) => {
    const events = []
    const onEvent = (event) => {
      events.push(event)
      const [request] = requests([event])
      if (request !== undefined) resolve(request)
    }
    ended = run(start, { user: 'ann', path: '/live', runId, onEvent, ...options })
  })
  return { runId, asked, ended }
}

/** Posts an answer into a live run. */
const deliver = ({ send }, runId, resume, user, threadId = 'thread') =>
  send('/answer', { user, body: { threadId, runId, resume } })

/** Somebody answers ann's live question; then ann denies it, so that the run ends. */
const intoLive = (attack) => async (client, world) => {
  const { runId, asked, ended } = openLive(client)
  const request = await asked
  await attack(client, { runId, request, world })
  await deliver(client, runId, [entry(request, { approved: false })], 'ann')
  await ended
}

export const owners = [
  {
    name: "a grant of ann's, used by bob",
    sends: 'after a yes for the session, the same call of another person in the same thread',
    code: 'asked again',
    executions: 1,
    check: 'grant owner',
    behind: ['revocation wins'],
    play: afterGrant('post', { to: 'team' }, { user: 'bob' }),
  },
  {
    name: 'a grant used in another thread',
    sends: 'after a yes for the session, the same call in another thread',
    code: 'asked again',
    executions: 1,
    check: 'grant thread',
    play: afterGrant('post', { to: 'team' }, { threadId: 'other' }),
  },
  {
    name: 'a grant used for another tool',
    sends: 'after a yes for the session, a call of another tool with the same scope key',
    code: 'asked again',
    executions: 1,
    check: 'grant tool',
    behind: ['grant version'],
    play: afterGrant('letter', { to: 'team' }),
  },
  {
    name: 'a grant used for another recipient',
    sends: 'after a yes for the session, a call that the scope key tells apart',
    code: 'asked again',
    executions: 1,
    check: 'grant scope key',
    play: afterGrant('post', { to: 'all' }),
  },
  {
    name: 'a session of nobody',
    sends: 'a yes for the session of somebody who is not signed in, and the call again',
    code: 'asked again',
    executions: 1,
    check: 'scope was offered',
    stands: 'nobody owns no grants',
    play: async (client, { saw }) => {
      const question = await client.ask('post', args, { user: null })
      await client.answer(question, session, { user: null })
      const { asked } = await client.ask('post', args, { user: null })
      if (asked !== undefined) saw('asked again')
    },
  },
  {
    name: 'a grant that was revoked',
    sends: 'the call again after its grant was ended',
    code: 'asked again',
    executions: 1,
    check: 'revocation',
    play: async (client, { saw }) => {
      await grant(client)
      await client.send('/grants?threadId=thread', { method: 'DELETE', user: 'ann' })
      const { asked } = await client.ask('post', { to: 'team' }, { user: 'ann' })
      if (asked !== undefined) saw('asked again')
    },
  },
  {
    name: 'a grant that is made while it is revoked',
    sends: 'a revocation between the claim of a yes for the session and its grant, and the call again',
    code: 'asked again',
    executions: 1,
    check: 'revocation wins',
    server: async ({ newLedger }) => {
      const ledger = await newLedger()
      const grantLate = async (request) => {
        await ledger.revoke({ owner: request.owner })
        return ledger.grant(request)
      }
      return { ledger: { ...ledger, grant: grantLate } }
    },
    play: async (client, { saw }) => {
      await grant(client)
      const { asked } = await client.ask('post', { to: 'team' }, { user: 'ann' })
      if (asked !== undefined) saw('asked again')
    },
  },
  {
    name: "ann's grants, read by bob",
    sends: 'GET of the grants of a thread with ann as a parameter',
    code: 'nothing found',
    executions: 1,
    check: 'grants of the person',
    play: async (client, { breach, saw }) => {
      await grant(client)
      const { body } = await client.send('/grants?threadId=thread&subject=ann&owner=ann', {
        method: 'GET',
        user: 'bob',
      })
      if (body.grants.length > 0) breach('bob reads them')
      else saw('nothing found')
    },
  },
  {
    name: "ann's grants, ended by bob",
    sends: "DELETE of ann's grant by its id",
    code: 'nothing found',
    executions: 1,
    check: 'grants of the person',
    play: async (client, { breach, saw }) => {
      await grant(client)
      const { body: seen } = await client.send('/grants?threadId=thread', { method: 'GET', user: 'ann' })
      const path = `/grants?threadId=thread&subject=ann&id=${seen.grants[0].id}`
      const { body } = await client.send(path, { method: 'DELETE', user: 'bob' })
      if (body.revoked > 0) breach('bob ended it')
      else saw('nothing found')
    },
  },
  {
    name: 'a subject in the body',
    sends: "bob's answer to ann's question, with ann as the subject in forwardedProps and state",
    code: 'approval-not-yours',
    check: 'who is asking',
    play: async (client) => {
      const question = await client.ask('send', args, { user: 'ann' })
      const ann = { subject: 'ann', owner: 'ann' }
      await client.answer(question, yes, { user: 'bob', forwardedProps: ann, state: ann })
    },
  },
  {
    name: 'a context in the body',
    sends: "bob's answer to ann's question, with ann in the request's context",
    code: 'approval-not-yours',
    check: 'oh',
    behind: ['row owner and thread'],
    play: async (client) => {
      const question = await client.ask('send', args, { user: 'ann' })
      await client.answer(question, yes, { user: 'bob', context: [{ description: 'subject', value: 'ann' }] })
    },
  },
  {
    name: "ann's question, closed by bob",
    sends: "bob's no to ann's question; then ann's own yes",
    code: 'approval-not-yours',
    executions: 1,
    check: 'oh',
    behind: ['row owner and thread'],
    play: async (client, { record, breach }) => {
      const question = await client.ask('send', args, { user: 'ann' })
      await client.answer(question, { approved: false }, { user: 'bob' })
      await client.answer(question, yes)
      if (record.runs.length !== 1) breach("ann's yes is lost")
    },
  },
  {
    name: "ann's run, read by bob",
    sends: 'GET of the rest of a run by its thread and id',
    code: 'nothing found',
    check: 'run key',
    play: async (client, { breach, saw }) => {
      const runId = 'a_run_of_ann'
      await client.run([say('a secret')], { user: 'ann', runId })
      const { status, events } = await client.send(`/chat?threadId=thread&runId=${runId}`, {
        method: 'GET',
        user: 'bob',
      })
      if (events.length > 0) breach('bob reads it')
      else if (status === 204) saw('nothing found')
    },
  },
  {
    name: "ann's run, read by nobody in particular",
    sends: 'GET of the rest of a run without being signed in',
    code: 'nothing found',
    check: 'run key',
    stands: 'without a person there is no key to look under',
    play: async (client, { breach, saw }) => {
      const runId = 'another_run_of_ann'
      await client.run([say('a secret')], { user: 'ann', runId })
      const { status, events } = await client.send(`/chat?threadId=thread&runId=${runId}`, {
        method: 'GET',
        user: null,
      })
      if (events.length > 0) breach('somebody reads it')
      else if (status === 204) saw('nothing found')
    },
  },
  {
    name: 'a run taken up with the event id of another',
    sends: 'GET with a Last-Event-ID of another run',
    code: 'invalid-request',
    check: 'run key',
    stands: 'an event id names its run',
    play: async ({ run, send }, { breach }) => {
      await run([say('one')], { runId: 'one' })
      for (const id of ['other:1', 'one:', 'one:-1', 'one:1e9', 'one:99999999999999999999', 'one:0x1']) {
        const headers = { 'last-event-id': id }
        const { status } = await send('/chat?threadId=thread&runId=one', { method: 'GET', headers })
        if (status !== 400) breach(`${id} is taken`)
      }
    },
  },
  {
    name: "bob answers ann's open run",
    sends: "a yes to ann's live question, with its run id and token",
    code: 'run-ended',
    check: 'run key',
    play: intoLive((client, { runId, request }) => deliver(client, runId, [entry(request)], 'bob')),
  },
  {
    name: 'nobody answers an open run',
    sends: "a yes to ann's live question without being signed in",
    code: 'invalid-request',
    check: 'run key',
    stands: 'without a person there is no key to look under',
    play: intoLive((client, { runId, request }) => deliver(client, runId, [entry(request)], null)),
  },
  {
    name: 'a live answer into another run of the same person',
    sends: "the answer to one run's question, posted to a run that does not exist",
    code: 'run-ended',
    check: 'run key',
    stands: 'no such run is open',
    play: intoLive((client, { request }) => deliver(client, 'another', [entry(request)], 'ann')),
  },
  {
    name: 'a live answer with a forged token',
    sends: 'a yes with rubbish for a token into the open run',
    code: 'approval-malformed',
    check: 'no fallback for a wrong token',
    play: intoLive((client, { runId, request }) =>
      deliver(client, runId, [entry(request, yes, 'rubbish')], 'ann'),
    ),
  },
  {
    name: 'a live answer that is no answer',
    sends: 'approved as a text into the open run',
    code: 'approval-malformed',
    check: 'approved is a boolean',
    play: intoLive((client, { runId, request }) =>
      deliver(client, runId, [entry(request, { approved: 'yes' })], 'ann'),
    ),
  },
  {
    name: 'fifty contradicting live answers at once',
    sends: 'a no and forty-nine yeses into the open run at the same time',
    code: 'approval-conflict',
    check: 'first live answer',
    stands: 'what was taken once is not waited for again, and the ledger allows one',
    play: intoLive((client, { runId, request }) =>
      Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          deliver(client, runId, [entry(request, index === 0 ? { approved: false } : yes)], 'ann'),
        ),
      ),
    ),
  },
  {
    name: 'a live yes and one by request at once',
    sends: 'the same yes into the open run and as a request of its own',
    code: 'nothing twice',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    play: async (client, { saw }) => {
      const { runId, asked, ended } = openLive(client)
      const request = await asked
      const { toolCallId: id, input: given } = request
      const call = { id, type: 'function', function: { name: 'send', arguments: JSON.stringify(given) } }
      const history = [say('go'), { id: 'a', role: 'assistant', toolCalls: [call] }]
      await Promise.all([
        deliver(client, runId, [entry(request)], 'ann'),
        client.run(history, { user: 'ann', resume: [entry(request)] }),
      ])
      await ended
      saw('nothing twice')
    },
  },
  {
    name: 'a run of a socket, answered over another',
    sends: 'two sockets of nobody; the second answers the run of the first',
    code: 'run-ended',
    check: 'run key',
    play: async ({ socket }, { record }) => {
      const [one, other] = [socket(), socket()]
      await Promise.all([one.opened, other.opened])
      const given = input([say({ calls: [{ name: 'send', arguments: args }] })])
      one.send({ type: 'run', input: given })
      const frame = await one.frame(
        ({ type, events = [] }) => type === 'events' && requests(events).length > 0,
      )
      const [request] = requests(frame.events)
      other.send({
        type: 'answer',
        id: 'x',
        threadId: given.threadId,
        runId: given.runId,
        resume: [entry(request)],
      })
      const said = await other.frame(
        ({ type, id }) => (type === 'refused' || type === 'answered') && id === 'x',
      )
      if (said.type === 'refused') record.refused(said.code)
      else await one.frame(({ type }) => type === 'end')
      one.close()
      other.close()
    },
  },
  {
    name: 'a run of ann, taken up over a socket of bob',
    sends: "a rejoin frame with ann's thread and run",
    code: 'nothing found',
    check: 'run key',
    play: async ({ run, socket }, { saw, breach }) => {
      await run([say('a secret')], { user: 'ann', runId: 'run_of_ann' })
      const peer = socket({ 'x-user': 'bob' })
      await peer.opened
      peer.send({ type: 'rejoin', threadId: 'thread', runId: 'run_of_ann' })
      await peer.frame(({ type }) => type === 'end' || type === 'error')
      if (peer.frames.some(({ type }) => type === 'events')) breach('bob reads it')
      else saw('nothing found')
      peer.close()
    },
  },
  {
    name: 'frames that are none',
    sends: 'rubbish over a socket',
    code: 'invalid-request',
    check: 'frame',
    stands: 'what has no known type is left alone',
    play: async ({ socket }, { record }) => {
      for (const text of ['null', '7', '{"type":{}}', '{"type":"run"}']) {
        const peer = socket({ 'x-user': 'ann' })
        await peer.opened
        peer.send(JSON.parse(text))
        const said = await peer.frame(({ type }) => type === 'error')
        if (said !== undefined) record.refused(said.code)
        peer.close()
      }
    },
  },
  {
    name: 'F19 a grant whose scope key is an object',
    sends: 'a yes for the session, and a call with another key, where the tool answers objects for keys',
    code: 'asked again',
    executions: 1,
    check: 'text for a scope key',
    behind: ['text for a ledger key'],
    play: async ({ ask, answer }, { saw }) => {
      await answer(await ask('write', { to: 'team' }), session)
      const { asked } = await ask('write', { to: 'all' })
      if (asked !== undefined) saw('asked again')
    },
  },
]
