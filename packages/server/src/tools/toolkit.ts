import {
  type AnyClientTool,
  type AnyServerTool,
  isRecord,
  type JsonSchema,
  type Tool,
} from '@countersign/core'
import {
  either,
  expiry,
  flag,
  listOf,
  method,
  object,
  oneOf,
  type Rule,
  type Rules,
  text,
  wholeNumber,
} from '../encoding/check-options.js'
import { didYouMean } from '../encoding/did-you-mean.js'
import { inWords } from '../encoding/in-words.js'
import type { ModelTool } from '../model/model.js'
import { anything, parametersOf } from './schema.js'
import { invalidTool } from './tool-errors.js'

/** A tool of an agent, with its place: the server or the client. */
export type AgentTool = AnyServerTool | AnyClientTool

/** The tools of one run, by name. Names never index a plain object: they may come from a model or a client. */
export interface Toolkit {
  get(name: string): AgentTool | undefined
  readonly names: readonly string[]
  readonly forModel: readonly ModelTool[]
}

/**
 * @throws CountersignError `invalid-tool`: two tools with one name, a reserved name, no description, an option of a wrong type, or no
 * JSON Schema of the parameters.
 */
export function createToolkit(tools: readonly AgentTool[]): Toolkit {
  const byName = new Map<string, AgentTool>()
  for (const tool of tools) {
    checkTool(tool)
    if (byName.has(tool.name)) {
      throw invalidTool(`There are two tools named ${JSON.stringify(tool.name)}: rename one.`, {
        tool: tool.name,
      })
    }
    byName.set(tool.name, tool)
  }
  return toolkit(byName, tools.map(describeTool))
}

/**
 * The agent's tools and those of the client (`RunAgentInput.tools`). The agent's own definition overrides the client's; a
 * client's tool can neither shadow a server's nor use a reserved name.
 */
export function withClientTools(
  kit: Toolkit,
  offered: readonly Tool[],
  warn: (message: string) => void,
): Toolkit {
  const byName = new Map<string, AgentTool>()
  const described: ModelTool[] = []
  for (const { name, description, parameters } of offered) {
    const known = kit.get(name)
    if (known?.location === 'server')
      warn(`The client's tool ${JSON.stringify(name)} would shadow a server tool; it is left out.`)
    else if (isReserved(name))
      warn(`The client's tool ${JSON.stringify(name)} has a reserved name; it is left out.`)
    if (known !== undefined || isReserved(name) || byName.has(name)) continue
    const schema: JsonSchema = parameters ?? { type: 'object' }
    const shown = { name, description, parameters: schema }
    byName.set(name, { ...shown, input: anything, location: 'client', execute: notHere })
    described.push(shown)
  }
  if (byName.size === 0) return kit
  for (const name of kit.names) {
    const tool = kit.get(name)
    if (tool !== undefined) byName.set(name, tool)
  }
  return toolkit(byName, [...kit.forModel, ...described])
}

/**
 * A toolkit of these tools only: those of `kit`, which may be named, and other server tools.
 *
 * @throws CountersignError `invalid-tool`, also for a name that `kit` does not have, and for another client tool.
 */
export function chooseTools(kit: Toolkit, chosen: readonly (string | AgentTool)[]): Toolkit {
  const added = createToolkit(
    chosen.filter((item): item is AgentTool => typeof item !== 'string' && kit.get(item.name) !== item),
  )
  const described = new Map([...kit.forModel, ...added.forModel].map((tool) => [tool.name, tool]))
  const byName = new Map<string, AgentTool>()
  for (const name of chosen.map((item) => (typeof item === 'string' ? item : item.name))) {
    const tool = added.get(name) ?? kit.get(name)
    if (tool === undefined || added.get(name)?.location === 'client') {
      const message = `A step can't have the tool ${JSON.stringify(name)}: name a tool of the agent or the client, or give a server tool.`
      throw invalidTool(message, { tool: name })
    }
    byName.set(name, tool)
  }
  const forModel = [...byName.keys()].flatMap((name) => described.get(name) ?? [])
  return toolkit(byName, forModel)
}

/** Names that begin with `client.` are reserved for Countersign; if a model calls one, the call is refused. */
export function isReserved(name: string): boolean {
  return name.startsWith('client.')
}

