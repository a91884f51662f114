import { checkPublished } from '../checks.mjs'
import { contenders } from '../contenders/index.mjs'
import { compare } from '../measure.mjs'

/** Lets all contenders do one kind of work in several sizes, checks what came out and gives the points of one table. */
export async function timed({ kind, sizes, scenario, check, count, least, ...how }) {
  const points = await compare({
    contenders,
    sizes,
    count,
    ...how,
    open: (contender, size) => contender[kind](scenario(size)),
    check(result, size, contender) {
      check(result, scenario(size))
      if (least && contender.publishesAll) checkPublished(result, least(size))
    },
  })
  return { sizes, points, names: Object.fromEntries(contenders.map(({ id, name }) => [id, name])) }
}
