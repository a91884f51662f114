// Calls that are settled: what a history says of them afterwards changes nothing.
import { bare, entry, fold, no, result, say, yes } from '../client.mjs'

const args = { to: 'team', n: 1 }

/** An answered question, with the history that its client then has. */
async function settle(client, payload) {
  const question = await client.ask('send', args)
  const { events } = await client.answer(question, payload)
  return { ...question, history: fold(question.history, events) }
}

/** The history with another text in the place of each result, with and without what the server put on its calls. */
function rewritten(history, content) {
  const told = history.map((one) => (one.role === 'tool' ? result(one.toolCallId, content) : one))
  return [told, bare(told)]
}

/** Goes on with these histories: the model has to be told what the ledger has recorded, and nothing else. */
async function expectRecorded({ run }, { record, breach, saw }, histories, recorded) {
  for (const history of histories) {
    await run([...history, say('go on')])
    if (record.models.at(-1).includes(recorded)) saw('as recorded')
    else breach(`the model was told otherwise: ${record.models.at(-1)}`)
  }
}

export const settled = [
  {
    name: 'F18 a denied call, done by what the history says of it',
    sends: 'a no, and then a history in which the call has succeeded',
    code: 'as recorded',
    check: 'results of settled calls',
    play: async (client, world) => {
      const { history } = await settle(client, { ...no, reason: 'Too many.' })
      await expectRecorded(client, world, rewritten(history, { done: 'all of it' }), 'Too many.')
      if (world.record.models.at(-1).includes('all of it')) world.breach('the model believes that it ran')
    },
  },
  {
    name: 'F18 a call that ran, not done by what the history says of it',
    sends: 'a yes, and then a history in which the call was not executed, so that the model makes it again',
    code: 'as recorded',
    executions: 1,
    check: 'results of settled calls',
    play: async (client, world) => {
      const { history } = await settle(client, yes)
      const histories = rewritten(history, { type: 'error', reason: 'not executed' })
      await expectRecorded(client, world, histories, '{"done":"send"}')
    },
  },
  {
    name: 'F18 a call that ran, left without its result',
    sends: 'a yes, and then a history without the result and without what the server put on the call',
    code: 'as recorded',
    executions: 1,
    check: 'results of settled calls',
    play: async (client, world) => {
      const { history } = await settle(client, yes)
      const open = bare(history.filter(({ role }) => role !== 'tool'))
      await expectRecorded(client, world, [open], '{"done":"send"}')
    },
  },
  {
    name: 'F60 a late or repeated answer that has the model speak again',
    sends: 'the same yes again, and a no, with the whole conversation as it was stored',
    code: 'no turn of the model',
    executions: 1,
    check: 'a turn that is due',
    play: async (client, { record, breach, saw }) => {
      const { asked, history } = await settle(client, yes)
      const turns = record.models.length
      for (const payload of [yes, no]) await client.run(history, { resume: [entry(asked, payload)] })
      if (record.models.length === turns) saw('no turn of the model')
      else breach('the model was called')
    },
  },
]
