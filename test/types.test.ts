import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

/** What the type checker alone reads, and the lines of the specification that hold when it finds nothing wrong there. */
const readByTheChecker = {
  'packages/core/test/types.test-d.ts':
    'S4.33-S4.36 the shapes of messages, calls, approvals and snapshots; H29 of tools that only throw, and of the subject',
  'packages/server/test/prompt.test-d.ts':
    'S0.17-S0.18 S0.22-S0.24 the parts of prompts and the unions they belong to',
  'packages/core/test/tools-streaming.test-d.ts': 'the types of tools that stream',
  'packages/server/test/types.test-d.ts':
    'S0.1 S0.10 S0.15 S3.1-S3.4 S3.50 approval of tools, its decisions, scopes and policies',
  'packages/react/test/types.test-d.ts': 'H29 useChat of React, typed by its tools',
  'packages/solid/test/types.test-d.tsx': 'H29 useChat of Solid, typed by its tools',
  'packages/vue/test/types.test-d.ts': 'H29 useChat of Vue, typed by its tools',
  'packages/svelte/test/types.test-d.ts': 'H29 createChat of Svelte, typed by its tools',
}

const files = Object.keys(readByTheChecker)
let program: ts.Program | undefined

/** One program for all of them: what they share is read once. */
function programOfAll(): ts.Program {
  const config = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent({ ...config.config, include: [], files }, ts.sys, root)
  return ts.createProgram(
    files.map((file) => join(root, file)),
    options,
  )
}

for (const [file, what] of Object.entries(readByTheChecker)) {
  test(`${what}, to the type checker`, () => {
    program ??= programOfAll()
    const source = program.getSourceFile(join(root, file))
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]
    expect(source).toBeDefined()
    expect(found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))).toEqual([])
  })
}
