import type { MandateOffer, Preview } from '@countersign/core'
import type { Workspace } from './workspace.js'

export interface Payment {
  to: string
  amount: number
  currency: string
  reference: string
}

/** One payment in each line: day, payee, amount, currency, reference. */
const FILE = 'payments.csv'

/** What was paid to the same payee before, and what this payment adds to it. */
export async function previewPayment(workspace: Workspace, payment: Payment): Promise<Preview> {
  const { to, amount, currency, reference } = payment
  const earlier = (await payments(workspace)).filter(([, payee]) => payee === to)
  const paid = earlier.filter(([, , , unit]) => unit === currency)
  const sum = paid.reduce((cents, [, , paidOnce]) => cents + Math.round(Number(paidOnce) * 100), 0) / 100
  return {
    kind: 'table',
    total: `${amount} ${currency} to ${to}, ${sum} ${currency} before`,
    columns: ['Day', 'Amount', 'Reference'],
    rows: [
      ...earlier.map(([day = '', , paidOnce, unit, invoice = '']) => [day, `${paidOnce} ${unit}`, invoice]),
      ['now', `${amount} ${currency}`, reference],
    ],
  }
}

export async function pay(
  workspace: Workspace,
  { to, amount, currency, reference }: Payment,
  now: Date,
): Promise<Payment & { file: string }> {
  const cells = [now.toISOString().slice(0, 10), to, amount, currency, reference]
  await workspace.append(FILE, `${cells.join(',')}\n`)
  return { to, amount, currency, reference, file: FILE }
}

/** "200 EUR in total" to one payee, or never again. */
export function paymentMandates({ to }: Payment): MandateOffer[] {
  const where = [{ field: 'to', is: to }]
  return [
    {
      id: 'payee',
      label: `Pay ${to} up to 200 EUR in total, for a day`,
      where,
      expiresIn: 24 * 60 * 60,
      budget: { field: 'amount', total: 200, unit: 'EUR', unitField: 'currency' },
    },
    { id: 'never', label: `Never pay ${to}`, where, decide: 'deny' },
  ]
}

async function payments(workspace: Workspace): Promise<string[][]> {
  if ((await workspace.look(FILE)) === undefined) return []
  const lines = (await workspace.read(FILE)).split('\n').filter((line) => line !== '')
  return lines.map((line) => line.split(','))
}
