import { once } from 'node:events'
import type { Server } from 'node:http'
import { onTestFinished } from 'vitest'

/** Opens a server on the loopback interface until the test has ended. Its address: `127.0.0.1:<port>`. */
export async function listening(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return `127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
}
