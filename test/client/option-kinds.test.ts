// Every option that the client publishes is checked in development when it is given. The names and types are read from the declarations,
// so an option without a check fails here.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ChatClient, fetchHttpStream, fetchServerSentEvents } from '@countersign/client'
import { indexedDb } from '@countersign/client/indexed-db'
import { persistent } from '@countersign/client/persistence'
import { reconnecting } from '@countersign/client/reconnect'
import { serverThreads } from '@countersign/client/server-threads'
import { tabs } from '@countersign/client/tabs'
import { threadList } from '@countersign/client/thread-list'
import { webSocket } from '@countersign/client/web-socket'
import { webStorage } from '@countersign/client/web-storage'
import { isCountersignError } from '@countersign/core'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { declaredOptions, type Option } from '../declared-options.js'

const { optionsOf, declarations } = declaredOptions('client')

const call = (run: (...args: never[]) => unknown, ...args: readonly unknown[]): unknown =>
  Reflect.apply(run, undefined, args)

const connection = fetchServerSentEvents('/chat', { rejoin: true })
const storage = { load: async () => undefined, save: async () => {}, remove: async () => {} }

type Give = (options: object) => unknown

/** Where options of each interface are given. */
const given: Readonly<Record<string, readonly [where: string, give: Give]>> = {
  ChatClientOptions: ['ChatClient', (options) => Reflect.construct(ChatClient, [{ connection, ...options }])],
  ServerSentEventsOptions: [
    'fetchServerSentEvents',
    (options) => call(fetchServerSentEvents, '/chat', options),
  ],
  FetchOptions: ['fetchHttpStream', (options) => call(fetchHttpStream, '/chat', options)],
  ReconnectOptions: ['reconnecting', (options) => call(reconnecting, connection, options)],
  ServerThreadsOptions: ['serverThreads', (options) => call(serverThreads, '/chat', options)],
  WebSocketOptions: ['webSocket', (options) => call(webSocket, '/chat', options)],
  ThreadListOptions: ['threadList', (options) => call(threadList, '/chat', options)],
  PersistentOptions: ['persistent', (options) => call(persistent, storage, options)],
  WebStorageOptions: ['webStorage', (options) => call(webStorage, options)],
  IndexedDbOptions: ['indexedDb', (options) => call(indexedDb, options)],
  TabsOptions: ['tabs', (options) => call(tabs, options)],
}

/** Options that are not for the moment a chat is created, and why. */
const notGiven: Readonly<Record<string, string>> = {
  ConnectOptions: 'what the client gives to a connection',
  ApprovalViewOptions: 'of a view, at each render',
  DisplayLimits: 'of a view, at each render',
  PreviewViewOptions: 'of a view, at each render',
  SendOptions: 'of one message: checked with it, also in production',
  RequestOptions: 'of one request: checked with it, also in production',
  ReadFilesOptions: 'of one choice of files',
}

/** Values that no option of this type takes. */
function wrongFor({ type }: Option): readonly unknown[] {
  const wrong: unknown[] = [1n, null, Symbol('s')]
  if (type.startsWith('boolean')) wrong.push('false', 'true', 0, 1)
  if (type.startsWith('number')) wrong.push(Number.NaN, -1, '5')
  return wrong
}

function refusal(give: Give, options: object): unknown {
  try {
    give(options)
    return 'nothing was refused'
  } catch (error) {
    return error
  }
}

afterEach(() => vi.unstubAllEnvs())

test('every published interface of options is in this test', () => {
  const folder = join(import.meta.dirname, '../../packages/client/src')
  const entries = readdirSync(folder).filter((file) => file.endsWith('.ts'))
  const source = entries.map((entry) => readFileSync(join(folder, entry), 'utf8')).join()
  const published = (source.match(/\b[A-Z]\w*(?:Options|Limits)\b/g) ?? []).filter((name) => {
    const node = declarations.get(name)
    return node?.modifiers?.some((modifier) => modifier.getText() === 'export')
  })
  expect([...new Set(published)].length).toBeGreaterThan(10)
  expect(published.filter((name) => !(name in given) && !(name in notGiven))).toEqual([])
})

describe.each(Object.entries(given))('%s', (name, [where, give]) => {
  // What is sent with each request, or given to each client tool, may be anything.
  const options = optionsOf(name).filter(({ type }) => type !== 'unknown')

  test.each(options)('refuses a wrong $name, and names it', (option) => {
    for (const value of wrongFor(option)) {
      const error = refusal(give, { [option.name]: value })
      expect(error, String(value)).toMatchObject({ code: 'invalid-option', data: { option: option.name } })
      const said = isCountersignError(error) ? error.message : ''
      expect(said).toMatch(new RegExp(`^${where}: the option \`${option.name}\` has to be `))
    }
  })

  test('refuses a name that does not exist', () => {
    for (const option of options)
      expect(refusal(give, { [`${option.name}s`]: 1, [option.name]: undefined, connection })).toMatchObject({
        code: 'invalid-option',
        data: { option: `${option.name}s` },
      })
  })

  test('takes an option that is undefined as left out', () => {
    for (const option of options) {
      if (option.name === 'connection') continue
      expect(() => give({ [option.name]: undefined })).not.toThrow()
    }
  })

  test('checks nothing in production, where the page does not load the check', () => {
    vi.stubEnv('NODE_ENV', 'production')
    expect(() => give({ nothing: 1 })).not.toThrow()
  })
})

test('a time that no timer can hold is refused', () => {
  for (const heartbeat of [Number.POSITIVE_INFINITY, 2 ** 31])
    expect(() => reconnecting(connection, { heartbeat })).toThrow(
      'reconnecting: the option `heartbeat` has to be of the kind number of milliseconds above 0.',
    )
  expect(() => serverThreads('/chat', { pollEvery: Number.POSITIVE_INFINITY })).toThrow(
    /`pollEvery` has to be/,
  )
  expect(() => persistent(storage, { timeout: Number.POSITIVE_INFINITY })).not.toThrow()
})
