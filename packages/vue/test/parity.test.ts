import type { ChatClient } from '@countersign/client'
import {
  type BindingHarness,
  describeBinding,
  type MountedPage,
  type PageOptions,
  type PageUse,
} from '@countersign/testing/suites'
import { ChatProvider, type ChatProviderProps, type UseChat } from '@countersign/vue'
import { expect, test } from 'vitest'
import { type App, createApp, createSSRApp, h, nextTick, type ShallowRef, shallowRef } from 'vue'
import { renderToString } from 'vue/server-renderer'
import { ParityPage } from './parity-page.js'

/** The application around the page, and what it told. */
function application(use: ShallowRef<PageUse>, pages: number) {
  const renders = new Map<string, number>()
  const chats: UseChat[] = []
  const toldRender = (id: string) => void renders.set(id, (renders.get(id) ?? 0) + 1)
  const toldChat = (chat: UseChat) => void chats.push(chat)
  const render = () => {
    const now = use.value
    const own = 'client' in now ? now : now.options
    const all = () =>
      Array.from({ length: pages }, (_, key) => h(ParityPage, { key, use: own, toldRender, toldChat }))
    const provider = 'options' in now ? now.provider : undefined
    return provider ? h(ChatProvider, propsOf(provider), { default: all }) : all()
  }
  return { renders, chats, root: { render } }
}

function propsOf(provider: { client: ChatClient } | { options: PageOptions }): ChatProviderProps {
  if ('client' in provider) return provider
  const { connection } = provider.options
  if (!connection) throw new Error('A provider with options needs a connection.')
  return { options: { ...provider.options, connection } }
}

function start(container: HTMLElement, given: PageUse, create: typeof createApp, pages = 1): MountedPage {
  const use = shallowRef(given)
  const { renders, chats, root } = application(use, pages)
  const app: App = create(root)
  app.mount(container)
  const chat = () => {
    const [first] = chats
    if (!first) throw new Error('The page has not been rendered.')
    return first
  }
  return {
    container,
    async update(next) {
      use.value = next
      await nextTick()
    },
    async unmount() {
      app.unmount()
      container.remove()
    },
    renders: () => renders,
    chat,
    turns: () => chat().turns.value,
  }
}

const harness: BindingHarness = {
  async mount(use, settings) {
    const container = document.createElement('div')
    document.body.append(container)
    return start(container, use, createApp, settings?.pages)
  },
  renderToString: (use) => renderToString(createSSRApp(application(shallowRef(use), 1).root)),
  hydrate: async (container, use) => start(container, use, createSSRApp),
  settle: () => nextTick(),
}

describeBinding('vue', harness, { test, expect })
