import { full } from '../full.js'
import { describePage, everyFramework } from './page-script.js'

describePage('svelte', full ? undefined : everyFramework)
