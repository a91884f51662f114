import * as react from '@countersign/react'
import * as solid from '@countersign/solid'
import * as svelte from '@countersign/svelte'
import * as vue from '@countersign/vue'
import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { createRoot } from 'solid-js'
import { describe, expect, test } from 'vitest'
import { effectScope } from 'vue'

// biome-ignore lint/suspicious/noExplicitAny: code without types is what this is about
type Use = (options: any) => unknown

const bindings: Readonly<Record<string, Use>> = {
  react: (options) => {
    const Page = () => {
      react.useChat(options)
      return null
    }
    return renderToString(createElement(Page))
  },
  solid: (options) => createRoot(() => solid.useChat(options)),
  svelte: (options) => svelte.createChat(options).client,
  vue: (options) => effectScope().run(() => vue.useChat(options).client.value),
}

describe.each(Object.entries(bindings))('%s', (name, use) => {
  test.each([null, undefined, {}])('options that are %j lack a connection, as the error says', (options) => {
    const given = name === 'react' ? [options] : [options, () => options]
    for (const one of given)
      expect(() => use(one)).toThrow(
        expect.objectContaining({ code: 'invalid-option', data: { option: 'connection' } }),
      )
  })
})
