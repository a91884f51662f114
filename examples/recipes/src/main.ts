import { setTimeout as delay } from 'node:timers/promises'
import { answerQueue, createAgent, scriptedModel } from '@countersign/server'
import { converse } from './approval-loop.js'
import { batch } from './batch.js'
import { liveConversation } from './live-verdicts.js'
import { post } from './post.js'
import { calls, inputOf, says } from './script.js'
import { deleteFile, readFile, searchFiles } from './tools.js'
import { verdictMapRoute } from './verdict-map.js'

const print = (value: unknown) => console.log(JSON.stringify(value))
const office = () =>
  new Map([
    ['draft-1.md', 'one'],
    ['draft-2.md', 'two'],
    ['report.md', 'the report'],
  ])

/** The recipes that can be run; each prints what happens. */
const recipes: Readonly<Record<string, () => Promise<void>>> = {
  async 'approval-loop'() {
    const files = office()
    const model = scriptedModel([calls(['c1', 'delete_file', { path: 'draft-1.md' }]), says('Done.')])
    const agent = createAgent({ model, tools: [deleteFile(files)] })
    const history = await converse(agent, 'Delete the first draft.', (call) => {
      print({ asked: call.name, arguments: call.arguments, answered: 'yes' })
      return { approved: true }
    })
    history.forEach(print)
  },
  async batch() {
    const history = await batch(office())
    history.forEach(print)
  },
  async 'verdict-map'() {
    const files = office()
    const model = scriptedModel([calls(['c1', 'delete_file', { path: 'draft-1.md' }]), says('Done.')])
    const route = verdictMapRoute(createAgent({ model, tools: [deleteFile(files)] }))
    const asked = await post(
      route,
      inputOf('thread', [{ id: 'u1', role: 'user', content: 'Delete the first draft.' }]),
    )
    asked.forEach(print)
    const forwardedProps = { verdicts: { c1: { decision: 'approve' } } }
    const answered = await post(route, { ...inputOf('thread', [...asked]), forwardedProps })
    answered.forEach(print)
  },
  async 'live-verdicts'() {
    const files = office()
    const answers = answerQueue()
    const decide = async (id: string, approved: boolean, ms: number) => {
      await delay(ms)
      await answers.put({ interruptId: id, status: 'resolved', payload: { approved } })
    }
    const model = scriptedModel([
      calls(['c1', 'search_files', { word: 'o' }], ['c2', 'delete_file', { path: 'draft-1.md' }]),
      calls(['c3', 'delete_file', { path: 'report.md' }]),
      says('One draft is deleted.'),
    ])
    const conversation = liveConversation('Tidy up, please.', {
      model,
      tools: [searchFiles(files), readFile(files), deleteFile(files)],
      needsApproval: ({ toolName }) => toolName === 'delete_file',
      answers,
      show: print,
    })
    await Promise.all([conversation, decide('c2', true, 100), decide('c3', false, 200)])
    answers.close()
  },
}

const [wanted] = process.argv.slice(2)
if (wanted !== undefined && !Object.hasOwn(recipes, wanted)) {
  console.error(`There is no recipe ${wanted} to run. Choose one of: ${Object.keys(recipes).join(', ')}.`)
  process.exit(1)
}
for (const [name, run] of Object.entries(recipes)) {
  if (wanted !== undefined && wanted !== name) continue
  console.log(`\n# ${name}`)
  await run()
}
