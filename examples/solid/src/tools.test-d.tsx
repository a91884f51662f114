import type { DemoTools } from '@countersign/example-page/tools'
import { useMessage } from '@countersign/solid'
import { FileListing } from './FileListing.js'

/** Compiled but never run: a tool's name narrows the types of a part, and wrong use does not compile. */
export function Typed(props: { id: string }) {
  const part = useMessage<DemoTools>(() => props.id)()?.parts[0]
  if (part?.type !== 'tool-call') return null
  // @ts-expect-error there is no such tool
  if (part.name === 'list_file') return null
  // @ts-expect-error what any other tool gives is no listing
  if (part.name !== 'list_files') return <FileListing listing={part.output} />
  // @ts-expect-error the input of this tool has no such member
  part.input?.path satisfies unknown
  part.input?.folder satisfies string | undefined
  return part.output ? <FileListing listing={part.output} /> : null
}
