// The same answer more than once: in a row, at the same time, after a restart, on another process.
import { entry, no, results, yes } from '../client.mjs'
import { startProcess } from '../process.mjs'

const args = { to: 'team', n: 1 }
const fifty = (make) => Promise.all(Array.from({ length: 50 }, (_, index) => make(index)))

/** A repeat gets what the first one got. */
function expectSame(world, first, second) {
  const told = ({ events }) => JSON.stringify(results(events).map(({ content }) => content))
  if (told(first) === told(second) && results(second.events).length > 0) world.saw('stored outcome')
}

/** A ledger that answers nobody what it knows of a question until fifty have asked: so that they all come to the claim at once. */
async function gathering({ newLedger }) {
  const ledger = await newLedger()
  let open = () => {}
  const gathered = new Promise((resolve) => {
    open = resolve
  })
  let waiting = 0
  const lookup = async (ref) => {
    const known = await ledger.lookup(ref)
    if (++waiting >= 50) open()
    await gathered
    return known
  }
  return { ledger: { ...ledger, lookup } }
}

/** Answers a question fifty times at once, each time as `payload(index)` says. */
const race =
  (tool, payload) =>
  async ({ ask, answer }, world) => {
    const question = await ask(tool, args)
    const [first, ...others] = await fifty((index) => answer(question, payload(index)))
    for (const other of others) expectSame(world, first, other)
  }

export const replay = [
  {
    name: 'the same yes again',
    sends: 'one answered request twice',
    code: 'stored outcome',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    play: async ({ ask, answer }, world) => {
      const question = await ask('send', args)
      expectSame(world, await answer(question, yes), await answer(question, yes))
    },
  },
  {
    name: 'the same yes again with another reason',
    sends: 'one yes twice, the second with a reason',
    code: 'stored outcome',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    play: async ({ ask, answer }, world) => {
      const question = await ask('send', args)
      expectSame(world, await answer(question, yes), await answer(question, { ...yes, reason: 'again' }))
    },
  },
  {
    name: 'the same yes again with another edit',
    sends: 'a yes, and then a yes with edited arguments',
    code: 'approval-conflict',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    play: async ({ ask, answer }) => {
      const question = await ask('free', args)
      await answer(question, yes)
      await answer(question, { ...yes, editedArgs: { to: 'all' } })
    },
  },
  {
    name: 'one yes twice in one request',
    sends: 'two entries with the same answer',
    code: 'stored outcome',
    executions: 1,
    check: 'first verdict',
    stands: 'verdicts are kept by approval, and the ledger allows one',
    play: async ({ ask, answer, run }, world) => {
      const question = await ask('send', args)
      const { asked, history } = question
      const twice = await run(history, { resume: [entry(asked), entry(asked)] })
      expectSame(world, twice, await answer(question, yes))
    },
  },
  {
    name: 'fifty times the same yes at once',
    sends: 'fifty equal requests at the same time',
    code: 'stored outcome',
    executions: 1,
    check: 'settled once',
    server: gathering,
    play: race('slow', () => yes),
  },
  {
    name: 'fifty contradicting answers at once',
    sends: 'twenty-five times yes and twenty-five times no at the same time',
    code: 'approval-conflict',
    executions: 1,
    check: 'settled once',
    server: gathering,
    play: race('slow', (index) => (index % 2 === 0 ? yes : no)),
  },
  {
    name: 'fifty answers at once, a no first',
    sends: 'a no and forty-nine times yes at the same time',
    code: 'approval-conflict',
    executions: 1,
    check: 'settled once',
    server: gathering,
    play: race('slow', (index) => (index === 0 ? no : yes)),
  },
  {
    name: 'fifty different edits at once',
    sends: 'fifty yeses with different arguments at the same time',
    code: 'approval-conflict',
    executions: 1,
    check: 'settled once',
    server: gathering,
    play: race('free', (index) => ({ ...yes, editedArgs: { n: index } })),
  },
  {
    name: 'fifty yeses after a no, at once',
    sends: 'a no, and once it is settled fifty yeses at the same time',
    code: 'approval-conflict',
    executions: 0,
    check: 'settled once',
    behind: ['taken up before'],
    play: async ({ ask, answer }) => {
      const question = await ask('slow', args)
      await answer(question, no)
      await fifty(() => answer(question, yes))
    },
  },
  {
    name: 'replay to a new agent over a ledger that has forgotten',
    sends: 'an answered request, to a server with the same secret and ledger id after a restart',
    code: 'approval-not-found',
    executions: 1,
    check: 'issued',
    server: async ({ newLedger }) => ({ ledger: await newLedger({ id: 'production' }) }),
    play: async ({ ask, answer }, { open, newLedger }) => {
      const question = await ask('send', args)
      await answer(question, yes)
      const after = await open({ ledger: await newLedger({ id: 'production' }) })
      await after.answer(question, yes)
    },
  },
  {
    name: 'replay to a new agent over the same ledger',
    sends: 'an answered request, to a second server that shares the ledger',
    code: 'stored outcome',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    play: async (_, world) => {
      const ledger = await world.newLedger()
      const [one, other] = [await world.open({ ledger }), await world.open({ ledger })]
      const question = await one.ask('send', args)
      expectSame(world, await one.answer(question, yes), await other.answer(question, yes))
    },
  },
  {
    name: 'a call whose runner was lost, answered again',
    sends: 'the same yes after the lease of the first has lapsed',
    code: 'interrupted',
    executions: 1,
    check: 'taken up before',
    behind: ['settled once'],
    play: async (_, { open, newLedger }) => {
      const ledger = await newLedger()
      const deaf = {
        ...ledger,
        renew: async () => ({ status: 'lost' }),
        complete: () => new Promise(() => {}),
      }
      const [one, other] = [await open({ ledger: deaf, lease: 50 }), await open({ ledger })]
      const question = await one.ask('slow', args)
      void one.answer(question, yes)
      await new Promise((resolve) => setTimeout(resolve, 200))
      await other.answer(question, yes)
    },
  },
  {
    name: 'F15 a call that starts once its lease is lost',
    sends: 'a yes to a server that then stands still for longer than its lease, and the same yes meanwhile',
    code: 'interrupted',
    check: 'lease at the start',
    server: (world) => ({
      onAudit: async ({ event }) => {
        const { meanwhile } = world
        if (event !== 'started' || meanwhile === undefined) return
        world.meanwhile = undefined
        await meanwhile()
      },
    }),
    play: async ({ ask, answer }, world) => {
      const question = await ask('send', args)
      world.meanwhile = async () => {
        world.later(31_000)
        await answer(question, yes)
      }
      await answer(question, yes)
    },
  },
]

