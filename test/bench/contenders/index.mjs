import { agUi } from './ag-ui.mjs'
import { aiSdk } from './ai-sdk.mjs'
import { countersign, countersignSync } from './countersign.mjs'
import { immutable, mutable } from './floors.mjs'
import { tanstack } from './tanstack.mjs'

/** All who do the same work, in the order of the tables. */
export const contenders = [mutable, immutable, countersignSync, countersign, aiSdk, tanstack, agUi]
