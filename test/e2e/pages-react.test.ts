import { full } from '../full.js'
import { describePage, withoutLooks } from './page-script.js'

describePage('react', full ? undefined : withoutLooks)
