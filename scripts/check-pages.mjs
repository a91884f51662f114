// Type checks of the example pages that need a separate compiler. The React page is part of the main type
// check. They import the built packages, as an application does.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { packages, root } from './packages.mjs'
import { capture } from './run.mjs'

const checks = [
  ['solid', '../../node_modules/typescript/bin/tsc', '-p', 'tsconfig.json'],
  ['vue', 'node_modules/vue-tsc/bin/vue-tsc.js', '-p', 'tsconfig.json'],
  [
    'svelte',
    'node_modules/svelte-check/bin/svelte-check',
    '--tsconfig',
    'tsconfig.json',
    '--fail-on-warnings',
  ],
]

if (!packages.every(({ folder }) => existsSync(join(folder, 'dist')))) {
  console.error('The packages are not built. Run: pnpm run build')
  process.exit(1)
}
for (const [page, ...command] of checks) {
  const { status, output } = await capture(process.execPath, command, { cwd: join(root, 'examples', page) })
  if (status === 0) continue
  console.error(`${page}:\n${output}`)
  process.exitCode = 1
}
