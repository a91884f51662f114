// Plays timelines of a model: all of them, or random ones.
import { createHash } from 'node:crypto'
import { quiet, takeOver } from './scheduler.mjs'
import { World } from './world.mjs'

/** More steps than any timeline of our models takes. */
const MAX_STEPS = 400

/**
 * Plays one timeline. `choose` gets the number of actions and answers which one is taken, or nothing to stop there.
 */
async function play(server, model, choose) {
  const world = new World(server, model)
  await world.setUp()
  const taken = []
  for (let step = 0; ; step++) {
    await quiet()
    if (world.violations.length > 0) break
    const actions = world.actions()
    if (actions.length === 0) {
      world.finish()
      break
    }
    if (step === MAX_STEPS) {
      world.violations.push(`ends: nobody has come to an end after ${MAX_STEPS} steps`)
      break
    }
    const choice = await choose(actions.length, world, step)
    if (choice === undefined) return { cut: true, world, taken }
    const action = actions[choice]
    taken.push(action.name)
    action.act()
  }
  return { cut: false, world, taken }
}

/** Every timeline of a model. What comes after a state that was seen before is not played again. */
export async function exhaust(server, model, { most = Number.POSITIVE_INFINITY } = {}) {
  const restore = takeOver()
  const seen = new Set()
  const open = [[]]
  let played = 0
  let ended = 0
  try {
    while (open.length > 0 && played < most) {
      const prefix = open.pop()
      const decisions = []
      const { cut, world, taken } = await play(server, model, async (count, here, step) => {
        if (step < prefix.length) {
          decisions.push(prefix[step])
          return prefix[step]
        }
        const state = digest(await here.state())
        if (seen.has(state)) return undefined
        seen.add(state)
        for (let other = count - 1; other > 0; other--) open.push([...decisions, other])
        decisions.push(0)
        return 0
      })
      played++
      if (!cut) ended++
      if (world.violations.length > 0)
        return result(model, { played, ended, seen, failure: failureOf(model, world, taken) })
    }
    return result(model, { played, ended, seen, isWhole: open.length === 0 })
  } finally {
    restore()
  }
}

/** So many random timelines of a model. `reached` counts the timelines by what came about in them. */
export async function wander(server, model, { seed, timelines }) {
  const restore = takeOver()
  const seen = new Set()
  const distinct = new Set()
  const reached = {}
  try {
    for (let played = 0; played < timelines; played++) {
      const random = randomFrom(seed + played)
      const { world, taken } = await play(server, some(model, random), async (count, here) => {
        seen.add(digest(await here.state()))
        return Math.floor(random() * count)
      })
      for (const what of world.reached()) reached[what] = (reached[what] ?? 0) + 1
      distinct.add(digest(taken.join('\n')))
      if (world.violations.length > 0) {
        const failure = `${failureOf(model, world, taken)}\n  seed ${seed + played}`
        return result(model, { played: played + 1, ended: distinct.size, seen, failure })
      }
    }
    return { ...result(model, { played: timelines, ended: distinct.size, seen }), reached }
  } finally {
    restore()
  }
}

/** A model with some of what may happen around it, if it says so: where everything happens, hardly any call starts. */
function some(model, random) {
  if (!model.drawn) return model
  return { ...model, environment: model.environment.filter(() => random() < 0.3) }
}

/** A state is kilobytes long, and a model has tens of thousands. */
function digest(text) {
  return createHash('sha256').update(text).digest('base64')
}

function result({ name }, { played, ended, seen, failure, isWhole = true }) {
  return { model: name, played, timelines: ended, states: seen.size, isWhole, failure }
}

function failureOf({ name }, { violations, log }, taken) {
  return [
    `${name}: ${violations.join('; ')}`,
    ...taken.map((one) => `  ${one}`),
    '  what was seen:',
    ...log.map((one) => `    ${one}`),
  ].join('\n')
}

/** mulberry32 */
function randomFrom(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}
