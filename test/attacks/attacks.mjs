// Plays every attack against the server as it is, and then against servers without the checks that stop it. Prints what came of each.
// `npm run attacks [-- <part of a name or of a family's> --ledger file|redis|postgres]`: against another ledger than the one in memory they are played
// once, with all checks in place.
import { rmSync } from 'node:fs'
import { fail, readArguments } from '../../scripts/arguments.mjs'
import { buildServer, folder, misplaced } from './build.mjs'
import { checks, editsOf } from './checks.mjs'
import { families } from './families.mjs'
import { ledgersOf } from './ledgers.mjs'
import { codeOf, play } from './play.mjs'

const { values, positionals } = readArguments('attacks', {
  options: { ledger: { type: 'string', default: 'memory' } },
  words: 'PART OF A NAME',
})
const only = positionals[0] ?? ''
const chosen = families.flatMap(({ family, attacks }) =>
  attacks.filter(({ name }) => `${family}: ${name}`.includes(only)).map((attack) => ({ family, ...attack })),
)
if (chosen.length === 0) fail(`No attack and no family has "${only}" in its name.`)
const names = chosen.map(({ name }) => name)
const twice = names.find((name, index) => names.indexOf(name) < index)
if (twice !== undefined) throw new Error(`Two attacks are named "${twice}".`)

const lost = misplaced(Object.keys(checks).flatMap(editsOf))
if (lost.length > 0)
  throw new Error(`These checks have moved; say in checks.mjs where they are:\n${lost.join('\n')}`)

const ledgers = await ledgersOf(values.ledger)
if (ledgers === undefined) process.exit(1)
const wrong = []
try {
  wrong.push(...(await playAll()))
  if (ledgers.kind === 'memory') wrong.push(...(await playWithoutChecks()))
} finally {
  rmSync(folder, { recursive: true, force: true })
  await ledgers.stop()
}
console.log(wrong.length === 0 ? 'Everything as stated.' : `${wrong.length} not as stated.`)
process.exitCode = wrong.length === 0 ? 0 : 1

async function playAll() {
  const built = await buildServer('whole')
  const failed = []
  const total = { unauthorised: 0, crashes: 0, elsewise: 0 }
  console.log(`${'attack'.padEnd(72)} ${'runs'.padStart(4)}  ${'refused as'.padEnd(20)} ok`)
  let family
  for (const attack of chosen) {
    if (attack.family !== family) console.log(`\n${attack.family}`)
    family = attack.family
    const played = await play(built, attack, ledgers)
    const { executions, unauthorised, refused, through, ok, codes, breaches, crashes } = played
    total.unauthorised += unauthorised
    if (crashes.length > 0) total.crashes++
    if (!refused || (through && unauthorised === 0)) total.elsewise++
    const code = codeOf(attack, ledgers)
    const said = refused ? code : `${codes.join(', ') || 'nothing'} (not ${code})`
    console.log(
      `${attack.name.padEnd(72)} ${String(executions).padStart(4)}  ${said.padEnd(20)} ${ok ? 'ok' : 'FAILED'}`,
    )
    for (const what of [...breaches, ...crashes]) console.log(`    ${what}`)
    if (!ok) failed.push(attack.name)
  }
  const { unauthorised, crashes, elsewise } = total
  console.log(
    `\nledger: ${ledgers.kind}, attacks: ${chosen.length}, unauthorised executions: ${unauthorised}, crashes: ${crashes}, not refused as stated: ${elsewise}\n`,
  )
  return failed
}

/** Without the check it names an attack gets through; where another check stands behind it, without both. */
async function playWithoutChecks() {
  const failed = []
  const counts = { alone: 0, both: 0 }
  const without = builder()
  console.log(`${'without the check'.padEnd(72)} ${'runs'.padStart(4)}  got through`)
  for (const attack of chosen) {
    const { name, check, behind = [], stands, chance = false } = attack
    const alone = await play(await without([check]), attack)
    const both =
      alone.through || behind.length === 0 ? undefined : await play(await without([check, ...behind]), attack)
    if (alone.through) counts.alone++
    if (both?.through) counts.both++
    console.log(`${name.padEnd(72)} ${String(alone.executions).padStart(4)}  ${told(attack, alone, both)}`)
    const expected = alone.through
      ? chance || (behind.length === 0 && stands === undefined)
      : (both?.through ?? stands !== undefined)
    if (expected) continue
    failed.push(`${name} without its check`)
    console.log(`    NOT AS STATED: ${JSON.stringify({ alone, both })}`)
  }
  console.log(
    `\nwithout their check ${counts.alone} of ${chosen.length} attacks get through, without those behind it too ${counts.both} more\n`,
  )
  if (only === '' && counts.alone < 45) failed.push('too few attacks get through without their check')
  return failed
}

/** Builds a server without some checks, once for each choice of them. */
function builder() {
  const builds = new Map()
  return (taken) => {
    const key = taken.join(' + ')
    if (!builds.has(key)) builds.set(key, buildServer(`without-${builds.size}`, taken.flatMap(editsOf)))
    return builds.get(key)
  }
}

function told({ check, behind, stands }, alone, both) {
  const where = `${check} (${editsOf(check)[0].file.replace('/src/', '/')})`
  if (alone.through) return `yes, without ${where}`
  if (both?.through) return `not without ${where}; without ${behind.join(', ')} too`
  return `not without ${where}; ${stands ?? 'nothing is known to stand behind it'}`
}
