import type { UseChat } from '@countersign/svelte'
import type { PageUse } from '@countersign/testing/suites'
import type { Box } from './box.svelte.js'

/** What a page of the binding suite is told, and what it tells of itself. */
export interface PagesProps {
  readonly use: Box<PageUse>
  readonly pages: number
  readonly probe: Probe
}

export class Probe {
  readonly renders = new Map<string, number>()
  readonly chats: UseChat[] = []

  /** Counts that a message's component has looked at its message, and hands it on. */
  rendered<T>(id: string, shown: T): T {
    this.renders.set(id, (this.renders.get(id) ?? 0) + 1)
    return shown
  }
}
