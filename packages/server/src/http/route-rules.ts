import {
  either,
  flag,
  listOf,
  MAX_DELAY,
  method,
  milliseconds,
  numberFrom,
  object,
  oneOf,
  text,
  wholeNumber,
} from '../encoding/check-options.js'

/** What each option of a route must be. Every route takes all names, so that an application can give one object to all its routes. */
export const routeRules = {
  context: object,
  keepAlive: milliseconds,
  prepare: method,
  live: flag,
  goOnFor: numberFrom(0, MAX_DELAY),
  waitUntil: method,
  origins: either(listOf('origins', text), oneOf('any')),
  maxRuns: wholeNumber,
}

/** The same for routes that get the context from each request. */
export const handlerRules = { ...routeRules, context: method }
