import { loadComponentTest } from '../../../test/docs/components.js'

await loadComponentTest('vue')
