/** @jsxImportSource solid-js */
import { renderToString } from 'solid-js/web'
import { Pages, type PagesProps } from './parity-page.js'

/** Only ever loaded by `createSolidServer`. */
export const renderPages = (props: PagesProps): string => renderToString(() => <Pages {...props} />)
