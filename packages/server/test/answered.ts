import type { AgentOptions } from '@countersign/server'
import { answer, ask, call, collect, counted, input, say, testAgent } from './support.js'

export const weather = (more = {}) =>
  counted('GetWeather', { needsApproval: true, execute: () => ({ temp: 72 }), ...more })

/** Asks for one call each of the given tools, and answers with the payloads. */
export async function answered(
  tools: NonNullable<AgentOptions['tools']>,
  names: readonly string[],
  payloads: readonly Record<string, unknown>[],
  options: Partial<AgentOptions> = {},
) {
  const calls = names.map((name, index) => [`call_${index + 1}`, name, { n: index + 1 }] as const)
  const errors: unknown[] = []
  const { agent, model } = testAgent([call(...calls), say('answer')], {
    tools,
    onError: (error) => errors.push(error),
    ...options,
  })
  const { history, asked } = await ask(agent)
  const resume = payloads.flatMap((payload, index) => {
    const one = asked[index]
    return one === undefined ? [] : [answer(one, payload)]
  })
  const events = await collect(agent, input(history, { resume }))
  return { agent, model, history, asked, resume, events, errors }
}

export const toolMessage = (model: {
  readonly requests: readonly { readonly messages: readonly { role: string; content: unknown }[] }[]
}) => model.requests.at(-1)?.messages.findLast(({ role }) => role === 'tool')?.content
