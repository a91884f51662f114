import { passMacrotasks } from '@countersign/testing'
import { afterEach, beforeEach, expect, vi } from 'vitest'
import { type App, type Component, createApp, defineComponent, nextTick, type VNodeChild } from 'vue'

const mounted = new Set<App>()

/** A component out of a setup function. */
export const component = (setup: () => () => VNodeChild) => defineComponent({ setup })

/** Mounts a component in a new container in the document; what is still there after the test is taken away. */
export function mount(root: Component): { readonly container: HTMLElement; unmount(): void } {
  const container = document.createElement('div')
  document.body.append(container)
  const app = createApp(root)
  mounted.add(app)
  app.mount(container)
  return { container, unmount: () => take(app) }
}

function take(app: App): void {
  if (mounted.delete(app)) app.unmount()
}

/** Runs a composable in the setup of a component. */
export function withSetup<T>(use: () => T) {
  const results: T[] = []
  const { unmount } = mount(
    component(() => {
      results.push(use())
      return () => null
    }),
  )
  const [result] = results
  if (result === undefined) throw new Error('The setup has given nothing.')
  return { result, unmount }
}

/** Does something and lets everything happen that follows from it. */
export async function after(deed: () => unknown = () => {}): Promise<void> {
  void deed()
  for (let round = 0; round < 2; round++) {
    await passMacrotasks(2)
    await nextTick()
  }
}

/** Vue tells of its troubles by `console.warn`: no test of this file may leave one. */
export function expectNoWarnings(): void {
  beforeEach(() => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    vi.spyOn(console, 'warn').mockImplementation(() => {})
  })
  afterEach(() => {
    for (const app of mounted) take(app)
    document.body.replaceChildren()
    expect(vi.mocked(console.error).mock.calls).toEqual([])
    expect(vi.mocked(console.warn).mock.calls).toEqual([])
    vi.restoreAllMocks()
  })
}
