import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Section {
  readonly text: string
  readonly items: readonly { readonly text: string; readonly link: string }[]
}

/**
 * Writes what language models read: `llms.txt`, which lists every guide with its first paragraph, `llms-full.txt`, which has all of them,
 * and each guide as Markdown next to its page. The API reference is left out: its pages are made from the types that a package brings.
 */
export function writeTextVersion(docs: string, out: string, sections: readonly Section[]): void {
  const index = readFileSync(join(docs, 'index.md'), 'utf8')
  const tagline = /^ {2}tagline: (.*)$/m.exec(index)?.[1] ?? ''
  const lines = ['# Countersign', '', `> ${tagline}`]
  const guides: string[] = []
  for (const { text, items } of sections) {
    lines.push('', `## ${text}`, '')
    for (const { text: title, link } of items) {
      if (link.endsWith('/')) continue
      const file = `${link.slice(1)}.md`
      const page = withoutComments(readFileSync(join(docs, file), 'utf8'))
      lines.push(`- [${title}](/${file}): ${summaryOf(page)}`)
      guides.push(page)
      mkdirSync(dirname(join(out, file)), { recursive: true })
      writeFileSync(join(out, file), page)
    }
  }
  writeFileSync(join(out, 'llms.txt'), `${lines.join('\n')}\n`)
  writeFileSync(join(out, 'llms-full.txt'), `${lines.slice(0, 3).join('\n')}\n\n${guides.join('\n\n')}`)
  // the Markdown shows its pictures by their names in the folder
  cpSync(join(docs, 'images'), join(out, 'images'), { recursive: true })
}

function withoutComments(page: string): string {
  return page.replace(/^<!--[\s\S]*?-->\n+/gm, '')
}

/** The first paragraph of text, in one line and without links. */
function summaryOf(page: string): string {
  const [paragraph = ''] = page.split(/\n{2,}/).filter((part) => /^[A-Z`*]/.test(part))
  return paragraph.replace(/\s+/g, ' ').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
}
