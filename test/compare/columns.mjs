// The servers that are compared, each as its documentation sets it up, and again with options that its documentation has.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const read = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'))
const { devDependencies } = read('test/package.json')
const versionsOf = (...names) => names.map((name) => `\`${name}\` ${devDependencies[name]}`).join(', ')

export const columns = [
  { key: 'countersign', peer: 'countersign', title: 'Countersign' },
  { key: 'countersign+', peer: 'countersign', title: 'Countersign, configured', option: true },
  { key: 'ai-sdk', peer: 'ai-sdk', title: 'AI SDK' },
  { key: 'ai-sdk+', peer: 'ai-sdk', title: 'AI SDK, signed', option: true },
  { key: 'tanstack', peer: 'tanstack', title: 'TanStack AI' },
  { key: 'tanstack+', peer: 'tanstack', title: 'TanStack AI, resumable', option: true },
  { key: 'langgraph', peer: 'langgraph', title: 'LangGraph' },
  { key: 'langgraph+', peer: 'langgraph', title: 'LangGraph, with auth', option: true },
]

export const versions = {
  'ai-sdk': versionsOf('ai'),
  tanstack: versionsOf('@tanstack/ai'),
  langgraph: versionsOf('langchain', '@langchain/langgraph', '@langchain/langgraph-api'),
}
