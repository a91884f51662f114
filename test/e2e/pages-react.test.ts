import { full } from '../full.js'
import { describePage, onePage } from './page-script.js'

describePage('react', full ? undefined : onePage)