/** Attacks on several processes over one ledger. */
export const processes = [
  {
    name: 'replay to a process that was started anew',
    sends: 'an answered request, after the process was killed and started again over its file',
    code: 'stored outcome',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    play: async (_, world) => {
      const first = await startProcess(world)
      const question = await first.ask('send', args)
      const before = await first.answer(question, yes)
      await first.kill()
      const second = await startProcess(world)
      expectSame(world, before, await second.answer(question, yes))
    },
  },
  {
    name: 'a yes flipped after a restart',
    sends: 'a no; and a yes after the process was killed and started again over its file',
    code: 'approval-conflict',
    check: 'settled once',
    behind: ['taken up before'],
    play: async (_, world) => {
      const first = await startProcess(world)
      const question = await first.ask('send', args)
      await first.answer(question, no)
      await first.kill()
      const second = await startProcess(world)
      await second.answer(question, yes)
    },
  },
  {
    name: 'fifty times the same yes, on two processes at once',
    sends: 'fifty equal requests, alternating between two processes with one file',
    code: 'stored outcome',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    chance: true,
    play: async (_, world) => {
      const both = await Promise.all([startProcess(world), startProcess(world)])
      const question = await both[0].ask('slow', args)
      const [first, ...others] = await fifty((index) => both[index % 2].answer(question, yes))
      for (const other of others) expectSame(world, first, other)
    },
  },
  {
    name: 'fifty contradicting answers, on two processes at once',
    sends: 'yes to one process and no to the other, twenty-five times at the same time',
    code: 'approval-conflict',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    chance: true,
    play: async (_, world) => {
      const both = await Promise.all([startProcess(world), startProcess(world)])
      const question = await both[0].ask('slow', args)
      await fifty((index) => both[index % 2].answer(question, index % 2 === 0 ? yes : no))
    },
  },
  {
    name: 'a yes killed in the middle, answered again',
    sends: 'the same yes to a new process after the first was killed while its tool ran',
    code: 'interrupted',
    executions: 1,
    check: 'settled once',
    behind: ['taken up before'],
    play: async (_, world) => {
      const first = await startProcess(world)
      const runs = first.ran().then(() => true)
      const settles = (question) => first.answer(question, yes).then(() => false)
      // a process that stood still for longer than its lease does not start the call: then it is asked for anew
      let question
      do question = await first.ask('hanging', args)
      while (!(await Promise.race([runs, settles(question)])))
      await first.kill()
      const second = await startProcess(world)
      // without its check the call runs again, and hangs again
      await Promise.race([second.answer({ ...question }, yes), second.ran()])
    },
  },
]
