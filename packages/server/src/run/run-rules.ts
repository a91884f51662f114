import { numberFrom, object, type Rules, withMethods } from '../encoding/check-options.js'
import { outputRules } from '../scope/agent-rules.js'
import type { RunOptions } from './run.js'

const signal = withMethods('an AbortSignal', 'addEventListener', 'throwIfAborted')

/** What each option of a run must be. */
export const runRules: Rules<RunOptions> = {
  ...outputRules,
  signal,
  disconnected: signal,
  context: object,
  answers: withMethods('an answer queue', 'take', 'close'),
  thread: withMethods('what agent.openThread() resolves to', 'take', 'close'),
  delivered: withMethods('a promise', 'then'),
  maxSteps: numberFrom(0),
}
