import type { Tabs } from './tabs/link.js'
import { joinTabs } from './tabs/member.js'

export type { TabHost, TabLink, Tabs } from './tabs/link.js'

/** Options of {@link tabs}. The defaults are the platform's own; give others in tests. */
export interface TabsOptions {
  /** Prefix of the names of the channel and the lock. Default `countersign:`. */
  prefix?: string | undefined
  locks?: Pick<LockManager, 'request'> | undefined
  BroadcastChannel?: typeof globalThis.BroadcastChannel | undefined
}

/**
 * Several tabs show one conversation. One of them leads (it holds a Web Lock): it runs the streams and the client tools, saves, and has
 * `onFinish`, `onError` and `onToolCall` called. The others see every step it takes, and hand it what their person does
 * (BroadcastChannel). When it closes, the next one leads. Where the platform lacks either, each tab is for itself.
 *
 * @example new ChatClient({ connection, threadId, persistence: indexedDb(), tabs: tabs() })
 */
export function tabs(options: TabsOptions = {}): Tabs {
  return {
    join(host) {
      const locks = options.locks ?? globalThis.navigator?.locks
      const Channel = options.BroadcastChannel ?? globalThis.BroadcastChannel
      if (!locks || !Channel) return undefined
      const name = `${options.prefix ?? 'countersign:'}${host.threadId}`
      const channel = open(Channel, name)
      return channel && joinTabs(host, channel, locks, name)
    },
  }
}

/** A page without an origin of its own may not have a channel. */
function open(Channel: typeof globalThis.BroadcastChannel, name: string): BroadcastChannel | undefined {
  try {
    return new Channel(name)
  } catch {
    return undefined
  }
}
