import type { ToolMap } from '@countersign/core'
import { ChatClient } from './client.js'
import type { ChatClientOptions } from './options.js'

/**
 * The clients of one provider, by thread: whoever asks for a thread gets the same client. A new thread is another client, never a
 * reset, so that what runs in the old one goes on.
 */
export interface ChatClients<Tools extends ToolMap = ToolMap> {
  /** The client of the provider itself. */
  readonly main: ChatClient<Tools>
  /** The client of a thread, made with the provider's options and these where there is none yet. */
  get(options: Partial<ChatClientOptions<Tools>>): ChatClient<Tools>
}

/** Makes the registry of a provider out of a client, or out of options for the clients to come. */
export function createChatClients<Tools extends ToolMap>(
  source: ChatClient<Tools> | ChatClientOptions<Tools>,
): ChatClients<Tools> {
  const options = source instanceof ChatClient ? undefined : source
  const main = source instanceof ChatClient ? source : new ChatClient(source)
  const byThread = new Map([[main.threadId, main]])
  return {
    main,
    get(own) {
      const known = byThread.get(own.threadId ?? main.threadId)
      if (known) return known
      const made = new ChatClient<Tools>({ ...options, ...own } as ChatClientOptions<Tools>)
      byThread.set(made.threadId, made)
      return made
    },
  }
}
