import { checkKinds } from './kinds.js'
import type { Tabs } from './tabs/link.js'
import { joinTabs } from './tabs/member.js'

export type { TabHost, TabLink, Tabs } from './tabs/link.js'

/** Options of {@link tabs}. The defaults are the platform's; override them in tests. */
export interface TabsOptions {
  /** Prefix of the names of the channel and the lock. Default `countersign:`. */
  prefix?: string | undefined
  locks?: Pick<LockManager, 'request'> | undefined
  BroadcastChannel?: typeof globalThis.BroadcastChannel | undefined
  /**
   * How many milliseconds the leading tab may take to show itself to a new tab, and to start a command on request: the browser may have
   * frozen it. After that, a new tab shows what is stored; a command fails for good, and `onError` gets `connection-failed`. Default 5,000.
   */
  timeout?: number | undefined
}

/**
 * Several tabs show one conversation. One of them leads (it holds a Web Lock): it runs the streams and the client tools, saves,
 * and calls `onFinish`, `onError` and `onToolCall`. The others apply every step it takes and forward their user's actions to it
 * (BroadcastChannel). When it closes, the next one leads. If the platform lacks either API, each tab works alone.
 *
 * @example new ChatClient({ connection, threadId, persistence: indexedDb(), tabs: tabs() })
 */
export function tabs(options: TabsOptions = {}): Tabs {
  const { timeout = 5000 } = options
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('tabs', options, {
      prefix: 'text',
      locks: 'object',
      BroadcastChannel: 'function',
      timeout: 'number of milliseconds',
    })
  return {
    join(host) {
      const locks = options.locks ?? globalThis.navigator?.locks
      const Channel = options.BroadcastChannel ?? globalThis.BroadcastChannel
      if (!locks || !Channel) return undefined
      const name = `${options.prefix ?? 'countersign:'}${host.threadId}`
      const channel = open(Channel, name)
      return channel && joinTabs(host, channel, locks, name, timeout)
    },
  }
}

/** A page with an opaque origin may not be allowed a channel. */
function open(Channel: typeof globalThis.BroadcastChannel, name: string): BroadcastChannel | undefined {
  try {
    return new Channel(name)
  } catch {
    return undefined
  }
}
