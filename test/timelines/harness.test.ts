import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { full } from '../full.js'

/** `pnpm timelines` runs 2,000. */
const seeds = full ? '100' : '20'

for (const mode of ['cancel', 'queue']) {
  test(`every neutral scenario passes and no random timeline breaks an invariant (${mode})`, () => {
    const run = spawnSync(process.execPath, [join(import.meta.dirname, 'run.mjs'), '--seeds', seeds], {
      encoding: 'utf8',
      env: { ...process.env, PENDING_MODE: mode },
    })
    expect(run.stderr).toBe('')
    expect(run.stdout).toMatch(/scenarios: [1-9]\d* passed, 0 failed, 0 not applicable/)
    const profiles = ['clean', 'timing', 'chaos'].map(
      (profile) => `fuzz ${profile}: ${seeds} timelines, 0 with a violation`,
    )
    for (const profile of profiles) expect(run.stdout).toContain(profile)
    expect(run.status).toBe(0)
  })
}
