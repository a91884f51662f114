// Checks all sources and tests and writes the declarations of the packages, in one run of the compiler.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import ts from 'typescript'
import { offersCommonJs, packages, root } from './packages.mjs'

const config = ts.getParsedCommandLineOfConfigFile(
  join(root, 'tsconfig.json'),
  { noEmit: false, declaration: true, emitDeclarationOnly: true },
  { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (problem) => fail([problem]) },
)
const program = ts.createProgram(config.fileNames, config.options)

function fail(problems) {
  const host = {
    getCanonicalFileName: (name) => name,
    getCurrentDirectory: () => root,
    getNewLine: () => '\n',
  }
  console.error(ts.formatDiagnostics(problems, host))
  process.exit(1)
}

/** Declarations for the CommonJS files import each other with the extension .cjs. */
const asCommonJs = (text) => text.replace(/((?:from |import\()['"]\.{1,2}\/[^'"]*)\.js(?=['"])/g, '$1.cjs')

/** `packages/core/src/json/reader.ts` is declared in `packages/core/dist/json/reader.d.ts`. */
function writeDeclarations(one) {
  const sources = join(one.folder, 'src/')
  const problems = []
  for (const source of program.getSourceFiles()) {
    if (!source.fileName.startsWith(sources)) continue
    problems.push(...program.getDeclarationDiagnostics(source))
    const write = (_, text) => {
      const path = join(one.folder, 'dist', relative(sources, source.fileName)).replace(/\.tsx?$/, '')
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(`${path}.d.ts`, text)
      if (offersCommonJs(one)) writeFileSync(`${path}.d.cts`, asCommonJs(text))
    }
    program.emit(source, write, undefined, true)
  }
  return problems
}

const problems = [
  ...program.getConfigFileParsingDiagnostics(),
  ...program.getOptionsDiagnostics(),
  ...program.getGlobalDiagnostics(),
  ...program.getSourceFiles().flatMap((file) => program.getSyntacticDiagnostics(file)),
  ...program.getSourceFiles().flatMap((file) => program.getSemanticDiagnostics(file)),
]
problems.push(
  ...packages.flatMap((one) => (existsSync(join(one.folder, 'src')) ? writeDeclarations(one) : [])),
)
if (problems.length > 0) fail(ts.sortAndDeduplicateDiagnostics(problems))
