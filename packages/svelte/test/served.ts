import { render } from 'svelte/server'
import Pages from './Pages.svelte'
import type { PagesProps } from './probe.js'

/** Only ever loaded by `createSvelteServer`. */
export const renderPages = (props: PagesProps): string => render(Pages, { props }).body
