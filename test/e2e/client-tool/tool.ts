import { toolDefinition } from '@countersign/core'
import { z } from 'zod'

export const locate = toolDefinition({
  name: 'locate',
  description: 'Tells where the user is.',
  input: z.object({}),
  output: z.string(),
})
