// Answers into runs that are open, and how many runs and answers one person may have open.
import { setTimeout as pause } from 'node:timers/promises'
import { entry, input, no, requests, say, yes } from '../client.mjs'

const args = { to: 'team', n: 1 }

const session = { ...yes, scope: 'session' }

/**
 * A live run, of ann or another `user`, that makes these calls. `asked` and `question` resolve with what it wants to know, or with nothing at
 * its end.
 */
function openLive({ run }, calls, { user = 'ann', ...options } = {}) {
  const runId = `live_${Math.random()}`
  const seen = []
  const watchers = new Set()
  const onEvent = (event) => {
    seen.push(event)
    for (const watch of watchers) watch()
  }
  const ended = run([say({ calls })], { user, path: '/live', runId, onEvent, ...options })
  const first = (find) =>
    new Promise((resolve) => {
      const watch = () => {
        const found = find(seen)
        if (found !== undefined) resolve(found)
      }
      watchers.add(watch)
      watch()
      void ended.then(() => resolve(undefined))
    })
  return {
    user,
    runId,
    ended,
    asked: () => first((events) => requests(events)[0]),
    question: () => first((events) => events.find(({ name }) => name === 'interrupt-requested')?.value),
  }
}

/** Posts answers into a live run. */
const deliver = ({ send }, { user, runId }, resume) =>
  send('/answer', { user, body: { threadId: 'thread', runId, resume } })

const resolved = (interruptId, payload = yes) => ({ interruptId, status: 'resolved', payload })

/** What a caller may hold, made small. */
const few = (name, perOwner) => ({ limits: { [name]: { perOwner } } })

export const live = [
  {
    name: 'F13 a live yes without the second factor that the run was opened with',
    sends: 'a run of ann with the second factor, and a yes of ann into it without',
    code: 'approval-not-yours',
    check: 'context of the answer',
    server: {
      confirm: ({ toolName }, { context }) => toolName !== 'wipe' || context.secondFactor === true,
    },
    play: async (client) => {
      const headers = { 'x-factor': 'given' }
      const live = openLive(client, [{ name: 'wipe', arguments: args }], { headers })
      await deliver(client, live, [entry(await live.asked())])
      await live.ended
    },
  },
  {
    name: 'F14 a grant that is revoked while its call waits for its turn',
    sends: 'a call behind one that asks something, DELETE of the grant, and the answer to what was asked',
    code: 'asked again',
    executions: 1,
    check: 'grant at the start',
    server: { concurrency: 1 },
    play: async (client, { saw }) => {
      await client.answer(await client.ask('post', { to: 'team' }), session)
      const live = openLive(client, [
        { name: 'survey', arguments: {} },
        { name: 'post', arguments: { to: 'team' } },
      ])
      const question = await live.question()
      await client.send('/grants?threadId=thread', { method: 'DELETE' })
      await deliver(client, live, [resolved(question.id, { which: 'this' })])
      const asked = await live.asked()
      if (asked !== undefined) {
        saw('asked again')
        await deliver(client, live, [entry(asked, no)])
      }
      await live.ended
    },
  },
  {
    name: 'F6 answers to questions that nobody asked',
    sends: 'eight answers to invented questions into an open run, where four may wait',
    code: 'too-many-answers',
    check: 'early answers',
    server: few('earlyAnswers', 4),
    play: async (client, { breach }) => {
      const live = openLive(client, [{ name: 'send', arguments: args }])
      const asked = await live.asked()
      const posts = Array.from({ length: 8 }, (_, index) =>
        deliver(client, live, [resolved(`none_${index}`)]),
      )
      const refused = Promise.any(posts.map(async (post) => (await post).status === 429 || Promise.reject()))
      if (!(await Promise.race([refused, pause(3000, false)]))) breach('all of them were kept')
      await deliver(client, live, [entry(asked, no)])
      await Promise.all([live.ended, ...posts])
    },
  },
  {
    name: 'F6 answers to questions that nobody asked, over a socket',
    sends: 'the same in frames',
    code: 'too-many-answers',
    check: 'early answers',
    server: few('earlyAnswers', 4),
    play: async ({ socket }, { record, breach }) => {
      const peer = socket({ 'x-user': 'ann' })
      await peer.opened
      const given = input([say({ calls: [{ name: 'send', arguments: args }] })])
      const { threadId, runId } = given
      peer.send({ type: 'run', input: given })
      const { events } = await peer.frame(({ events = [] }) => requests(events).length > 0)
      const answer = (id, resume) => peer.send({ type: 'answer', id, threadId, runId, resume })
      for (let index = 0; index < 8; index++) answer(`early_${index}`, [resolved(`none_${index}`)])
      answer('no', [entry(requests(events)[0], no)])
      await peer.frame(({ type }) => type === 'end')
      const refused = peer.frames.filter(({ code }) => code === 'too-many-answers')
      for (const { code } of refused) record.refused(code)
      if (refused.length !== 4) breach(`${8 - refused.length} were kept`)
      peer.close()
    },
  },
  {
    name: 'F6 more runs than one person may have open',
    sends: 'two runs that wait for an answer, and a third, where two may be open',
    code: 'too-many-runs',
    check: 'runs of one person',
    server: few('runs', 2),
    play: async (client, { breach }) => {
      // ann may have a run that a lost runner has left open
      const user = 'mia'
      const calls = [{ name: 'send', arguments: args }]
      const open = [1, 2].map(() => openLive(client, calls, { user }))
      const asked = await Promise.all(open.map((live) => live.asked()))
      const { status } = await client.run([say('go')], { user })
      if (status === 200) breach('the third was served')
      for (const [index, live] of open.entries()) await deliver(client, live, [entry(asked[index], no)])
      await Promise.all(open.map(({ ended }) => ended))
    },
  },
  {
    name: 'F16 the same run, posted again while it is open',
    sends: 'one request twice, with a tool that needs nobody and one that waits for a yes',
    code: 'run-open',
    check: 'run open',
    behind: ['run open at its start'],
    play: async (client, { record, breach }) => {
      const calls = ['note', 'send'].map((name) => ({ name, arguments: args }))
      const live = openLive(client, calls)
      const asked = await live.asked()
      await client.run([say({ calls })], { runId: live.runId })
      if (record.notes.length !== 1) breach(`what needs nobody's yes ran ${record.notes.length} times`)
      await deliver(client, live, [entry(asked, no)])
      await live.ended
    },
  },
]
