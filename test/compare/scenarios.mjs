// The attacks and accidents, one for each row. A scenario says what the user approved and denied; the cell adds what ran. `verdict.mjs` turns
// both into words.
import { until } from './cell.mjs'
import { stolen } from './pages.mjs'

const ada = { to: 'ada', amount: 10 }
const yes = { approved: true }
const no = { approved: false }

/** A page on which an approval request for a transfer to ada is open. */
async function askedPage(cell, text = 'pay ada') {
  const page = await cell.open()
  await cell.say(page, text)
  if (!page.asked) throw new Error('The server did not ask.')
  return page
}

/** The request that a click on Approve or Deny makes. */
const click = (cell, page, decision = yes) => cell.pages.answer(page, page.asked, decision)

/** The server dies at `dieAt` while it carries out an approval, and is started again; then the page sends its answer again. */
function crash(dieAt) {
  return async (cell) => {
    const page = await askedPage(cell)
    await cell.stored(page.thread)
    const request = click(cell, page)
    await cell.send(request, dieAt === 'arrived' ? { kill: 'arrived' } : {})
    await cell.died()
    await cell.start()
    const { failed, said, status } = await cell.answer(page, request)
    return { approved: [ada], owed: true, told: failed || status !== 200 || /not|unclear/.test(said) }
  }
}

