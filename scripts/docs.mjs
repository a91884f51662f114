// `npm run docs`: generates the API reference from the doc comments (docs/api), then the static site with its search (docs/.vitepress/dist).
// Neither is kept in git. `npm run docs -- serve` shows the site while its pages are edited.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { Application } from 'typedoc'
import { build, createServer } from 'vitepress'
import { readArguments } from './arguments.mjs'
import { entriesOf, packages, root } from './packages.mjs'
import { deadLinks } from './site-links.mjs'

const docs = join(root, 'docs')

/** The sources of everything that can be imported. */
function entryPoints() {
  return packages.flatMap(entriesOf)
}

async function writeReference() {
  const out = join(docs, 'api')
  rmSync(out, { recursive: true, force: true })
  const app = await Application.bootstrapWithPlugins({
    name: 'API',
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: entryPoints(),
    tsconfig: join(root, 'tsconfig.json'),
    // types are checked in a separate step
    skipErrorChecking: true,
    // a placeholder until there is a public repository; docs/releases.md names it
    sourceLinkTemplate: 'https://github.com/OWNER/countersign/blob/main/packages/{path}#L{line}',
    disableGit: true,
    gitRevision: 'main',
    validation: false,
    readme: 'none',
    logLevel: 'Warn',
    out,
    // options of typedoc-plugin-markdown
    outputFileStrategy: 'members',
    entryFileName: 'index',
    hidePageHeader: true,
    useCodeBlocks: true,
    expandObjects: false,
  })
  const project = await app.convert()
  if (!project) throw new Error('The doc comments could not be read.')
  // `client/src/tabs` is imported as `@countersign/client/tabs`
  for (const module of project.children ?? []) module.name = `@countersign/${module.name.replace('/src', '')}`
  // the repository does not have what is declared in other projects
  const sources = Object.values(project.reflections).flatMap((reflection) => reflection.sources ?? [])
  for (const source of sources) if (source.fileName.includes('node_modules')) delete source.url
  await app.generateOutputs(project)
}

const [command] = readArguments('docs', { words: ['serve'] }).positionals
await writeReference()
if (command === 'serve') {
  const server = await createServer(docs)
  await server.listen()
  server.printUrls()
} else {
  await build(docs)
  const dead = deadLinks(join(docs, '.vitepress/dist'))
  for (const link of dead) console.error(`A link that leads nowhere: ${link}`)
  process.exitCode = dead.length > 0 ? 1 : 0
}
