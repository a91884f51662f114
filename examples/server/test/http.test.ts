import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request as httpRequest, type Server } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { listen, pageServer } from '../src/http.js'

let folder: string
let server: Server
let port: number

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'countersign-page-'))
  await writeFile(join(folder, 'index.html'), '<p>page</p>')
  server = pageServer(folder, {
    '/api/chat': (_, response) => response.end('chat'),
    '/api/grants': ({ method }, response) => response.end(method),
  })
  port = Number(new URL(await listen(server, 0)).port)
})

afterAll(async () => {
  server.close()
  await rm(folder, { recursive: true })
})

/** node:http, because fetch sets Host and Origin by itself and tidies paths. */
function get(path: string, headers: Record<string, string> = {}, method = 'GET') {
  return new Promise<{ status: number | undefined; body: string; headers: Record<string, unknown> }>(
    (resolve, reject) => {
      const request = httpRequest({
        host: '127.0.0.1',
        port,
        path,
        headers: { host: `localhost:${port}`, ...headers },
        method,
      })
      request.on('error', reject)
      request.on('response', async (response) => {
        let body = ''
        for await (const chunk of response) body += chunk
        resolve({ status: response.statusCode, body, headers: response.headers })
      })
      request.end()
    },
  )
}

test('serves the page with a policy that lets only its own files run', async () => {
  const answer = await get('/')
  expect(answer).toMatchObject({ status: 200, body: '<p>page</p>' })
  expect(answer.headers['content-security-policy']).toContain("script-src 'self'")
})

test('hands each path of the api on, whatever the method and the query', async () => {
  expect((await get('/api/chat', {}, 'POST')).body).toBe('chat')
  expect((await get('/api/grants?threadId=t', {}, 'DELETE')).body).toBe('DELETE')
})

test.each(['/../index.html', '/%2e%2e/secret', '/nope.js', '/%'])(
  'answers 404 to %s or serves only the page',
  async (path) => {
    const answer = await get(path)
    expect([404, 200]).toContain(answer.status)
    if (answer.status === 200) expect(answer.body).toBe('<p>page</p>')
  },
)

test('refuses a foreign Host and a foreign Origin', async () => {
  expect((await get('/', { host: 'evil.example' })).status).toBe(403)
  expect((await get('/api/chat', { origin: 'http://evil.example' }, 'POST')).status).toBe(403)
  expect((await get('/api/chat', { origin: `http://localhost:${port}` }, 'POST')).status).toBe(200)
})

test('takes the next free port where it may', async () => {
  const second = pageServer(folder, {})
  const url = await listen(second, port, 50)
  expect(Number(new URL(url).port)).toBeGreaterThan(port)
  second.close()
  await expect(listen(pageServer(folder, {}), port)).rejects.toThrow('EADDRINUSE')
})

test.each(['//', '///', '//:', '//[', '//@', '//?', '/\\', 'http://', 'http://['])(
  'F12 GET %s is answered, and the server goes on',
  async (target) => {
    const answer = await sendRaw(
      `GET ${target} HTTP/1.1\r\nhost: localhost:${port}\r\nconnection: close\r\n\r\n`,
    )
    expect(answer).toMatch(/^HTTP\/1.1 (200|400|404) /)
    expect((await get('/')).status).toBe(200)
  },
)

/** What the server says to these bytes; clients of HTTP tidy such targets. */
function sendRaw(bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    socket.on('data', (data) => {
      said += data.toString()
    })
    socket.on('error', reject)
    socket.on('end', () => resolve(said))
  })
}
