// A vitest sequencer: starts the slowest test files (browsers, other processes) first, so that they do not delay the end.
import { BaseSequencer } from 'vitest/node'

const slow = [
  'e2e/pages-react',
  'attacks/',
  'test/packed',
  'e2e/pages-',
  'e2e/',
  'interop/langgraph',
  'cost/',
  'docs/code',
  'providers/replay',
  'terminal/test/terminal',
  'mcp/test/',
  'newcomer/',
  'bench/',
  'memory/',
  'client/leaks',
  'machines/',
  'rounds/',
  'chaos/',
  'redis/test/',
  'explore',
  'browser/',
]

const rank = ({ moduleId }) => {
  const at = slow.findIndex((part) => moduleId.includes(part))
  return at === -1 ? slow.length : at
}

export default class SlowFirst extends BaseSequencer {
  async sort(files) {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => rank(a) - rank(b))
  }
}
