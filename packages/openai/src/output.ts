import type { ModelRequest } from '@countersign/server'
import { toStrictJsonSchema } from 'openai/lib/transform'

/** The form of a structured reply. In strict mode, which some schemas do not allow, the provider guarantees it. */
export function outputFormat(schema: NonNullable<ModelRequest['output']>) {
  const format = { name: 'output', schema: { ...schema } }
  try {
    return { ...format, schema: { ...toStrictJsonSchema(format.schema) }, strict: true }
  } catch {
    return { ...format, strict: false }
  }
}
