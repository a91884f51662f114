/** @jsxImportSource solid-js */
import { ChatClient } from '@countersign/client'
import { useChat, useMessageIds } from '@countersign/solid'
import { scriptedConnection, text } from '@countersign/testing'
import {
  type BindingHarness,
  describeBinding,
  type MountedPage,
  type PageUse,
} from '@countersign/testing/suites'
import { createSignal, For, type JSX } from 'solid-js'
import { hydrate, render } from 'solid-js/web'
import { afterAll, expect, test } from 'vitest'
import { Pages, type Probe } from './parity-page.js'
import { createSolidServer } from './server.js'

const server = await createSolidServer()
afterAll(() => server.close())

const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 0))
const newProbe = (): Probe => ({ renders: new Map(), chat: undefined })

async function mounted(
  container: HTMLElement,
  first: PageUse,
  open: (page: () => JSX.Element) => () => void,
  pages = 1,
): Promise<MountedPage> {
  const probe = newProbe()
  const [use, setUse] = createSignal(first)
  const close = open(() => <Pages use={use()} probe={probe} pages={pages} />)
  await turn()
  const chat = () => {
    if (!probe.chat) throw new Error('The page has not rendered.')
    return probe.chat
  }
  return {
    container,
    async update(next) {
      setUse(next)
      await turn()
    },
    async unmount() {
      close()
      container.remove()
      await turn()
    },
    renders: () => probe.renders,
    chat,
    turns: () => chat().turns,
  }
}

/** What Solid's own script in the head of a served page leaves behind. */
const startServed = () =>
  Reflect.set(globalThis, '_$HY', { events: [], completed: new WeakSet(), r: {}, fe() {} })

const harness: BindingHarness = {
  runsOnce: true,
  mount(use, { pages } = {}) {
    const container = document.createElement('div')
    document.body.append(container)
    return mounted(container, use, (page) => render(page, container), pages)
  },
  renderToString: async (use) => server.renderPages({ use, probe: newProbe(), pages: 1 }),
  hydrate(container, use) {
    startServed()
    return mounted(container, use, (page) => hydrate(page, container))
  },
  settle: turn,
}

describeBinding('solid', harness, { test, expect })

// Behind the suite: Solid hydrates no other page in place once one has been changed.
test('S4.89 what appears after a page was hydrated shows the current messages at once', async () => {
  startServed()
  const close = hydrate(() => undefined, document.createElement('div'))
  const client = new ChatClient({ connection: scriptedConnection([[text('Hello.')]]) })
  await client.sendMessage('go')
  const first: number[] = []
  const Page = () => {
    first.push(useChat({ client }).messages.length)
    return <For each={useMessageIds({ client })()}>{(id) => <p>{id}</p>}</For>
  }
  const container = document.createElement('div')
  const unmount = render(() => <Page />, container)
  expect(first).toEqual([2])
  expect(container.querySelectorAll('p')).toHaveLength(2)
  unmount()
  close()
})
