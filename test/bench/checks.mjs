import { isDeepStrictEqual } from 'node:util'

/** What has to come out, for each kind of scenario; a contender that drops, doubles or reorders something fails the whole run. */

export function checkText(result, scenario) {
  expect(result.text === scenario.text, `the text differs: ${difference(result.text, scenario.text)}`)
  const before = scenario.history.map(({ text }) => text)
  expect(
    isDeepStrictEqual(result.history, before),
    `the history differs: ${result.history?.length} of ${before.length} messages`,
  )
}

export function checkArguments(result, scenario) {
  expect(isDeepStrictEqual(result.input, JSON.parse(scenario.text)), 'the arguments differ')
}

/** Every call in order with its result; where the contender keeps answers, every one of them a yes. */
export function checkCalls(result, scenario) {
  const ids = scenario.calls.map(({ toolCallId }) => toolCallId)
  expect(
    isDeepStrictEqual(
      result.calls.map(({ id }) => id),
      ids,
    ),
    `the calls differ: ${result.calls.length} of ${ids.length}`,
  )
  const open = result.calls.filter(({ approved, output }) => approved === false || output !== 'removed')
  expect(
    open.length === 0,
    `${open.length} calls were not approved and run, the first ${JSON.stringify(open[0])}`,
  )
  const answers = scenario.calls.map(({ approvalId }) => approvalId)
  const each = isDeepStrictEqual([...result.sent].sort(), [...answers].sort())
  expect(each, `the request took ${result.sent.length} answers along, where there are ${answers.length}`)
  expect(result.text === 'Done.', `the text after the results is ${JSON.stringify(result.text)}`)
}

/** A contender that publishes every delta must have shown every one of them growing. */
export function checkPublished(result, least) {
  expect(result.published >= least, `only ${result.published} of ${least} deltas were published`)
}

function expect(holds, otherwise) {
  if (!holds) throw new Error(otherwise)
}

function difference(found = '', wanted) {
  if (found.length !== wanted.length) return `${found.length} of ${wanted.length} characters`
  let at = 0
  while (at < wanted.length && found[at] === wanted[at]) at++
  return `from character ${at} on`
}
