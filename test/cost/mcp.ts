import { mcpTools } from '@countersign/mcp'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  CallToolResultSchema,
  ContentBlockSchema,
  ListToolsRequestSchema,
  ListToolsResultSchema,
  ToolSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { marks, text, times, type Value } from './shapes.js'

/** What the SDK reads of a listing and of a result: `Tool: description` for each field. */
export function schemaFields(): readonly string[] {
  const of = (name: string, schema: unknown) =>
    Object.keys(Object(schema).shape ?? {}).map((field) => `${name}: ${field}`)
  const blocks: readonly unknown[] = Object(ContentBlockSchema).options ?? []
  return [
    ...of('ListToolsResult', ListToolsResultSchema),
    ...of('Tool', ToolSchema),
    ...of('CallToolResult', CallToolResultSchema),
    ...blocks.flatMap((block, index) => of(`ContentBlock ${index}`, block)),
  ].sort()
}

interface Listing {
  readonly name: string
  readonly tools: (bytes: number) => readonly Value[]
}

const least = (name: string, more: Value = {}): Value => ({ name, inputSchema: { type: 'object' }, ...more })
const properties = (bytes: number): Value =>
  Object.fromEntries(times(bytes / 34, (index) => [`key${index}`, { type: 'string' }]))

/** Up to the limit of a list; what is longer is refused by its length. */
export const listings: readonly Listing[] = [
  {
    name: 'long texts',
    tools: (bytes) => [least('t', { title: text(bytes / 2), description: text(bytes / 2) })],
  },
  { name: 'a long name', tools: (bytes) => [least(text(bytes))] },
  { name: 'very many tools', tools: (bytes) => times(bytes / 50, (index) => least(`t${index}`)) },
  { name: 'very many tools of one name', tools: (bytes) => times(bytes / 50, () => least('t')) },
  {
    name: 'schemas of very many members',
    tools: (bytes) => [
      least('t', {
        inputSchema: { type: 'object', properties: properties(bytes / 2) },
        outputSchema: { type: 'object', properties: properties(bytes / 2) },
      }),
    ],
  },
  {
    name: 'a pattern that takes for ever',
    tools: () => [
      least('t', {
        inputSchema: { type: 'object', properties: { key: { type: 'string', pattern: '^(a+)+$' } } },
      }),
    ],
  },
  {
    name: 'a description of marks that make each other invisible',
    tools: (bytes) => [least('t', { description: '\u0301'.repeat(Math.min(bytes / 2, 1_000_000)) })],
  },
  {
    name: 'annotations, icons and metadata of very many members',
    tools: (bytes) => [
      least('t', {
        annotations: { title: text(bytes / 3) },
        _meta: Object.fromEntries(times(bytes / 50, (index) => [`key${index}`, 1])),
        icons: times(bytes / 60, () => ({ src: 'x' })),
      }),
    ],
  },
]

interface Result {
  readonly name: string
  readonly result: (bytes: number) => Value
}

const blocks = (bytes: number, block: Value): Value => ({
  content: times(bytes / (JSON.stringify(block).length + 1), () => block),
})

export const results: readonly Result[] = [
  { name: 'a long text', result: (bytes) => ({ content: [{ type: 'text', text: text(bytes) }] }) },
  { name: 'a text of marks', result: (bytes) => ({ content: [{ type: 'text', text: marks(bytes) }] }) },
  { name: 'very many texts', result: (bytes) => blocks(bytes, { type: 'text', text: 'x' }) },
  {
    name: 'very many images',
    result: (bytes) => blocks(bytes, { type: 'image', data: 'eA==', mimeType: 'image/png' }),
  },
  {
    name: 'very many sounds',
    result: (bytes) => blocks(bytes, { type: 'audio', data: 'eA==', mimeType: 'audio/wav' }),
  },
  {
    name: 'very many links',
    result: (bytes) => blocks(bytes, { type: 'resource_link', uri: 'x:y', name: 'x' }),
  },
  {
    name: 'very many resources',
    result: (bytes) => blocks(bytes, { type: 'resource', resource: { uri: 'x:y', text: 'x' } }),
  },
  {
    name: 'texts that repeat the structured content',
    result: (bytes) => {
      const structuredContent = { list: times(100, (index) => ({ index })) }
      return {
        ...blocks(bytes, { type: 'text', text: JSON.stringify(structuredContent) }),
        structuredContent,
      }
    },
  },
  {
    name: 'short texts beside structured content of very many members',
    result: (bytes) => ({
      ...blocks(bytes / 2, { type: 'text', text: '{}' }),
      structuredContent: Object.fromEntries(times(bytes / 40, (index) => [`key${index}`, [index]])),
    }),
  },
  {
    name: 'structured content of very many members',
    result: (bytes) => ({
      content: [],
      structuredContent: Object.fromEntries(times(bytes / 20, (index) => [`key${index}`, [index]])),
    }),
  },
  {
    name: 'a failure of very many texts',
    result: (bytes) => ({ ...blocks(bytes, { type: 'text', text: ' ' }), isError: true }),
  },
]

async function connected(tools: readonly Value[], result: Value): Promise<Client> {
  const server = new Server({ name: 'test', version: '1' }, { capabilities: { tools: {} } })
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }) as never)
  server.setRequestHandler(CallToolRequestSchema, () => result as never)
  const client = new Client({ name: 'test', version: '1' })
  const [here, there] = InMemoryTransport.createLinkedPair()
  await server.connect(there)
  await client.connect(here)
  return client
}

/** Reads a list once; what cannot be read is refused, which costs as well. */
export async function readListing(tools: readonly Value[]): Promise<() => Promise<void>> {
  const client = await connected(tools, { content: [] })
  return async () => {
    await mcpTools(client, { server: 's', warn: () => {} }).catch(() => {})
  }
}

/** Calls a tool and takes what it returns. */
export async function readResult(result: Value): Promise<() => Promise<void>> {
  const { tools } = await mcpTools(await connected([least('t')], result), { server: 's' })
  const context = { signal: new AbortController().signal, progress: () => {}, context: {} }
  return async () => {
    await Promise.resolve(tools[0]?.execute({}, context as never)).catch(() => {})
  }
}
