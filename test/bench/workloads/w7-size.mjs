import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** What a page imports to do the same: a client with SSE; then the same with React's hook. React itself is outside. */
const bundles = [
  [
    'client',
    'countersign',
    'Countersign: ChatClient, fetchServerSentEvents',
    `export { ChatClient, fetchServerSentEvents } from '@countersign/client'`,
  ],
  [
    'react',
    'countersign',
    'Countersign: useChat, fetchServerSentEvents',
    `export { useChat } from '@countersign/react'; export { fetchServerSentEvents } from '@countersign/client'`,
  ],
  [
    'client',
    'tanstack',
    'TanStack AI: ChatClient, fetchServerSentEvents',
    `export { ChatClient, fetchServerSentEvents } from '@tanstack/ai-client'`,
  ],
  [
    'client',
    'ai-sdk',
    'AI SDK: AbstractChat, DefaultChatTransport',
    `export { AbstractChat, DefaultChatTransport } from 'ai'`,
  ],
  [
    'react',
    'ai-sdk',
    'AI SDK: useChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses',
    `export { useChat } from '@ai-sdk/react'; export { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'`,
  ],
  ['client', 'ag-ui', 'AG-UI client: HttpAgent', `export { HttpAgent } from 'ag-ui-client-1'`],
  ...['solid', 'vue', 'svelte'].map((name) => [
    name,
    'countersign',
    `Countersign: useChat of ${name}, fetchServerSentEvents`,
    `export { useChat } from '@countersign/${name}'; export { fetchServerSentEvents } from '@countersign/client'`,
  ]),
]

const frameworks = ['react', 'react-dom', 'solid-js', 'solid-js/*', 'vue', 'svelte', 'svelte/*']

export async function run() {
  const sizes = []
  for (const [with_, contender, name, contents] of bundles) {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: import.meta.dirname },
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
      conditions: ['production'],
      external: frameworks,
      define: { 'process.env.NODE_ENV': '"production"' },
      logOverride: { 'import-is-undefined': 'error' },
      // Else the paths of the repository's own tsconfig lead to sources instead of to what is published.
      tsconfigRaw: {},
      logLevel: 'error',
    })
    const [{ contents: code }] = outputFiles
    sizes.push({ with: with_, contender, name, min: code.length, gzip: gzipSync(code, { level: 9 }).length })
  }
  const kib = (bytes) => (bytes / 1024).toFixed(1)
  return [
    {
      id: 'w7',
      title: 'W7 What a page loads (KiB, framework not counted)',
      columns: ['', 'min', 'min + gzip'],
      rows: sizes.map(({ name, min, gzip }) => [name, kib(min), kib(gzip)]),
      facts: { sizes },
      notes: [
        'TanStack AI and the AG-UI client have no hook for React in the package that is measured here.',
      ],
    },
  ]
}