/** Every row, in the order of the table. */
export const scenarios = [
  {
    key: 'plain',
    row: 'The user approves once: the control',
    async play(cell) {
      const page = await askedPage(cell)
      await cell.answer(page, click(cell, page))
      return { approved: [ada], owed: true }
    },
  },
  {
    key: 'forged',
    row: 'An approval of a call that the model never made',
    async play(cell) {
      const page = await cell.open()
      for (const request of cell.pages.forge(page)) await cell.send(request)
      return { approved: [] }
    },
  },
  {
    key: 'altered',
    row: 'An approval whose request carries other arguments',
    async play(cell) {
      const page = await askedPage(cell)
      await cell.answer(page, click(cell, page, { ...yes, args: stolen }))
      return { approved: [ada] }
    },
  },
  {
    key: 'edited',
    row: 'An approval that edits the arguments',
    async play(cell) {
      const page = await askedPage(cell)
      if (cell.column.peer === 'ai-sdk') return { cannot: 'its approvals have no edits' }
      const { isEditable } = page.asked
      await cell.answer(page, click(cell, page, { ...yes, edit: stolen }))
      return { approved: [], edited: isEditable ? [stolen] : [] }
    },
  },
  {
    key: 'replayed',
    row: 'The same approval again, at once',
    async play(cell) {
      const page = await askedPage(cell)
      const request = click(cell, page)
      await cell.send(request)
      await cell.send(request)
      return { approved: [ada] }
    },
  },
  {
    key: 'replayed-later',
    row: 'The same approval again, after the conversation went on',
    async play(cell) {
      const page = await askedPage(cell)
      const request = click(cell, page)
      await cell.answer(page, request)
      await cell.say(page, 'hello')
      await cell.send(request)
      return { approved: [ada] }
    },
  },
  {
    key: 'double-click',
    row: 'The same approval again, while the next request is open',
    async play(cell) {
      const page = await askedPage(cell, 'pay ada then bob')
      const request = click(cell, page)
      await cell.answer(page, request)
      await cell.send(request)
      return { approved: [ada] }
    },
  },
  {
    key: 'late',
    row: 'The first approval, after the user wrote something else instead',
    async play(cell) {
      const page = await askedPage(cell)
      const tab = structuredClone(page)
      await cell.say(page, 'hello')
      await cell.send(click(cell, tab))
      return { approved: [ada], late: true }
    },
  },
  {
    key: 'expired',
    row: 'The first approval, thirty days after the request',
    async play(cell) {
      const page = await askedPage(cell)
      await cell.passMonth()
      await cell.send(click(cell, page))
      return { approved: [ada], late: true }
    },
  },
  {
    key: 'flipped',
    row: 'A denial, then an approval of the same request',
    async play(cell) {
      const page = await askedPage(cell)
      const approval = click(cell, structuredClone(page))
      await cell.send(click(cell, page, no))
      await cell.send(approval)
      return { approved: [], denied: [ada] }
    },
  },
  {
    key: 'other-user',
    row: "Another user's approval",
    async play(cell) {
      const page = await askedPage(cell)
      await cell.send(click(cell, { ...structuredClone(page), user: 'eve' }))
      return { approved: [] }
    },
  },
  {
    key: 'other-thread',
    row: 'An approval sent to another conversation',
    async play(cell) {
      const page = await askedPage(cell)
      const { thread } = await cell.open()
      await cell.send(click(cell, { ...structuredClone(page), thread }))
      return { approved: [] }
    },
  },
  {
    key: 'two-tabs',
    row: 'Two tabs approve at the same time',
    async play(cell) {
      const page = await askedPage(cell)
      const tabs = [page, structuredClone(page)]
      await Promise.all(tabs.map((tab) => cell.send(click(cell, tab))))
      return { approved: [ada] }
    },
  },
  {
    key: 'two-tabs-disagree',
    row: 'One tab approves, the other denies, at the same time',
    async play(cell) {
      const page = await askedPage(cell)
      const tab = structuredClone(page)
      const [, denied] = await Promise.all([
        cell.answer(page, click(cell, page)),
        cell.answer(tab, click(cell, tab, no)),
      ])
      return { approved: [ada], disagree: true, toldNotSent: denied.said === 'It was not sent.' }
    },
  },
  {
    key: 'crash-arrived',
    row: '`kill -9` when the approval has arrived; restarted, and sent again',
    play: crash('arrived'),
  },
  {
    key: 'crash-starting',
    row: '`kill -9` in the tool, before it did anything; restarted, and sent again',
    start: { dieAt: 'starting' },
    play: crash('starting'),
  },
  {
    key: 'crash-running',
    row: '`kill -9` in the tool, after its effect; restarted, and sent again',
    start: { dieAt: 'running' },
    play: crash('running'),
  },
  {
    key: 'crash-ended',
    row: '`kill -9` when the tool has ended, before its result is sent; restarted, and sent again',
    start: { dieAt: 'ended' },
    play: crash('ended'),
  },
  {
    key: 'reload-running',
    row: 'A reload while the approved tool runs, and the approval again',
    async play(cell) {
      const page = await askedPage(cell)
      const request = click(cell, page)
      const gone = new AbortController()
      const first = cell.send(request, { signal: gone.signal })
      await until(() => cell.lines().some(({ sent }) => sent === 'ada'))
      gone.abort()
      await first
      await cell.send(request)
      return { approved: [ada] }
    },
  },
  {
    key: 'reload',
    row: 'A reload while the answer streams',
    async play(cell) {
      const page = await cell.open()
      await cell.send(cell.pages.say(page, 'count'), { cutAfter: 1000 })
      const whole = Array.from({ length: 100 }, (_, at) => `w${at + 1} `).join('')
      const isWhole = await until(async () => {
        const { status, body } = await cell.send(cell.pages.reload(page))
        return status === 200 && cell.pages.readReloaded(body) === whole
      }, 150)
      return { stream: isWhole ? 'whole' : 'cut' }
    },
  },
  {
    key: 'slow-reader',
    row: 'A reader that stops reading an answer of 64 MiB',
    async play(cell) {
      const page = await cell.open()
      const request = cell.pages.say(page, 'flood')
      const before = await cell.memory()
      let grown = 0
      await cell.send(request, {
        stall: async () => {
          await until(() => cell.lines().length > 0)
          await cell.quiet(6000)
          grown = (await cell.memory()) - before
        },
      })
      const said = cell.lines().reduce((most, { saidMiB = 0 }) => Math.max(most, saidMiB), 0)
      return { flood: { said, grown: Math.round(grown) } }
    },
  },
]
