import { describePage } from './page-script.js'

describePage('vue')
