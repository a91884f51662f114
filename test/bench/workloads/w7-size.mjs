import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { aims, budgets, measure } from '../../../scripts/size.mjs'
import { production } from '../pages/bundle.mjs'

/** What a page imports of ours: the client with SSE, and the same with a binding. Measured as the build does, against its budgets. */
const own = ['client', 'react', 'solid', 'vue', 'svelte']

/** What a page imports of the peers to do the same. React itself is outside. */
const peers = [
  {
    contender: 'tanstack',
    name: 'TanStack AI: ChatClient, fetchServerSentEvents',
    contents: `export { ChatClient, fetchServerSentEvents } from '@tanstack/ai-client'`,
  },
  {
    contender: 'ai-sdk',
    name: 'AI SDK: AbstractChat, DefaultChatTransport',
    contents: `export { AbstractChat, DefaultChatTransport } from 'ai'`,
  },
  {
    contender: 'ai-sdk',
    name: 'AI SDK: useChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses',
    contents: `export { useChat } from '@ai-sdk/react'; export { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'`,
  },
  {
    contender: 'ag-ui',
    name: 'AG-UI client: HttpAgent',
    contents: `export { HttpAgent } from 'ag-ui-client-1'`,
  },
]

export async function run() {
  const sizes = []
  for (const name of own) sizes.push(await ourSize(name))
  for (const peer of peers) sizes.push(await theirSize(peer))
  const [client] = budgets
  const kib = (bytes) => (bytes === undefined ? '' : (bytes / 1024).toFixed(1))
  return [
    {
      id: 'w7',
      title: 'What a page loads (KiB, framework not counted)',
      columns: ['', 'min', 'min + gzip', 'later, min + gzip'],
      rows: sizes.map(({ name, min, gzip, later }) => [name, kib(min), kib(gzip), kib(later)]),
      facts: { sizes },
      notes: [
        `The build fails if the client is larger than ${client.first} KiB, or the part that loads later than ${client.later} KiB (\`npm run size\`). The goals are ${aims.first} and ${aims.later}.`,
        'The measured packages of TanStack AI and the AG-UI client contain no React hook.',
      ],
    },
  ]
}

async function ourSize(name) {
  const { imports } = budgets.find(({ imports }) => name in imports)
  const { first, min, later } = await measure({ imports })
  return {
    with: name,
    contender: 'countersign',
    name: `Countersign: ${name === 'client' ? 'ChatClient' : `useChat of ${name}`}, fetchServerSentEvents`,
    min,
    gzip: first,
    later: later.reduce((sum, [, bytes]) => sum + bytes, 0),
  }
}

async function theirSize({ contender, name, contents }) {
  const { outputFiles } = await build({
    ...production,
    stdin: { contents, resolveDir: import.meta.dirname },
    minify: true,
    write: false,
    external: ['react', 'react-dom'],
    logOverride: { 'import-is-undefined': 'error' },
  })
  const [{ contents: code }] = outputFiles
  return { contender, name, min: code.length, gzip: gzipSync(code, { level: 9 }).length }
}
