import { expect, test } from 'vitest'
import { blocksFor, isTest } from './components.js'

test.each(['react', 'vue', 'svelte', 'solid'])(
  'the page about testing shows a component and a test of it, of at most 20 lines, in %s',
  (framework) => {
    const blocks = blocksFor(framework)
    expect(blocks.map(isTest)).toEqual([false, true])
    const [, { code } = { code: '' }] = blocks
    expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(20)
  },
)
