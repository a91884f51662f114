import MarkdownIt, { type Token } from 'markdown-it'

/**
 * The assistant's text as data: text, or one of these elements with these attributes and no others. A page renders it as elements, so
 * nothing in it can become markup.
 */
export type Prose = string | ProseElement

export interface ProseElement {
  readonly tag: ProseTag
  readonly attributes: {
    readonly [name in 'href' | 'rel' | 'target' | 'title' | 'start' | 'scope']?: string
  } & { readonly tabIndex?: 0 }
  readonly children: readonly Prose[]
}

const tags = [
  'p',
  'h4',
  'h5',
  'h6',
  'ul',
  'ol',
  'li',
  'blockquote',
  'pre',
  'code',
  'strong',
  'em',
  's',
] as const
const tableTags = ['table', 'thead', 'tbody', 'tr', 'th', 'td'] as const
type ProseTag = (typeof tags)[number] | (typeof tableTags)[number] | 'a' | 'div'

const known = new Map<string, ProseTag>([...tags, ...tableTags].map((tag) => [tag, tag]))

const markdown = new MarkdownIt({ html: false, linkify: true })
  // An image would tell its server that it was seen. While a list streams in, the text before its "-" would be a heading for a moment.
  .disable(['image', 'lheading'])
// "todo.md" is a file here.
markdown.linkify.set({ fuzzyLink: false, fuzzyEmail: false })
markdown.validateLink = (url) => /^(?:https?:\/\/|mailto:)/i.test(url)

/** Markdown with tables, links and code. An unclosed fence, as while text streams in, already counts as code. */
export function parseMarkdown(text: string): readonly Prose[] {
  return childrenOf(markdown.parse(text, {}))
}

/** The tokens are flat: each element has one that opens and one that closes it. */
function childrenOf(tokens: readonly Token[]): readonly Prose[] {
  const root: Prose[] = []
  const open = [root]
  for (const token of tokens) {
    // a paragraph of a list without blank lines
    if (token.hidden) continue
    const around = open.at(-1) ?? root
    if (token.nesting === 1) {
      const children: Prose[] = []
      const element = { ...elementOf(token), children }
      around.push(token.tag === 'table' ? scroller(element) : element)
      open.push(children)
    } else if (token.nesting === -1) open.pop()
    else for (const piece of leavesOf(token)) add(around, piece)
  }
  return root
}

/** What scrolls must be reachable by keyboard. */
const scroller = (element: ProseElement): ProseElement => ({
  tag: 'div',
  attributes: { tabIndex: 0 },
  children: [element],
})

/** Texts beside each other are one, so that it grows in place. */
function add(around: Prose[], piece: Prose): void {
  const last = around.at(-1)
  if (typeof piece === 'string' && typeof last === 'string') around[around.length - 1] = last + piece
  else around.push(piece)
}

function elementOf(token: Token): Omit<ProseElement, 'children'> {
  switch (token.tag) {
    case 'a': {
      const href = token.attrGet('href') ?? ''
      // the address is to be seen, whatever the text says
      return { tag: 'a', attributes: { href, title: href, rel: 'noopener noreferrer', target: '_blank' } }
    }
    case 'ol': {
      // a number in the token, whatever its types say
      const start = token.attrGet('start')
      return { tag: 'ol', attributes: start === null ? {} : { start: String(start) } }
    }
    case 'th':
      return { tag: 'th', attributes: { scope: 'col' } }
    case 'h1':
    case 'h2':
    case 'h3':
      // the page has headings of these levels
      return { tag: 'h4', attributes: {} }
    default:
      return { tag: known.get(token.tag) ?? 'p', attributes: {} }
  }
}

function leavesOf(token: Token): readonly Prose[] {
  switch (token.type) {
    case 'inline':
      return childrenOf(token.children ?? [])
    case 'softbreak':
    case 'hardbreak':
      return ['\n']
    case 'code_inline':
      return [{ tag: 'code', attributes: {}, children: [token.content] }]
    case 'fence':
    case 'code_block':
      return [{ tag: 'pre', attributes: {}, children: [token.content.replace(/\n$/, '')] }]
    case 'hr':
      return [{ tag: 'div', attributes: {}, children: [] }]
    default:
      return token.content === '' ? [] : [token.content]
  }
}
