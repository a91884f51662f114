import type { Connection } from '@countersign/client'
import { verified } from '@countersign/testing/suites'
import { expect, onTestFinished } from 'vitest'

/** A connection to our own server: the test fails if any run of it breaks a rule for producers, whatever else the test looks at. */
export function strict(connection: Connection): Connection {
  const breaches: unknown[] = []
  onTestFinished(() => expect(breaches).toEqual([]))
  return verified(connection, { onBreach: (error) => breaches.push(error) })
}
