// The options that the sources of packages declare, so that a test can require something of every option there is.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

export interface Option {
  readonly name: string
  /** As it is written. */
  readonly type: string
}

interface Declared {
  /** By the name of the interface. */
  readonly declarations: ReadonlyMap<string, ts.InterfaceDeclaration>
  /** The options of an interface, with those of the interfaces it extends. */
  optionsOf(name: string): readonly Option[]
}

export function declaredOptions(...packages: readonly string[]): Declared {
  const declarations = new Map<string, ts.InterfaceDeclaration>()
  for (const name of packages) {
    const folder = join(import.meta.dirname, '../packages', name, 'src')
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts')) continue
      const source = readFileSync(join(folder, file), 'utf8')
      ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true).forEachChild((node) => {
        if (ts.isInterfaceDeclaration(node)) declarations.set(node.name.text, node)
      })
    }
  }

  function optionsOf(name: string): readonly Option[] {
    const declaration = declarations.get(name)
    if (declaration === undefined) throw new Error(`There is no interface ${name}.`)
    const own = declaration.members.flatMap((member): Option[] =>
      ts.isPropertySignature(member)
        ? [{ name: member.name.getText(), type: member.type?.getText() ?? '' }]
        : [],
    )
    const bases = (declaration.heritageClauses ?? []).flatMap(({ types }) => types)
    const inherited = bases.flatMap((base) => {
      const kind = base.expression.getText()
      const [of, keys] = /^(?:Omit|Pick)$/.test(kind) ? (base.typeArguments ?? []) : [base.expression]
      if (of === undefined) return []
      const picked = (option: Option) => kind !== 'Pick' || keys?.getText().includes(`'${option.name}'`)
      return optionsOf(of.getText()).filter(picked)
    })
    return [...own, ...inherited.filter((option) => own.every((one) => one.name !== option.name))]
  }

  return { declarations, optionsOf }
}
