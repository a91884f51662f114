import { nextStep } from '@countersign/client'
import { scriptedModel } from '@countersign/server'
import { expect, test } from 'vitest'
import { memoryPersistence } from './fake-browser.js'
import { openPage, startServerWith, stop, words } from './threads-server.js'
import { approve, asked, call, calls, finish, gate, sign, start, until } from './tools-in-pages.js'

// Several pages of one conversation that the server keeps, which are reloaded, and whose answers and messages come late.

test.each([
  ['is reloaded', true],
  ['has a second tab', false],
])(
  'P a page that follows the run of another browser, and %s, does not take that run for its own: its client tool runs once',
  async (_, isReloaded) => {
    const { open, opened } = gate()
    const { ran, page } = start(
      Promise.resolve(),
      async function* () {
        yield words('Hm.')
        await opened
        yield calls('free', 'a')
        yield finish
      },
      () => [words('Done.'), stop],
    )
    const local = memoryPersistence()
    const [one, before] = [page('one'), page('two', local)]
    await before.client.restore()
    void one.client.sendMessage('go')
    const shows = (text: string) => (page: { readonly client: typeof one.client }) =>
      JSON.stringify(page.client.getSnapshot().messages).includes(text)
    await until(() => shows('Hm.')(before))
    if (isReloaded) before.leave()
    const two = page('two, later', local)
    await until(() => shows('Hm.')(two))
    open()
    await until(() => [one, two].every(shows('Done.')))
    expect(ran).toEqual(['a in one'])
  },
)

test.each([
  [false, 'refused', 'yours was not used'],
  [true, 'sent', undefined],
])(
  'P an answer (approved: %s) to a client tool that has run says whether it was used, and the model keeps the result of the tool',
  async (approved, status, said) => {
    const prompts: string[] = []
    const model = scriptedModel(({ messages }) => {
      prompts.push(JSON.stringify(messages))
      return prompts.length > 1 ? [words('Done.'), stop] : [calls('sign', 'a'), finish]
    })
    const server = startServerWith({ model, tools: [sign.client(() => 0)] })
    const tools = [sign.client(() => 'signed')]
    const one = openPage(server, {}, { tools })
    await one.client.sendMessage('go')
    const two = openPage(server, { pollEvery: 600_000 }, { tools, onWarning: () => {} })
    await two.client.restore()
    expect(asked(two)).toEqual([{ to: 'a' }])
    await approve(one, 'a')
    await until(() => prompts.length > 1 && one.client.getSnapshot().status === 'ready')
    const result = await two.client.addToolApprovalResponse({
      id: call(two, 'a')?.approval?.id ?? '',
      approved,
    })
    const shown = call(two, 'a')
    expect([
      result.status,
      nextStep(result)?.message,
      shown?.state,
      shown && nextStep(shown)?.message,
    ]).toEqual([
      status,
      said && expect.stringContaining(said),
      'complete',
      said && expect.stringContaining(said),
    ])
    for (const prompt of prompts.slice(1)) expect(prompt).toContain('signed')
    expect(JSON.stringify(await server.agent.threads?.load({ owner: 'ada', threadId: 't' }))).not.toContain(
      'may not',
    )
  },
)
