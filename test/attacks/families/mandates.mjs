// Standing approvals that are narrower than a tool: nobody widens, forges or overdraws one, and nothing gets round a standing denial.
import { alter, entry, say, yes } from '../client.mjs'

const bill = (amount = 50, more = {}) => ({ to: 'acme', amount, currency: 'EUR', ...more })
const choose = (mandate) => ({ approved: true, mandate })

/** Ann chooses a mandate with an approval: one run that she wants. */
async function grant(client, { tool = 'buy', args = bill(), mandate = 'acme', more } = {}) {
  const question = await client.ask(tool, args, { user: 'ann' })
  await client.answer(question, choose(mandate), more?.(question))
  return question
}

/** An answer that chooses what it may not choose. */
const wrongChoice = (name, sends, payload, check, more = {}) => ({
  ...{ name, sends, code: 'approval-malformed', check },
  play: async (client) => client.answer(await client.ask('buy', bill()), payload),
  ...more,
})

/** After a mandate is given, a call that it does not cover. `args` is one set of arguments, or several to try one after another. */
const afterMandate = (
  name,
  sends,
  args,
  check,
  { given, tool = given?.tool ?? 'buy', options = {}, ...more } = {},
) => ({
  ...{ name, sends, code: 'asked again', executions: 1, check },
  async play(client, { saw, breach }) {
    await grant(client, given)
    for (const one of Array.isArray(args) ? args : [args]) {
      const { asked } = await client.ask(tool, one, { user: 'ann', ...options })
      if (asked === undefined) breach(`nobody was asked about ${JSON.stringify(one)}`)
      else saw('asked again')
    }
  },
  ...more,
})

const erasing = { tool: 'erase', args: { path: '/srv/data/a' }, mandate: 'data' }
const fetching = { tool: 'fetch', args: { url: 'https://example.org/v1/a' }, mandate: 'v1' }
const outside = (name, path, check, more = {}) =>
  afterMandate(name, `the path ${JSON.stringify(path)} under /srv/data`, { path }, check, {
    given: erasing,
    ...more,
  })
const elsewhere = (name, url, check, more = {}) =>
  afterMandate(name, `the URL ${JSON.stringify(url)} under https://example.org/v1`, { url }, check, {
    given: fetching,
    ...more,
  })

const notTheCheckAlone = 'several checks read the text, and each refuses this one'

/** Ann denies Mallory for good; before that she was asked about another call of hers. */
async function deny(client) {
  const earlier = await client.ask('buy', bill(1, { to: 'mallory' }))
  const question = await client.ask('buy', bill(2, { to: 'mallory' }))
  await client.answer(question, { approved: false, mandate: 'never' })
  return earlier
}

