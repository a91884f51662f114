// The token: forged, altered, borrowed, from elsewhere, too late.
import { alter, bare, called, entry, requests, say, yes } from '../client.mjs'
import { altered, payloadOf, selfMade, withOtherTail } from '../forge.mjs'

const args = { to: 'team', n: 1 }
const session = { ...yes, scope: 'session' }
const stateless = { ledger: 'stateless' }

/** Asks, and answers with a token made of the genuine one. */
const withToken =
  (change, payload = yes, tool = 'send') =>
  async ({ ask, run }) => {
    const { asked, history } = await ask(tool, args)
    await run(bare(history), { resume: [entry(asked, payload, change(asked.approval.token))] })
  }

/** The same question to two people, in two threads or in two deployments, so that only what differs can tell. */
async function questionOf(client, user, threadId) {
  return client.ask('send', args, { user, threadId, id: 'c1' })
}

/** A server over a ledger that another one takes over later, with an epoch after all that was asked until then. */
const overLedger = async (world) => {
  world.ledger = await world.newLedger()
  return { ledger: world.ledger }
}

async function setUpAnew({ open, later, ledger, now }) {
  later(60_000)
  const epoch = new Date(now())
  later(60_000)
  return open({ ledger, epoch })
}

export const tokens = [
  {
    name: 'a token with a random signature',
    sends: 'the genuine token, its signature replaced',
    code: 'approval-tampered',
    check: 'signature',
    play: withToken((token) => token.replace(/[^.]+$/, 'A'.repeat(43))),
  },
  {
    name: 'a token signed with another secret under the right key name',
    sends: 'a token of the attacker for a genuine question',
    code: 'approval-tampered',
    check: 'signature',
    play: async ({ ask, run }) => {
      const { asked, history } = await ask('send', args)
      const genuine = payloadOf(asked.approval.token)
      const token = selfMade(genuine, { like: asked.approval.token })
      await run(bare(history), { resume: [entry(asked, yes, token)] })
    },
  },
  {
    name: 'a token signed with a secret that the server does not have',
    sends: "a token under the attacker's own key name",
    code: 'approval-not-found',
    check: 'kid',
    behind: ['signature'],
    play: withToken((token) => selfMade(payloadOf(token))),
  },
  {
    name: 'the signature in another spelling',
    sends: 'the genuine token, unused bits of its last character set',
    code: 'approval-malformed',
    check: 'base64 tail',
    play: withToken(withOtherTail),
  },
  {
    name: 'a token of 5,000 characters',
    sends: 'a self-made token with a long run id',
    code: 'approval-malformed',
    check: 'length',
    behind: ['signature'],
    play: withToken((token) => selfMade({ ...payloadOf(token), run: 'r'.repeat(5000) }, { like: token })),
  },
  {
    name: 'the expiry moved out',
    sends: 'the genuine token with a later exp, after the expiry',
    code: 'approval-tampered',
    check: 'signature',
    server: stateless,
    play: async ({ ask, run }, { later }) => {
      const { asked, history } = await ask('brief', args)
      later(61_000)
      const token = altered(asked.approval.token, { exp: payloadOf(asked.approval.token).exp + 3600 })
      await run(history, { resume: [entry(asked, yes, token)] })
    },
  },
  {
    name: 'a scope added to the token',
    sends: 'the genuine token with session among its scopes, and a yes for the session',
    code: 'approval-tampered',
    check: 'signature',
    play: withToken((token) => altered(token, { sc: ['once', 'session'] }), { ...yes, scope: 'session' }),
  },
  {
    name: 'the right to edit added to the token',
    sends: 'the genuine token with ed true, and edited arguments',
    code: 'approval-tampered',
    check: 'signature',
    play: withToken((token) => altered(token, { ed: true }), { ...yes, editedArgs: { to: 'all', n: 1 } }),
  },
  {
    name: 'other arguments in the token',
    sends: 'the genuine token with another hash of the arguments',
    code: 'approval-tampered',
    check: 'signature',
    play: withToken((token) => altered(token, { ah: 'A'.repeat(43) })),
    behind: ['ah'],
  },
  {
    name: 'the token of another approval',
    sends: 'a yes to one question with the token of a second one about the same call',
    code: 'approval-not-yours',
    check: 'ap',
    play: async (client) => {
      const first = await questionOf(client)
      const second = await questionOf(client)
      await client.run(first.history, { resume: [entry(first.asked, yes, second.asked.approval.token)] })
    },
  },
  {
    name: 'a yes from another thread',
    sends: "one thread's question and answer, posted as another thread",
    code: 'approval-not-yours',
    check: 'th',
    server: stateless,
    play: async (client) => {
      const question = await questionOf(client)
      await client.answer(question, yes, { threadId: 'other' })
    },
  },
  {
    name: 'a yes from another thread, to a ledger that remembers',
    sends: "one thread's question and answer, posted as another thread",
    code: 'approval-not-yours',
    check: 'th',
    behind: ['row owner and thread'],
    play: async (client) => {
      const question = await questionOf(client)
      await client.answer(question, yes, { threadId: 'other' })
    },
  },
  {
    name: 'a yes of another person',
    sends: "ann's question and its token, answered by bob",
    code: 'approval-not-yours',
    check: 'oh',
    server: stateless,
    play: async (client) => {
      const question = await questionOf(client, 'ann')
      await client.answer(question, yes, { user: 'bob' })
    },
  },
  {
    name: 'a yes of another person, to a ledger that remembers',
    sends: "ann's question and its token, answered by bob",
    code: 'approval-not-yours',
    check: 'oh',
    behind: ['row owner and thread'],
    play: async (client) => {
      const question = await questionOf(client, 'ann')
      await client.answer(question, yes, { user: 'bob' })
    },
  },
  {
    name: 'a yes of somebody who is not signed in',
    sends: "ann's question and its token, answered by nobody",
    code: 'approval-not-yours',
    check: 'oh',
    server: stateless,
    play: async (client) => {
      const question = await questionOf(client, 'ann')
      await client.answer(question, yes, { user: null })
    },
  },
  {
    name: 'a yes from another deployment with the same secret',
    sends: 'a question of one ledger, answered at a server with another',
    code: 'approval-not-yours',
    check: 'aud',
    server: ({ server }) => ({ ledger: server.statelessLedger({ acceptReplay: true, id: 'production' }) }),
    play: async (client, { open, server }) => {
      const staging = await open({ ledger: server.statelessLedger({ acceptReplay: true, id: 'staging' }) })
      const question = await questionOf(staging)
      await client.answer(question, yes)
    },
  },
  {
    name: 'a yes from before a restart that lost the ledger',
    sends: 'a question of the first process, answered at the second',
    code: 'approval-not-found',
    durable: 'approval-not-yours',
    check: 'aud',
    behind: ['issued'],
    play: async (client, { open }) => {
      const question = await questionOf(client)
      const after = await open()
      await after.answer(question, yes)
    },
  },
  {
    name: 'a token of a secret that was retired',
    sends: 'a question signed before the rotation, answered after the old secret was dropped',
    code: 'approval-not-found',
    check: 'kid',
    behind: ['signature', 'oh', 'ah'],
    play: async (_, { open, newLedger }) => {
      const ledger = await newLedger()
      const before = await open({ ledger, secret: 'an older secret of this server, long enough' })
      const question = await questionOf(before)
      const after = await open({ ledger })
      await after.answer(question, yes)
    },
  },
  {
    name: 'an answer that comes too late',
    sends: 'a genuine yes after the expiry',
    code: 'approval-expired',
    check: 'exp',
    behind: ['row expiry'],
    server: stateless,
    play: async ({ ask, answer }, { later }) => {
      const question = await ask('brief', args)
      later(61_000)
      await answer(question, yes)
    },
  },
  {
    name: 'an answer that comes too late, to a ledger that remembers',
    sends: 'a genuine yes after the expiry',
    code: 'approval-expired',
    check: 'exp',
    behind: ['row expiry'],
    play: async ({ ask, answer }, { later }) => {
      const question = await ask('brief', args)
      later(61_000)
      await answer(question, yes)
    },
  },
  {
    name: 'a late answer without its token',
    sends: 'a yes after the expiry from a client that echoes no token',
    code: 'approval-expired',
    check: 'exp',
    behind: ['row expiry'],
    play: async ({ ask, run }, { later }) => {
      const { asked, history } = await ask('brief', args)
      later(61_000)
      await run(bare(history), { resume: [entry(asked, yes, null)] })
    },
  },
  {
    name: 'a token from the future',
    sends: 'a genuine yes to a server whose clock was set back by two hours',
    code: 'approval-malformed',
    check: 'iat',
    play: async ({ ask, answer }, { later }) => {
      const question = await ask('send', args)
      later(-7_200_000)
      await answer(question, yes)
    },
  },
  {
    name: 'a wrong token where the right one is known',
    sends: 'a genuine question with rubbish for a token in its answer',
    code: 'approval-malformed',
    check: 'no fallback for a wrong token',
    play: async ({ ask, run }) => {
      const { asked, history } = await ask('send', args)
      await run(history, { resume: [entry(asked, yes, 'yes please')] })
    },
  },
  {
    name: 'no token where tokens are required',
    sends: 'a yes without a token to a server with requireToken',
    code: 'approval-not-found',
    check: 'requireToken',
    server: { requireToken: true },
    play: async ({ ask, run }) => {
      const { asked, history } = await ask('send', args)
      await run(bare(history), { resume: [entry(asked, yes, null)] })
    },
  },
  {
    name: 'a token of 40 kilobytes of rubbish in the history',
    sends: 'a history whose call carries an enormous token, and a yes recorded on it',
    code: 'approval-malformed',
    check: 'verified',
    behind: ['issued'],
    play: async ({ run, ask }) => {
      const { asked, history } = await ask('send', args)
      const approval = { id: `${asked.approval.id}x`, approved: true }
      await run(
        alter(history, (call) => (call.metadata.countersign = { token: 'x'.repeat(40_000), approval })),
        {},
      )
    },
  },
  {
    name: 'F20 a yes with null for its token',
    sends: 'a yes with token: null where tokens are required, the genuine token in the history',
    code: 'approval-malformed',
    check: 'null for a token',
    server: { requireToken: true },
    play: async ({ ask, run }) => {
      const { asked, history } = await ask('send', args)
      for (const token of [null, 0, false, '', [], {}])
        await run(history, { resume: [{ ...entry(asked), metadata: { countersign: { token } } }] })
    },
  },
  {
    name: "F20 another's token, asked for where nobody is signed in",
    sends:
      'a history with the thread, id and arguments of an open call, and a yes with the token that comes back',
    code: 'interrupted',
    check: "nobody's question",
    play: async ({ ask, run }, { breach }) => {
      const { asked } = await ask('send', args, { user: null })
      const guessed = [say('go'), called('send', args, { id: asked.toolCallId })]
      const { events } = await run(guessed, { user: null })
      const [stolen] = requests(events)
      if (stolen === undefined) return
      breach('the token was handed out')
      await run(guessed, { user: null, resume: [entry(stolen)] })
    },
  },
  {
    name: 'F21 a yes to a question from before the epoch',
    sends: 'a genuine yes to a server that was set up anew, with and without its token',
    code: 'approval-not-found',
    check: 'epoch of questions',
    server: overLedger,
    play: async (client, world) => {
      const { asked, history } = await client.ask('send', args)
      const anew = await setUpAnew(world)
      await anew.run(history, { resume: [entry(asked)] })
      await anew.run(bare(history), { resume: [entry(asked, yes, null)] })
    },
  },
  {
    name: 'F21 a grant from before the epoch',
    sends: 'a yes for the session, and the call again to a server that was set up anew',
    code: 'asked again',
    executions: 1,
    check: 'epoch of grants',
    server: overLedger,
    play: async (client, world) => {
      await client.answer(await client.ask('post', { to: 'team' }), session)
      const anew = await setUpAnew(world)
      const { asked } = await anew.ask('post', { to: 'team' })
      if (asked !== undefined) world.saw('asked again')
    },
  },
]
