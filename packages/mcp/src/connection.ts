import { isCountersignError } from '@countersign/core'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import {
  ElicitRequestSchema,
  ErrorCode,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { McpElicitation, McpElicitationAnswer } from './elicitation.js'
import { disposed, isMcpError, unreachable } from './failure.js'
import type { HttpSource } from './http-transport.js'
import { HttpTransport } from './http-transport.js'
import { type StdioSource, transportFor } from './source.js'

/** The connection to one server. */
export interface Connection {
  /**
   * A client whose server responds; if it went away, a new client. Nothing that was sent before is sent again.
   *
   * @throws CountersignError `connection-failed` or `disposed`.
   */
  ready(): Promise<Client>
  close(): Promise<void>
}

export interface ConnectionOptions {
  readonly server: string
  /** Milliseconds. */
  readonly connectTimeout: number
  /** Handles an elicitation of the server. Never rejects. */
  readonly asked: (question: McpElicitation, signal: AbortSignal) => Promise<McpElicitationAnswer>
  /** Called before a new client is used. If it throws, the client is closed. */
  readonly opened: (client: Client) => Promise<void>
  /** The server announces that its list of tools has changed. */
  readonly changed: (client: Client) => void
}

/** Uses the application's own client: the application connects, reconnects and closes it. */
export function givenConnection(client: Client, { server, opened, changed }: ConnectionOptions): Connection {
  let open: Promise<void> | undefined
  let closed = false
  const before = client.fallbackNotificationHandler
  // If the application has its own handler for this notification, that runs instead and must call refresh() itself.
  const heard: NonNullable<typeof before> = async (notification) => {
    if (!closed && notification.method === 'notifications/tools/list_changed') changed(client)
    await before?.(notification)
  }
  client.fallbackNotificationHandler = heard
  return {
    async ready() {
      if (closed) throw disposed(server)
      if (client.transport === undefined) throw unreachable('its client is not connected', server)
      open ??= opened(client)
      await open
      return client
    },
    async close() {
      closed = true
      if (client.fallbackNotificationHandler !== heard) return
      if (before === undefined) delete client.fallbackNotificationHandler
      else client.fallbackNotificationHandler = before
    },
  }
}

/** Our own connection, opened when it is first needed, and reopened when it is needed after the server went away. */
export function ownConnection(source: StdioSource | HttpSource, options: ConnectionOptions): Connection {
  const { server } = options
  let current: Promise<Client> | undefined
  let closed = false

  function connect(): Promise<Client> {
    const connecting = openClient(source, options, () => forget(connecting))
    connecting.catch(() => forget(connecting))
    return connecting
  }

  function forget(client: Promise<Client>): void {
    if (current === client) current = undefined
  }

  return {
    async ready() {
      if (closed) throw disposed(server)
      const known = current
      if (known !== undefined) {
        const client = await known
        if (await isThere(client)) return client
        forget(known)
        await client.close()
      }
      if (closed) throw disposed(server)
      current ??= connect()
      return current
    },
    async close() {
      closed = true
      const client = await current?.catch(() => undefined)
      if (client !== undefined) await leave(client)
    },
  }
}

async function openClient(
  source: StdioSource | HttpSource,
  { server, connectTimeout, asked, opened, changed }: ConnectionOptions,
  gone: () => void,
): Promise<Client> {
  const client = new Client(
    { name: 'countersign', version: '1' },
    { capabilities: { elicitation: { form: {} } } },
  )
  client.onclose = gone
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed(client))
  client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => {
    if (params.mode === 'url') return { action: 'decline' }
    const { message, requestedSchema } = params
    return asked({ message, requestedSchema }, signal)
  })
  const transport: Transport = transportFor(source)
  try {
    await client.connect(transport, { timeout: connectTimeout })
    await opened(client)
    return client
  } catch (error) {
    await client.close()
    throw isCountersignError(error) ? error : unreachable(error, server)
  }
}

/** How long to wait for a server that may only be busy. */
const PING_TIMEOUT = 5000

/**
 * Whether a server still responds. Over HTTP only a request can tell, and a tool call must not be used to find out. A server
 * that returns anything, or is too busy to respond, is still there.
 */
async function isThere(client: Client): Promise<boolean> {
  try {
    await client.ping({ timeout: PING_TIMEOUT })
    return true
  } catch (error) {
    return isMcpError(error) && error.code !== ErrorCode.ConnectionClosed
  }
}

/** How long ending a session may take. */
const LEAVE_TIMEOUT = 2000

async function leave(client: Client): Promise<void> {
  const { transport } = client
  if (transport instanceof HttpTransport) {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LEAVE_TIMEOUT)
    })
    // A server that is gone has no session to end.
    await Promise.race([transport.terminateSession().catch(() => {}), late])
    clearTimeout(timer)
  }
  await client.close()
}
