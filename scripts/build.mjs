// `pnpm run build`: JavaScript and declarations of all packages, then the example programs and pages.
// `pnpm run build react`: only what the demo with that page needs, without declarations.
import { join } from 'node:path'
import { readArguments } from './arguments.mjs'
import { buildPackages, buildProgram } from './build-packages.mjs'
import { writeDeclarations } from './declarations.mjs'
import { root } from './packages.mjs'
import { ended, start } from './run.mjs'

const pages = ['react', 'solid', 'vue', 'svelte']
const { values, positionals: asked } = readArguments('build', {
  options: { verbose: { type: 'boolean' } },
  words: pages,
})
const programs = ['server', 'mcp-server', 'terminal', 'recipes']

async function node(cwd, ...args) {
  const child = start(process.execPath, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const output = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => output.push(chunk))
  const status = await ended(child)
  const text = Buffer.concat(output).toString()
  if (status !== 0) throw new Error(`${args.join(' ')} failed in ${cwd}:\n${text}`)
  if (values.verbose) process.stdout.write(text)
}

const buildPage = (name) =>
  node(join(root, 'examples', name), 'node_modules/vite/bin/vite.js', 'build', '--logLevel', 'warn')

async function declarations() {
  const wrong = await writeDeclarations()
  if (wrong !== '') throw new Error(wrong)
}

const demoOnly = asked.length > 0

try {
  await buildPackages()
  await Promise.all([
    ...(demoOnly ? [] : [declarations()]),
    ...(demoOnly ? asked : pages).map(buildPage),
    ...(demoOnly ? ['server', 'mcp-server'] : programs).map((name) =>
      buildProgram(join(root, 'examples', name)),
    ),
  ])
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
