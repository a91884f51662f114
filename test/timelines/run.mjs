// Runs the neutral timelines against the built packages: `pnpm timelines [--seeds N] [--only REGEX] [--log] ...`.
// PENDING_MODE=cancel|queue runs one mode, else both. The harness beside this file is a copy; a newer one next to the checkout
// (../shared/timelines) is preferred where there is one.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { given, readArguments } from '../../scripts/arguments.mjs'

const here = import.meta.dirname
const shared = join(here, '../../../shared/timelines')
const harness = existsSync(join(shared, 'run.mjs')) ? shared : join(here, 'harness')
readArguments('timelines', {
  options: {
    only: { type: 'string' },
    log: { type: 'boolean' },
    seeds: { type: 'number' },
    from: { type: 'number' },
    profile: { type: 'string' },
    'no-scenarios': { type: 'boolean' },
  },
})
const options = given.length > 0 ? given : ['--seeds', '2000']
const modes = process.env.PENDING_MODE ? [process.env.PENDING_MODE] : ['cancel', 'queue']

let failed = false
for (const mode of modes) {
  console.log(`onPendingMessage: ${mode}`)
  const { status } = spawnSync(
    process.execPath,
    [join(harness, 'run.mjs'), join(here, 'driver.mjs'), ...options],
    {
      stdio: 'inherit',
      env: { ...process.env, PENDING_MODE: mode },
    },
  )
  failed ||= status !== 0
}
process.exit(failed ? 1 : 0)
