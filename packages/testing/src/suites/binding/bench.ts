import { ChatClient, type ChatClientOptions } from '@countersign/client'
import { macrotasks } from '../../waiting.js'
import type { SuiteRunner } from '../runner.js'
import { collectComplaints } from './complaints.js'
import type { BindingHarness, MountedPage, PageSettings, PageUse } from './harness.js'
import { type Page, readPage } from './page.js'

export type Expect = SuiteRunner['expect']
export type Spec = (sentence: string, run: (bench: Bench) => Promise<void>) => void

/** The tools of a test in the suite. */
export interface Bench {
  readonly harness: BindingHarness
  /** Mounts a page and lets it settle. It is unmounted after the test. */
  open(use: PageUse, settings?: PageSettings): Promise<Page>
  /** Puts HTML from a server into the document and hydrates it. */
  hydrate(html: string, use: PageUse): Promise<{ readonly page: Page; readonly before: Element | null }>
  /** Updates a page with another `use`, and lets it settle. */
  update(page: Page, use: PageUse): Promise<void>
  close(page: Page): Promise<void>
  /** Performs an action and waits until all of its consequences have happened. */
  after(deed?: () => unknown): Promise<void>
}

/** A client that publishes growth at once, so that tests do not depend on animation frames. */
export function chat(options: ChatClientOptions): ChatClient {
  return new ChatClient({ notify: 'sync', ...options })
}

/** Runs one test, unmounts its pages, and checks that nothing was reported as an error or warning. */
export async function onBench(
  harness: BindingHarness,
  expect: Expect,
  run: (bench: Bench) => Promise<void>,
): Promise<void> {
  const open = new Set<MountedPage>()
  const complaints = await collectComplaints(async () => {
    const bench = createBench(harness, open)
    try {
      await run(bench)
    } finally {
      for (const page of open) await page.unmount()
      await bench.after()
    }
  })
  expect(complaints).toEqual([])
}

function createBench(harness: BindingHarness, open: Set<MountedPage>): Bench {
  async function after(deed: () => unknown = () => {}): Promise<void> {
    void deed()
    // Chat and framework each schedule work, which may cause more work in the other.
    for (let round = 0; round < 3; round++) {
      await macrotasks(2)
      await harness.settle()
    }
  }
  async function settled(mounting: Promise<MountedPage>): Promise<Page> {
    const mounted = await mounting
    open.add(mounted)
    await after()
    return readPage(mounted)
  }
  return {
    harness,
    after,
    open: (use, settings) => settled(harness.mount(use, settings)),
    async hydrate(html, use) {
      const container = document.createElement('div')
      container.innerHTML = html
      document.body.append(container)
      const before = container.querySelector('main')
      return { page: await settled(harness.hydrate(container, use)), before }
    },
    async update(page, use) {
      await page.mounted.update(use)
      await after()
    },
    async close({ mounted }) {
      open.delete(mounted)
      await mounted.unmount()
      await after()
    },
  }
}
