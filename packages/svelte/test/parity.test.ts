import {
  type BindingHarness,
  describeBinding,
  type MountedPage,
  type PageUse,
} from '@countersign/testing/suites'
import { hydrate, mount, tick, unmount } from 'svelte'
import { afterAll, expect, test } from 'vitest'
import { box } from './box.svelte.js'
import Pages from './Pages.svelte'
import { type PagesProps, Probe } from './probe.js'
import type { renderPages } from './served.js'
import { createSvelteServer } from './server.js'

const server = await createSvelteServer()
const served = (await server.ssrLoadModule('/served.ts')) as { renderPages: typeof renderPages }
afterAll(() => server.close())

function mounted(
  start: (options: { target: HTMLElement; props: PagesProps }) => Record<string, unknown>,
  target: HTMLElement,
  first: PageUse,
  pages = 1,
): MountedPage {
  const use = box(first)
  const probe = new Probe()
  const page = start({ target, props: { use, probe, pages } })
  const chat = () => {
    const [first] = probe.chats
    if (!first) throw new Error('The page has not been set up.')
    return first
  }
  return {
    container: target,
    async update(next) {
      use.current = next
      await tick()
    },
    async unmount() {
      await unmount(page)
      target.remove()
    },
    renders: () => probe.renders,
    chat,
    turns: () => chat().turns,
  }
}

const harness: BindingHarness = {
  async mount(use, settings) {
    const target = document.createElement('div')
    document.body.append(target)
    return mounted((options) => mount(Pages, options), target, use, settings?.pages)
  },
  renderToString: async (use) => served.renderPages({ use: { current: use }, pages: 1, probe: new Probe() }),
  hydrate: async (target, use) => mounted((options) => hydrate(Pages, options), target, use),
  settle: tick,
}

describeBinding('svelte', harness, { test, expect })
