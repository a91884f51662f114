import { loadComponentTest } from '../../../test/docs/components.js'

await loadComponentTest('solid')
