import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const packages = join(import.meta.dirname, '..', '..', 'packages')

function sourceOf(path: string): ts.SourceFile {
  return ts.createSourceFile(path, readFileSync(join(packages, path), 'utf8'), ts.ScriptTarget.Latest, true)
}

/** A field of AG-UI as the strict reader of core describes it. */
export interface Field {
  readonly name: string
  readonly isRequired: boolean
  /** The name of a kind, of a plain value (`string`, `object`, ...), or `one of` for fixed words. */
  readonly kind: string
  /** The words of `one of`. */
  readonly words: readonly string[]
  /** `[]` for a list, `[+]` for one that is not empty, `[string]` for a list or a string. */
  readonly list: string | undefined
}

/** One member of a kind: `message role=user`. */
export interface Kind {
  readonly kind: string
  readonly tag: string | undefined
  readonly value: string
  readonly fields: readonly Field[]
}

/** What core's strict reader knows of AG-UI, out of the description that it is compiled from. */
export function agUiKinds(): readonly Kind[] {
  const source = sourceOf('core/src/protocol/validate.ts')
  const describe = source.statements.find(
    (node): node is ts.FunctionDeclaration =>
      ts.isFunctionDeclaration(node) && node.name?.text === 'describe',
  )
  if (describe === undefined) throw new Error('validate.ts has no function describe() any more')
  const script = ts.transpile(describe.getText(source))
  const text: string = new Function(`${script}; return describe()`)()
  return text.split('\n').flatMap((line) => {
    const [, kind = '', tag, values = '', fields = ''] = /(\w+)(?: (\w+)=([\w|]+))?(.*)/.exec(line) ?? []
    return values.split('|').map((value) => ({ kind, tag, value, fields: fieldsOf(fields) }))
  })
}

function fieldsOf(text: string): Field[] {
  const found = text.matchAll(/([\w*]+)(\?)?~?\^?(?:=([\w|-]+)|:(\w+))?(\[.*?\])?/g)
  return [...found].map(([, name = '', optional, words, kind = 'string', list]) => ({
    name,
    isRequired: optional === undefined,
    kind: words === undefined ? kind : 'one of',
    words: words?.split('|') ?? [],
    list,
  }))
}

/** `message role=user: content` for each described field. */
export function agUiFields(): readonly string[] {
  return agUiKinds().flatMap(({ kind, tag, value, fields }) => {
    const label = tag === undefined ? kind : `${kind} ${tag}=${value}`
    return fields.map(({ name }) => `${label}: ${name}`)
  })
}

/** Functions that give what a peer said in `metadata.countersign`. */
const READERS = new Set(['getCountersignMetadata', 'ownOf', 'readCallMetadata'])

/** The names that the sources read from `metadata.countersign`, wherever it stands. */
export function ownFields(): readonly string[] {
  const names = new Set<string>()
  for (const path of ['core', 'server', 'client', 'ai-sdk'].flatMap(sourcesOf)) {
    const source = sourceOf(path)
    /** Variables that hold the part of a peer, by name; the sources use such a name for nothing else in one file. */
    const holders = new Set<string>()
    const isOwn = (node: ts.Expression | undefined): boolean =>
      node !== undefined &&
      ((ts.isCallExpression(node) && READERS.has(node.expression.getText(source))) ||
        (ts.isIdentifier(node) && holders.has(node.text)))
    const visit = (node: ts.Node): void => {
      if (ts.isVariableDeclaration(node) && isOwn(node.initializer)) {
        if (ts.isIdentifier(node.name)) holders.add(node.name.text)
        else for (const name of boundNames(node.name)) names.add(name)
      }
      if (ts.isPropertyAccessExpression(node) && isOwn(node.expression)) names.add(node.name.text)
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return [...names].sort()
}

function sourcesOf(name: string): readonly string[] {
  return readdirSync(join(packages, name, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(name, 'src', path))
}

function boundNames(pattern: ts.BindingPattern): readonly string[] {
  return pattern.elements.flatMap((element) => {
    if (!ts.isBindingElement(element) || element.dotDotDotToken !== undefined) return []
    return [(element.propertyName ?? element.name).getText()]
  })
}

/** The names of CUSTOM events that the machine reads. */
export function customEvents(): readonly string[] {
  const sources = ['step', 'full-steps'].map((name) => sourceOf(`core/src/machine/${name}.ts`))
  const names = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isCaseClause(node) && ts.isStringLiteral(node.expression)) names.add(node.expression.text)
    ts.forEachChild(node, visit)
  }
  sources.forEach(visit)
  return [...names].sort()
}

/** `AiSdkTool: toolCallId` for each field of a type that a source declares, exported or not. */
export function declaredFields(path: string): readonly string[] {
  const source = sourceOf(path)
  const found = new Set<string>()
  const visit =
    (owner: string) =>
    (node: ts.Node): void => {
      if (ts.isPropertySignature(node)) found.add(`${owner}: ${node.name.getText(source)}`)
      ts.forEachChild(node, visit(owner))
    }
  for (const node of source.statements)
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node))
      ts.forEachChild(node, visit(node.name.text))
  return [...found].sort()
}