export const mandates = [
  wrongChoice(
    'a mandate that was not offered',
    'an approval that chooses an id of its own',
    choose('everything'),
    'mandate was offered',
    {},
  ),
  wrongChoice(
    'a mandate written by the client',
    'an approval with a whole mandate in place of an id',
    choose({ id: 'acme', label: 'All', where: [] }),
    'mandate by its id',
    {},
  ),
  wrongChoice(
    'a denial chosen with an approval',
    'an approval that chooses the standing denial',
    choose('never'),
    'mandate for its decision',
    {},
  ),
  wrongChoice(
    'a mandate beside a scope',
    'an approval for the session that also chooses a mandate',
    { ...choose('acme'), scope: 'session' },
    'mandate for its decision',
    {},
  ),
  {
    name: 'a mandate for a call that offers none',
    sends: "the id of another tool's mandate with an approval of send",
    code: 'approval-malformed',
    check: 'mandate was offered',
    stands: 'the request offers none',
    play: async (client) => client.answer(await client.ask('send', bill()), choose('acme')),
  },
  {
    name: 'a choice in the history',
    sends: 'a decision in the history that chooses an id of its own',
    code: 'approval-malformed',
    check: 'mandate was offered',
    play: async (client) => {
      const { history } = await client.ask('buy', bill())
      const decided = alter(history, (call) => {
        const own = call.metadata.countersign
        own.approval = {
          ...own.approval,
          id: JSON.parse(Buffer.from(own.token.split('.')[2], 'base64url')).ap,
          needsApproval: true,
          ...choose('all'),
        }
        own.state = 'approval-responded'
      })
      await client.run(decided)
    },
  },
  {
    name: 'offers widened in the history',
    sends: 'a genuine choice, with a history in which its mandate covers everything, then a call to Mallory',
    code: 'asked again',
    executions: 1,
    check: 'constraints',
    play: async (client, { saw }) => {
      const question = await client.ask('buy', bill())
      const history = alter(question.history, (call) => {
        call.metadata.countersign.approval = { mandates: [{ id: 'acme', label: 'All', where: [] }] }
      })
      await client.answer(question, choose('acme'), { history })
      const { asked } = await client.ask('buy', bill(1, { to: 'mallory' }))
      if (asked !== undefined) saw('asked again')
    },
  },
  {
    name: 'a genuine choice, sent again after the mandate was revoked',
    sends: 'the answer that gave it, once more, and the call again',
    code: 'asked again',
    executions: 1,
    check: 'settled once',
    stands: 'a mandate is stored once for its approval, and a revocation wins over it',
    play: async (client, { saw }) => {
      const question = await grant(client)
      await client.send('/grants?threadId=thread', { method: 'DELETE', user: 'ann' })
      await client.run(question.history, { user: 'ann', resume: [entry(question.asked, choose('acme'))] })
      const { asked } = await client.ask('buy', bill())
      if (asked !== undefined) saw('asked again')
    },
  },
  afterMandate(
    "a mandate of ann's, used by bob",
    'a call that it covers, of another person in the same thread',
    bill(),
    'mandate owner',
    {
      options: { user: 'bob' },
    },
  ),
  afterMandate(
    'a mandate used in another thread',
    'a call that it covers, in another thread',
    bill(),
    'mandate thread',
    {
      options: { threadId: 'other' },
    },
  ),
  afterMandate(
    'a mandate used for another tool',
    'the same arguments for a tool with the same offers',
    bill(),
    'mandate tool',
    { tool: 'order' },
  ),
  afterMandate(
    'another recipient',
    'recipients that resemble the one of the mandate',
    ['Acme', 'acme ', 'acme\u200b', 'аcme', 'acme\u0000'].map((to) => bill(1, { to })),
    'constraints',
  ),
  afterMandate(
    'a recipient of another type',
    'the recipient in a list and in objects',
    [['acme'], { is: 'acme' }, { toString: 'acme' }, null, true].map((to) => bill(1, { to })),
    'constraints',
  ),
  afterMandate(
    'members that objects inherit',
    'a path through constructor',
    [{ for: {} }, { for: 'x' }, {}],
    'own members',
    {
      given: { mandate: 'named' },
      stands: 'no text or object has such members of its own',
    },
  ),
  {
    name: 'a duplicate key beside the mandate',
    sends: 'arguments that name two recipients',
    code: 'error',
    executions: 1,
    check: 'duplicate keys',
    play: async (client) => {
      await grant(client)
      await client.ask('buy', '{"to":"mallory","to":"acme","amount":1,"currency":"EUR"}')
    },
  },
  {
    name: 'a key __proto__ beside the mandate',
    sends: 'arguments whose recipient is that of their prototype',
    code: 'error',
    executions: 1,
    check: 'proto key',
    stands: 'own members only are compared',
    play: async (client) => {
      await grant(client)
      await client.ask('buy', '{"__proto__":{"to":"acme"},"amount":1,"currency":"EUR"}')
    },
  },
  afterMandate(
    'amounts that are no numbers',
    'text, lists and objects as amounts',
    ['1', '', null, [1], { valueOf: 1 }, true].map((amount) => bill(amount)),
    'amounts',
  ),
  afterMandate(
    'negative amounts',
    'an amount below zero, which would fill up the budget',
    [-1, -1000].map((amount) => bill(amount)),
    'amounts',
  ),
  afterMandate(
    'huge and tiny amounts',
    'amounts that are not added up exactly',
    [9007199254740991, 1e-7, 1e-300].map((amount) => bill(amount)),
    'amounts',
    {
      behind: ['rest of the budget'],
    },
  ),
  afterMandate(
    'other units',
    'units that are not that of the budget',
    ['USD', 'eur', 'EUR ', 'ЕUR', 'ＥＵＲ', '', null, ['EUR']].map((currency) => bill(1, { currency })),
    'units',
  ),
  afterMandate('no unit', 'an amount without a unit', { to: 'acme', amount: 1 }, 'units'),
  afterMandate(
    'more than the rest',
    'an amount above the rest of the budget',
    [50.000001, 51, 100].map((amount) => bill(amount)),
    'rest of the budget',
  ),
  {
    name: 'more than the rest, at once',
    sends: 'eight calls at the same time, of which the budget covers one',
    code: 'asked again',
    executions: 2,
    check: 'rest of the budget',
    play: async (client, { saw }) => {
      await grant(client)
      const answers = await Promise.all(Array.from({ length: 8 }, () => client.ask('buy', bill(40))))
      if (answers.filter(({ asked }) => asked !== undefined).length === 7) saw('asked again')
    },
  },
  {
    name: 'more uses than there are, at once',
    sends: 'eight calls at the same time, of which the uses cover three',
    code: 'asked again',
    executions: 4,
    check: 'uses and expiry',
    play: async (client, { saw }) => {
      await grant(client)
      const answers = await Promise.all(Array.from({ length: 8 }, () => client.ask('buy', bill(0))))
      if (answers.filter(({ asked }) => asked !== undefined).length === 5) saw('asked again')
    },
  },
  {
    name: 'ids of a run and a call, used again',
    sends: 'calls under the same ids, which would count once, until the budget is spent',
    code: 'asked again',
    executions: 3,
    check: 'a new key for each use',
    play: async (client, { saw }) => {
      await grant(client)
      const again = (amount) =>
        client.run([say({ calls: [{ name: 'buy', arguments: bill(amount), id: 'same' }] })], {
          user: 'ann',
          runId: 'same',
        })
      await again(30)
      await again(20)
      const { events } = await again(20)
      if (events.some(({ name }) => name === 'approval-requested')) saw('asked again')
    },
  },
  {
    name: 'a mandate that has expired',
    sends: 'a call that it covers, eight days later',
    code: 'asked again',
    executions: 1,
    check: 'uses and expiry',
    play: async (client, { saw, later }) => {
      await grant(client)
      later(8 * 24 * 60 * 60 * 1000)
      const { asked } = await client.ask('buy', bill(1))
      if (asked !== undefined) saw('asked again')
    },
  },
  {
    name: 'a mandate that was revoked',
    sends: 'a call that it covers, after its user has revoked it',
    code: 'asked again',
    executions: 1,
    check: 'revocation',
    play: async (client, { saw }) => {
      await grant(client)
      await client.send('/grants?threadId=thread', { method: 'DELETE', user: 'ann' })
      const { asked } = await client.ask('buy', bill(1))
      if (asked !== undefined) saw('asked again')
    },
  },
  {
    name: "ann's mandates, read by bob",
    sends: 'GET of the grants of a thread with ann as a parameter',
    code: 'nothing found',
    executions: 1,
    check: 'grants of the person',
    play: async (client, { breach, saw }) => {
      await grant(client)
      const { body } = await client.send('/grants?threadId=thread&subject=ann', {
        method: 'GET',
        user: 'bob',
      })
      if (body.grants.length > 0) breach('bob reads them')
      else saw('nothing found')
    },
  },
  {
    name: 'an approval edited to what its mandate does not cover',
    sends: 'a choice with an edited recipient, then another call to that one',
    code: 'asked again',
    executions: 1,
    check: 'constraints',
    play: async (client, { saw }) => {
      await client.answer(await client.ask('buy', bill()), {
        ...choose('acme'),
        editedArgs: bill(1, { to: 'globex' }),
      })
      const { asked } = await client.ask('buy', bill(1, { to: 'globex' }))
      if (asked !== undefined) saw('asked again')
    },
  },
  afterMandate(
    'a model that names a mandate',
    'arguments that name one',
    [
      { to: 'mallory', mandate: 'acme' },
      { to: 'mallory', countersign: { mandate: 'acme' } },
    ].map((more) => bill(1, more)),
    'constraints',
  ),
  {
    name: 'round a standing denial, with an approval',
    sends: 'the approval of a request from before the denial',
    code: 'denied',
    check: 'denial at the start',
    play: async (client) => client.answer(await deny(client), yes),
  },
  {
    name: 'round a standing denial, with a grant',
    sends: 'a call that is denied, after an approval for the session',
    code: 'denied',
    executions: 1,
    check: 'denials first',
    play: async (client) => {
      await deny(client)
      await client.answer(await client.ask('buy', bill()), { ...yes, scope: 'session' })
      await client.ask('buy', bill(1, { to: 'mallory' }))
    },
  },
  {
    name: "ann's standing denial, ended by bob",
    sends: 'DELETE of all grants by bob, with ann as a parameter, then the call',
    code: 'denied',
    check: 'grants of the person',
    stands: 'the call is then asked about',
    play: async (client) => {
      await deny(client)
      await client.send('/grants?threadId=thread&subject=ann', { method: 'DELETE', user: 'bob' })
      await client.ask('buy', bill(1, { to: 'mallory' }))
    },
  },
  outside('a path that leads out', '/srv/data/../etc/passwd', 'plain names'),
  outside('a path that leads out through a link', '/srv/data/link/../../a', 'plain names'),
  outside('a path with dots that some drop', '/srv/data/.. /etc', 'plain names'),
  outside('a path with escaped dots', '/srv/data/%2e%2e/etc', 'escapes'),
  outside('a path with backslashes', '/srv/data/..\\..\\etc', 'one way to read', { behind: ['plain names'] }),
  outside('a path with an end of text', '/srv/data/a\u0000/../../etc', 'one way to read', {
    behind: ['plain names'],
  }),
  outside('a path with full-width dots', '/srv/data/\uff0e\uff0e/etc', 'look-alikes'),
  outside('the folder itself', '/srv/data', 'strictly below'),
  outside('a folder whose name begins alike', '/srv/database/a', 'constraints'),
  elsewhere('a URL with a user', 'https://example.org@evil.example/v1/a', 'same root', {
    stands: notTheCheckAlone,
  }),
  elsewhere('a URL of another host', 'https://example.org.evil.example/v1/a', 'same root', {
    stands: notTheCheckAlone,
  }),
  elsewhere('a URL that leads out', 'https://example.org/v1/../admin', 'plain names'),
  elsewhere('a URL with escapes that lead out', 'https://example.org/v1/%2e%2e/admin', 'escapes of URLs', {
    behind: ['plain names'],
  }),
  elsewhere(
    'a URL with escapes that lead out when resolved twice',
    'https://example.org/v1/%252e%252e/admin',
    'escapes of URLs',
  ),
  elsewhere(
    'a URL with a parameter that some servers drop',
    'https://example.org/v1/..;/admin',
    'plain names',
  ),
]
