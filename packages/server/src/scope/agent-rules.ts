import { isRecord } from '@countersign/core'
import {
  either,
  expiry,
  flag,
  group,
  listOf,
  method,
  milliseconds,
  object,
  oneOf,
  positiveNumber,
  type Rule,
  type Rules,
  text,
  wholeNumber,
  withMethods,
} from '../encoding/check-options.js'
import { ledgerRule } from '../ledger/ledger.js'
import { limitRules } from '../limits.js'
import type { OutputOptions } from './output.js'
import type { StepOverrides } from './prepare-step.js'
import type { AgentOptions, ApprovalOptions } from './settings.js'

const modelRule: Rule = {
  expected: 'an object with an `id` (text) and a stream() method',
  fits: (value) => isRecord(value) && typeof value.stream === 'function' && typeof value.id === 'string',
}

/** Whether its list and length are right is checked with the keys. */
const secretRule: Rule = {
  expected: 'text, bytes (a Uint8Array) or a list of them',
  fits: (value) => [value].flat().every((one) => typeof one === 'string' || one instanceof Uint8Array),
}

const epochRule: Rule = {
  expected: 'a Date, such as new Date("2026-01-31T12:00:00Z")',
  fits: (value) => value instanceof Date && !Number.isNaN(value.getTime()),
}

const approvalRules: Rules<ApprovalOptions> = {
  secret: secretRule,
  ledger: ledgerRule,
  epoch: epochRule,
  expiresIn: expiry,
  policy: method,
  shadow: method,
  permission: oneOf('read', 'ask', 'auto'),
  redact: method,
  confirm: method,
  askAsTool: flag,
  requireToken: flag,
  onAudit: method,
  generateId: method,
  lease: milliseconds,
  wait: milliseconds,
  previewTimeout: milliseconds,
}

export const outputRules: Rules<OutputOptions> = {
  output: {
    expected: 'a Standard Schema, such as z.object({ ... })',
    fits: (value) => {
      const standard: unknown = Object(value)['~standard']
      return isRecord(standard) && typeof standard.validate === 'function'
    },
  },
  outputSchema: object,
}

export const agentRules: Rules<AgentOptions> = {
  ...outputRules,
  model: { ...modelRule, isRequired: true },
  tools: listOf('tools', { fits: () => true }),
  system: text,
  prepareStep: method,
  maxSteps: wholeNumber,
  concurrency: either(wholeNumber, oneOf('unbounded')),
  approvals: group(approvalRules),
  runLog: withMethods('a run log', 'begin', 'read'),
  threads: withMethods(
    'a thread store',
    'load',
    'append',
    'hold',
    'release',
    'list',
    'rename',
    'remove',
    'abandoned',
  ),
  acceptUploads: flag,
  answerChannel: withMethods('an answer channel', 'open', 'deliver'),
  limits: group(limitRules),
  timeouts: group({ model: positiveNumber, run: positiveNumber }),
  runTools: flag,
  trustSystemMessages: flag,
  now: method,
  generateId: method,
  warn: method,
  onError: method,
  observe: method,
}

export const stepRules: Rules<StepOverrides> = {
  model: modelRule,
  system: text,
  tools: listOf('tools and names of tools', { fits: () => true }),
  messages: listOf('messages', object),
}
