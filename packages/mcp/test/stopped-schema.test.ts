import { expect, test } from 'vitest'
import { createBounded } from '../src/bounded.js'
import { inputSchemaOf } from '../src/schemas.js'

test.each([1, 2, 3])(
  'a schema that is stopped at read %i, because the machine was busy, is read again from the beginning',
  async (stopAt) => {
    let reads = 0
    const properties = {
      get path() {
        // Waits without the processor, as on a busy machine, until the watchdog stops it.
        if (++reads === stopAt) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
        return { type: 'string' }
      },
    }
    const tool = { name: 'remove', inputSchema: { type: 'object' as const, properties, required: ['path'] } }
    const schema = inputSchemaOf({ tool, server: 'files', bounded: createBounded() })
    expect(reads).toBeGreaterThan(stopAt)
    expect(await schema['~standard'].validate({ path: 'a' })).toEqual({ value: { path: 'a' } })
    expect(await schema['~standard'].validate({})).toHaveProperty('issues')
  },
)
