/** The models that the demo can use. */
type ModelKind = 'compatible' | 'openai' | 'anthropic' | 'gemini' | 'planner'

export type ModelChoice =
  | { readonly kind: 'planner' }
  | { readonly kind: 'openai' | 'anthropic' | 'gemini'; readonly apiKey: string; readonly model: string }
  /** A server with OpenAI's Chat Completions API, such as a local one. Most need no key. */
  | {
      readonly kind: 'compatible'
      readonly baseURL: string
      readonly apiKey: string | undefined
      readonly model: string
    }

export interface ChosenModel {
  readonly choice: ModelChoice
  /** What was chosen and why, in one line, without a key. */
  readonly because: string
}

type Environment = Readonly<Record<string, string | undefined>>

interface Source {
  readonly kind: Exclude<ModelKind, 'planner'>
  /** The environment variable that makes it usable. */
  readonly variable: string
  readonly modelVariable: string
  readonly model: string
  readonly title: string
}

/** The first usable one in this order is taken. */
const sources: readonly Source[] = [
  {
    kind: 'compatible',
    variable: 'OPENAI_BASE_URL',
    modelVariable: 'OPENAI_MODEL',
    model: 'gpt-oss:20b',
    title: 'a compatible server',
  },
  {
    kind: 'openai',
    variable: 'OPENAI_API_KEY',
    modelVariable: 'OPENAI_MODEL',
    model: 'gpt-5.4-mini',
    title: 'OpenAI',
  },
  {
    kind: 'anthropic',
    variable: 'ANTHROPIC_API_KEY',
    modelVariable: 'ANTHROPIC_MODEL',
    model: 'claude-sonnet-5-5',
    title: 'Anthropic',
  },
  {
    kind: 'gemini',
    variable: 'GEMINI_API_KEY',
    modelVariable: 'GEMINI_MODEL',
    model: 'gemini-flash-latest',
    title: 'Google',
  },
]

/**
 * The model that the environment asks for; without a key or an address the embedded planner. `DEMO_MODEL` names one by its kind and
 * overrides the order.
 *
 * @throws Error for an unknown `DEMO_MODEL`, or one whose own variable is missing; for an `OPENAI_BASE_URL` that is not an http address.
 */
export function chooseModel(environment: Environment): ChosenModel {
  const wanted = read(environment, 'DEMO_MODEL')
  const usable = sources.filter(({ variable }) => read(environment, variable) !== undefined)
  if (wanted !== undefined) return chooseByName(wanted, environment)
  const [first, ...others] = usable
  if (first === undefined) return planner('no key and no address of a model is set (.env.example names them)')
  return chosen(first, environment, `${first.variable} is set${alsoSet(first, others)}`)
}

function chooseByName(wanted: string, environment: Environment): ChosenModel {
  if (wanted === 'planner') return planner('DEMO_MODEL says so')
  const source = sources.find(({ kind }) => kind === wanted)
  if (source === undefined) {
    const kinds = ['planner', ...sources.map(({ kind }) => kind)].join(', ')
    throw new Error(`DEMO_MODEL=${wanted} is not known. Choose one of: ${kinds}.`)
  }
  if (read(environment, source.variable) === undefined)
    throw new Error(`DEMO_MODEL=${wanted} needs ${source.variable}, and it is not set.`)
  return chosen(source, environment, 'DEMO_MODEL says so')
}

/** `OPENAI_API_KEY` may be the key of the compatible server, so it does not count as OpenAI. */
function alsoSet({ kind }: Source, others: readonly Source[]): string {
  const more = others.filter((other) => !(kind === 'compatible' && other.kind === 'openai'))
  if (more.length === 0) return ''
  return `, before ${more.map(({ variable }) => variable).join(' and ')} (DEMO_MODEL chooses another)`
}

function planner(why: string): ChosenModel {
  return { choice: { kind: 'planner' }, because: `Model: the embedded planner, because ${why}.` }
}

function chosen(source: Source, environment: Environment, why: string): ChosenModel {
  const { kind, variable, modelVariable, title } = source
  const model = read(environment, modelVariable) ?? source.model
  if (kind !== 'compatible') {
    const apiKey = read(environment, variable) ?? ''
    return { choice: { kind, apiKey, model }, because: `Model: ${model} of ${title}, because ${why}.` }
  }
  const baseURL = read(environment, variable) ?? ''
  if (!/^https?:$/.test(URL.canParse(baseURL) ? new URL(baseURL).protocol : ''))
    throw new Error(`${variable} must be an http address, such as http://localhost:11434/v1.`)
  const apiKey = read(environment, 'OPENAI_API_KEY')
  const where = `${title} at ${new URL(baseURL).origin}`
  return { choice: { kind, baseURL, apiKey, model }, because: `Model: ${model} of ${where}, because ${why}.` }
}

/** An empty variable, as in `OPENAI_API_KEY=`, counts as not set. */
function read(environment: Environment, name: string): string | undefined {
  return environment[name]?.trim() || undefined
}
