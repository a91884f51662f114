import { type InferTools, tool, toolDefinition } from '@countersign/core'
import { expectTypeOf } from 'vitest'
import * as z from 'zod'

const input = z.object({ topic: z.string() })
const about = { name: 'search', description: 'Searches', input } as const

const last = tool({
  ...about,
  async *execute({ topic }, { signal }) {
    expectTypeOf(topic).toEqualTypeOf<string>()
    expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
    yield { hits: 1 }
    yield { hits: 2 }
  },
})
const built = tool({
  ...about,
  name: 'built',
  async *execute() {
    yield 'a'
  },
  finalize: (elements) => {
    expectTypeOf(elements).toEqualTypeOf<readonly string[]>()
    return { count: elements.length }
  },
})
const plain = tool({ ...about, name: 'plain', execute: async ({ topic }) => topic.length })
const placed = toolDefinition({ ...about, name: 'placed', output: z.number() }).server(
  async function* () {
    yield 'a'
  },
  (elements) => elements.length,
)

type Tools = InferTools<[typeof last, typeof built, typeof plain, typeof placed]>
expectTypeOf<Tools['search']['output']>().toEqualTypeOf<{ hits: number }>()
expectTypeOf<Tools['built']['output']>().toEqualTypeOf<{ count: number }>()
expectTypeOf<Tools['plain']['output']>().toEqualTypeOf<number>()
expectTypeOf<Tools['placed']['output']>().toEqualTypeOf<number>()

toolDefinition({ ...about, output: z.number() }).server(
  // @ts-expect-error a streamed element is the result, so it must be what `output` describes
  async function* () {
    yield 'a'
  },
)
