// From counts to the words of the table. Nothing else writes a word into a cell.

/**
 * `approved`, `denied`, `edited`: calls as the user approved, denied or (where the server offered it) edited them. `ran`: calls as the tool
 * counted them. `owed`: an approved call has to run. `told`: the page was told that something went wrong.
 */
export function verdictOf({ cannot, stream, flood, ...found }) {
  if (cannot !== undefined) return 'does not apply'
  if (stream !== undefined) return stream === 'whole' ? 'whole answer' : 'rest is lost'
  if (flood !== undefined) return flood.said < 32 ? 'model waits' : flood.grown > 32 ? 'buffers all' : 'bounded'
  return verdictOfRuns(found)
}

function verdictOfRuns({ approved, denied = [], edited = [], ran, late, owed, told, toldNotSent }) {
  const key = ({ to, amount }) => `${to} ${amount}`
  const has = (calls, call) => calls.some((one) => key(one) === key(call))
  const times = (call) => ran.filter((one) => key(one) === key(call)).length
  if (ran.some((call) => has(denied, call))) return 'ran after a denial'
  if (ran.some((call) => ![approved, edited].some((calls) => has(calls, call)))) return 'ran unapproved'
  if (ran.some((call) => times(call) > 1)) return 'ran twice'
  if (ran.length === 0 && owed) return told ? 'not run, and says so' : 'lost'
  if (ran.length === 0) return 'refused'
  if (has(edited, ran[0])) return 'ran as edited'
  if (late) return 'ran late'
  return toldNotSent ? 'ran, but says it did not' : 'ran once'
}