function toolkit(byName: ReadonlyMap<string, AgentTool>, forModel: readonly ModelTool[]): Toolkit {
  return { get: (name) => byName.get(name), names: [...byName.keys()], forModel }
}

function describeTool(tool: AgentTool): ModelTool {
  return { name: tool.name, description: tool.description, parameters: parametersOf(tool) }
}

/** The longest timeout of a signal, in milliseconds. */
const MAX_TIMEOUT = 2 ** 32 - 1

function checkTool(tool: AgentTool): void {
  if (typeof tool?.name !== 'string' || tool.name === '' || isReserved(tool.name)) {
    const message =
      'A tool needs a name, and not one that begins with "client.": build it with tool() or toolDefinition().'
    throw invalidTool(message, { tool: tool?.name })
  }
  const { location }: { location: string | undefined } = tool
  if (location !== 'server' && location !== 'client') {
    const message = `The tool ${tool.name} is not placed yet: give toolDefinition(...).server(execute) or .client(execute).`
    throw invalidTool(message, { tool: tool.name })
  }
  if (location === 'server' && typeof tool.execute !== 'function') {
    const message = `The tool ${tool.name} runs on the server and has no execute: give it that function, or build it with clientTool() if it runs in the page.`
    throw invalidTool(message, { tool: tool.name, option: 'execute' })
  }
  const { timeout } = tool
  if (timeout !== undefined && !(Number.isInteger(timeout) && timeout > 0 && timeout <= MAX_TIMEOUT)) {
    const message = `timeout of the tool ${tool.name} must be a whole number of milliseconds from 1 to ${MAX_TIMEOUT}, not ${timeout}.`
    throw invalidTool(message, { tool: tool.name })
  }
  checkTerms(tool)
}

const orNone = (rule: Rule) => (value: unknown) => value === undefined || rule.fits(value)

const terms: Rule = {
  expected: 'an object with required (true or false) and, where wanted, message and options',
  fits: (value) =>
    isRecord(value) &&
    flag.fits(value.required) &&
    orNone(text)(value.message) &&
    orNone(listOf('scopes', oneOf('deny', 'once', 'session')))(value.options),
}

const schema: Rule = {
  expected: 'a schema of a library that implements Standard Schema, such as Zod',
  fits: (value) => Object(value) === value && '~standard' in Object(value),
}

/** A wrong option would otherwise be found only when it is needed, or never: a misspelt `needsApproval` would ask nobody. */
const rules: Rules<AnyServerTool> = {
  name: text,
  description: { ...text, isRequired: true },
  input: { ...schema, isRequired: true },
  output: schema,
  location: text,
  execute: method,
  finalize: method,
  toolServer: text,
  parameters: object,
  metadata: object,
  annotations: object,
  timeout: wholeNumber,
  needsApproval: either(flag, method),
  approval: terms,
  allowEdits: either(flag, listOf('keys', text)),
  scopes: listOf('"once" and "session"', oneOf('once', 'session')),
  scopeKey: method,
  mandates: method,
  version: text,
  bind: method,
  redact: method,
  preview: method,
  previewUnasked: flag,
  message: either(text, method),
  expiresIn: expiry,
  failureMode: oneOf('return', 'throw'),
  idempotent: flag,
}

function checkTerms(tool: AgentTool): void {
  for (const option of Object.keys(tool)) {
    if (Object.hasOwn(rules, option)) continue
    const message = `The tool ${tool.name} has an option ${option}, which there is not.${didYouMean(option, Object.keys(rules))} There are ${Object.keys(rules).join(', ')}. Data of your own belongs in metadata.`
    throw invalidTool(message, { tool: tool.name, option })
  }
  for (const [option, { fits, expected, isRequired }] of Object.entries(rules)) {
    const value: unknown = Reflect.get(tool, option)
    if (value === undefined ? !isRequired : fits(value)) continue
    const otherwise = isRequired ? '' : ', or be left out'
    const message = `${option} of the tool ${tool.name} must be ${expected}${otherwise}; it is ${inWords(value)}.`
    throw invalidTool(message, { tool: tool.name, option })
  }
}

function notHere(): never {
  throw invalidTool('A client tool does not run on the server.')
}
