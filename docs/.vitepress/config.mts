import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import { defineConfig, type MarkdownRenderer } from 'vitepress'
import { search } from './search.mts'
import { writeTextVersion } from './text-version.mts'

const docs = join(import.meta.dirname, '..')

/** A placeholder until there is a public repository; docs/releases.md names it. */
const repository = 'https://github.com/OWNER/countersign'

/** Sends links that leave the docs to the repository. Those between pages of the API stay: they begin with `../`, too. */
function linkToRepository(markdown: MarkdownRenderer): void {
  markdown.core.ruler.push('link-to-repository', ({ tokens, env }) => {
    for (const link of tokens.flatMap(({ children }) => children ?? [])) {
      const href = link.attrGet('href')
      if (typeof href !== 'string' || !href.startsWith('../')) continue
      const target = posix.join('docs', posix.dirname(env.relativePath), href)
      if (!target.startsWith('docs/')) link.attrSet('href', `${repository}/blob/main/${target}`)
    }
  })
}

/** The anchor of a heading as GitHub makes it, so that one link works in both places: `Next.js` is `nextjs`. */
function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

/** Pages that a command writes are there once it has run. */
function isThere({ link }: { link: string }): boolean {
  return existsSync(join(docs, `${link.replace(/\/$/, '/index')}.md`))
}

const sections = [
  {
    text: 'Get started',
    items: [
      { text: 'Install', link: '/install' },
      { text: 'Quick start', link: '/start' },
      { text: 'Quick start: React', link: '/react' },
      { text: 'Quick start: Vue', link: '/vue' },
      { text: 'Quick start: Svelte', link: '/svelte' },
      { text: 'Quick start: Solid', link: '/solid' },
      { text: 'How it works', link: '/concepts' },
    ],
  },
  {
    text: 'Approvals',
    items: [
      { text: 'Approve and deny', link: '/approvals' },
      { text: 'Edit the arguments', link: '/edit-arguments' },
      { text: 'Mandates and rules', link: '/mandates' },
      { text: 'Previews', link: '/previews' },
      { text: 'Tools that run in the page', link: '/client-tools' },
      { text: 'Chained approvals', link: '/chained-approvals' },
    ],
  },
  {
    text: 'Conversations',
    items: [
      { text: 'Persistence', link: '/persistence' },
      { text: 'Streaming and resuming', link: '/streaming' },
      { text: 'Typed replies, data and steps', link: '/replies' },
      { text: 'Everyday tasks', link: '/habits' },
    ],
  },
  {
    text: 'Test and deploy',
    items: [
      { text: 'Testing', link: '/testing' },
      { text: 'Deploy', link: '/deploy' },
      { text: 'Frameworks', link: '/frameworks' },
      { text: 'Next.js', link: '/nextjs' },
      { text: 'Nuxt', link: '/nuxt' },
      { text: 'SvelteKit', link: '/sveltekit' },
      { text: 'SolidStart', link: '/solidstart' },
      { text: 'Express and Fastify', link: '/express' },
      { text: 'Hono and the edge', link: '/edge' },
      { text: 'Server rendering', link: '/server-rendering' },
      { text: 'Several machines', link: '/machines' },
    ],
  },
  {
    text: 'User interface',
    items: [{ text: 'Build the interface', link: '/interface' }],
  },
  {
    text: 'Trust it',
    items: [
      { text: 'Security model', link: '/security' },
      { text: 'Protocols', link: '/interop' },
      { text: 'Protocol matrix', link: '/interop-matrix' },
      { text: 'Comparison with others', link: '/compare' },
      { text: 'Evidence for each claim', link: '/evidence' },
      { text: 'Performance', link: '/performance' },
    ],
  },
  {
    text: 'Migrate',
    items: [
      { text: 'From TanStack AI', link: '/migrating-from-tanstack-ai' },
      { text: 'From the AI SDK', link: '/migrating-from-the-ai-sdk' },
      { text: 'From LangGraph', link: '/migrating-from-langgraph' },
      { text: 'From CopilotKit', link: '/migrating-from-copilotkit' },
      { text: 'From assistant-ui', link: '/migrating-from-assistant-ui' },
      { text: 'Recipes for other servers', link: '/recipes' },
    ],
  },
  {
    text: 'Look up',
    items: [
      { text: 'Troubleshooting by error code', link: '/errors' },
      { text: 'FAQ', link: '/faq' },
      { text: 'API', link: '/api/' },
      { text: 'Glossary', link: '/glossary' },
      { text: 'Parts of a history', link: '/history-parts' },
      { text: 'Supported versions', link: '/support' },
      { text: 'Architecture', link: '/architecture' },
      { text: 'Releases', link: '/releases' },
    ],
  },
].map(({ text, items }) => ({ text, items: items.filter(isThere) }))

export default defineConfig({
  title: 'Countersign',
  description: "Human approval for AI tool calls that can't be lost, forged, or run twice.",
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/favicon.svg' }]],
  cleanUrls: true,
  // the list of all pages is loaded once, not with each of a thousand pages
  metaChunk: true,
  lastUpdated: false,
  // links to generated pages are checked by the tests, which know which command writes them
  ignoreDeadLinks: [/interop-matrix$/, /performance$/, /compare$/, /^\.?\/?api\//],
  markdown: {
    config: linkToRepository,
    anchor: { slugify: anchorOf },
    languageAlias: { events: 'log', timeline: 'log' },
  },
  vite: { build: { chunkSizeWarningLimit: 8000 } },
  themeConfig: {
    logo: '/favicon.svg',
    search: {
      provider: 'local',
      options: { miniSearch: search, detailedView: 'auto' },
    },
    nav: [
      { text: 'Quick start', link: '/start' },
      { text: 'Guides', link: '/approvals' },
      { text: 'Security', link: '/security' },
      { text: 'Compare', link: '/compare' },
      { text: 'API', link: '/api/' },
    ],
    sidebar: sections,
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/edit/main/docs/:path`, text: 'Edit this page' },
  },
  transformPageData: ({ relativePath, frontmatter }) => {
    // made from doc comments, each with a link to its source
    if (relativePath.startsWith('api/')) frontmatter.editLink = false
  },
  buildEnd: ({ outDir }) => writeTextVersion(docs, outDir, sections),
})
