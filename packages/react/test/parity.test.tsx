import {
  type BindingHarness,
  describeBinding,
  type MountedPage,
  type PageUse,
} from '@countersign/testing/suites'
import { type ReactNode, StrictMode } from 'react'
import { createRoot, hydrateRoot } from 'react-dom/client'
import { renderToString } from 'react-dom/server'
import { expect, test } from 'vitest'
import { Pages, type Probe } from './parity-page.js'

// Without `act`: the suite sees the page as a browser shows it.

const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 0))

interface Root {
  render(page: ReactNode): void
  unmount(): void
}

async function mounted(
  container: HTMLElement,
  use: PageUse,
  open: (page: ReactNode) => Root,
  { strict = false, pages = 1 } = {},
): Promise<MountedPage> {
  const probe: Probe = { renders: new Map(), chat: undefined }
  const show = (now: PageUse) => {
    const page = <Pages use={now} probe={probe} pages={pages} />
    return strict ? <StrictMode>{page}</StrictMode> : page
  }
  const root = open(show(use))
  await turn()
  const chat = () => {
    if (!probe.chat) throw new Error('The page has not rendered.')
    return probe.chat
  }
  return {
    container,
    async update(next) {
      root.render(show(next))
      await turn()
    },
    async unmount() {
      root.unmount()
      container.remove()
      await turn()
    },
    renders: () => probe.renders,
    chat,
    turns: () => chat().turns,
  }
}

const harness: BindingHarness = {
  mount(use, settings) {
    const container = document.createElement('div')
    document.body.append(container)
    const open = (page: ReactNode) => {
      const root = createRoot(container)
      root.render(page)
      return root
    }
    const { strict = false, pages = 1 } = settings ?? {}
    return mounted(container, use, open, { strict, pages })
  },
  renderToString: async (use) =>
    renderToString(<Pages use={use} probe={{ renders: new Map(), chat: undefined }} pages={1} />),
  hydrate: (container, use) =>
    mounted(container, use, (page) =>
      hydrateRoot(container, page, { onRecoverableError: (error) => console.error(error) }),
    ),
  settle: turn,
}

describeBinding('react', harness, { test, expect })
