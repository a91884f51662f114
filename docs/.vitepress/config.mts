import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'

const docs = join(import.meta.dirname, '..')

/** Pages that a command writes are there once it has run. */
function isThere({ link }: { link: string }): boolean {
  return existsSync(join(docs, `${link.replace(/\/$/, '/index')}.md`))
}

const sections = [
  {
    text: 'Begin',
    items: [
      { text: 'Start', link: '/start' },
      { text: 'Concepts', link: '/concepts' },
      { text: 'Approvals', link: '/approvals' },
      { text: 'Previews', link: '/previews' },
      { text: 'Mandates and rules', link: '/mandates' },
      { text: 'Chained approvals', link: '/chained-approvals' },
      { text: 'Replies', link: '/replies' },
      { text: 'Everyday tasks', link: '/habits' },
      { text: 'Testing', link: '/testing' },
      { text: 'FAQ', link: '/faq' },
    ],
  },
  {
    text: 'Run it',
    items: [
      { text: 'Security', link: '/security' },
      { text: 'Persistence', link: '/persistence' },
      { text: 'Deploy', link: '/deploy' },
      { text: 'Several machines', link: '/machines' },
      { text: 'Frameworks', link: '/frameworks' },
      { text: 'Server rendering', link: '/server-rendering' },
      { text: 'Recipes', link: '/recipes' },
      { text: 'Performance', link: '/performance' },
    ],
  },
  {
    text: 'Come from elsewhere',
    items: [
      { text: 'Comparison', link: '/compare' },
      { text: 'From TanStack AI', link: '/migrating-from-tanstack-ai' },
      { text: 'From the AI SDK', link: '/migrating-from-the-ai-sdk' },
      { text: 'From CopilotKit', link: '/migrating-from-copilotkit' },
      { text: 'Interop', link: '/interop' },
      { text: 'Interop matrix', link: '/interop-matrix' },
    ],
  },
  {
    text: 'Look up',
    items: [
      { text: 'API', link: '/api/' },
      { text: 'Error codes', link: '/errors' },
      { text: 'Parts of a history', link: '/history-parts' },
      { text: 'Glossary', link: '/glossary' },
      { text: 'Supported versions', link: '/support' },
      { text: 'Architecture', link: '/architecture' },
      { text: 'Releases', link: '/releases' },
    ],
  },
]

export default defineConfig({
  title: 'Countersign',
  description: "Human approval for AI tool calls that can't be lost, forged, or run twice.",
  cleanUrls: true,
  lastUpdated: false,
  // links to generated pages are checked by the tests, which know which command writes them
  ignoreDeadLinks: [/interop-matrix$/, /performance$/, /^\.?\/?api\//],
  markdown: { languageAlias: { events: 'log', timeline: 'log' } },
  vite: { build: { chunkSizeWarningLimit: 4000 } },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'Start', link: '/start' },
      { text: 'Approvals', link: '/approvals' },
      { text: 'Security', link: '/security' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: sections.map(({ text, items }) => ({ text, items: items.filter(isThere) })),
    outline: [2, 3],
  },
})
