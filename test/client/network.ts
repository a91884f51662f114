import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** The way of bytes: from the client, or to it. */
export type Way = 'up' | 'down'

/** One connection, and how many bytes have passed on it. */
interface Line {
  readonly client: Socket
  readonly server: Socket
  readonly passed: Record<Way, number>
}

/** What happens to bytes that are about to pass. `lose`: they do not arrive, and their connection, or every one, breaks. */
type Verdict = 'pass' | 'lose' | 'lose all' | { readonly passOnly: number }

/** A network between a client and a server on the loopback interface, which breaks where a test wants it to. */
export async function openNetwork(serverUrl: string) {
  const { hostname, port } = new URL(serverUrl)
  const lines: Line[] = []
  const open = new Set<Line>()
  let judge: (way: Way, line: number, passed: number, size: number) => Verdict = () => 'pass'
  let gate: Promise<void> | undefined

  function cut(line: Line): void {
    open.delete(line)
    line.client.destroy()
    line.server.destroy()
  }

  function forward(line: Line, way: Way, from: Socket, to: Socket): void {
    const at = lines.indexOf(line)
    from.on('data', (bytes: Buffer) => {
      if (!open.has(line)) return
      const verdict = judge(way, at, line.passed[way], bytes.length)
      if (verdict === 'pass') {
        line.passed[way] += bytes.length
        to.write(bytes)
      } else if (typeof verdict === 'object') {
        open.delete(line)
        to.write(bytes.subarray(0, verdict.passOnly), () => cut(line))
      } else for (const one of verdict === 'lose' ? [line] : [...open]) cut(one)
    })
    from.on('error', () => cut(line))
    from.on('close', () => cut(line))
  }

  const server = createServer({ noDelay: true }, async (client) => {
    client.on('error', () => {})
    await gate
    const line = { client, server: connect(Number(port), hostname), passed: { up: 0, down: 0 } }
    line.server.setNoDelay(true)
    lines.push(line)
    open.add(line)
    forward(line, 'up', client, line.server)
    forward(line, 'down', line.server, client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = () => {
    for (const line of lines) cut(line)
    server.close()
  }
  onTestFinished(close)
  const address = server.address()
  return {
    port: typeof address === 'object' ? address?.port : undefined,
    lines,
    cutAll: () => {
      for (const line of [...open]) cut(line)
    },
    /** Loses the next bytes of this way, and every connection breaks; then all is well again. */
    loseNext(way: Way) {
      judge = (found) => {
        if (found !== way) return 'pass'
        judge = () => 'pass'
        return 'lose all'
      }
    },
    /** Loses the next bytes to the client on another connection than this one, and that one breaks; then all is well again. */
    loseReplyBeside(line: number) {
      judge = (way, at) => {
        if (way === 'up' || at === line) return 'pass'
        judge = () => 'pass'
        return 'lose'
      }
    },
    /** Lets so many bytes of one connection pass this way, and breaks it. */
    cutAfter(line: number, way: Way, bytes: number) {
      judge = (found, at, passed, size) =>
        found === way && at === line && passed + size >= bytes ? { passOnly: bytes - passed } : 'pass'
    },
    /** Connections that are made from now on wait until the function that comes back is called. */
    holdNew(): () => void {
      let release = () => {}
      gate = new Promise((resolve) => {
        release = resolve
      })
      return () => {
        gate = undefined
        release()
      }
    },
    close,
  }
}
